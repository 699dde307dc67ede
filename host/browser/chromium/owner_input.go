package chromium

import (
	"context"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Input applies one input event of the owner. It returns page.ErrKey for a key reserved for the
// browser and for an unknown kind of input.
func (s *Screen) Input(ctx context.Context, in page.Input) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	return t.call(ctx, func(ctx context.Context) error {
		switch in.Kind {
		case "move", "down", "up", "click", "dblclick", "wheel":
			return t.pointed(ctx, in, t.ownerMouse)
		case "keydown", "keyup":
			return t.ownerKey(ctx, in)
		case "text":
			return command(ctx, t.session, input.InsertText, input.InsertTextParams{Text: in.Text})
		case "compose":
			return t.compose(ctx, in)
		case "touchstart", "touchmove", "touchend", "touchcancel":
			return t.pointed(ctx, in, t.touch)
		}
		return page.ErrKey
	})
}

// pointed runs do for a pointer event, with its point converted from the screen.
func (ui *userInput) pointed(ctx context.Context, in page.Input, do func(context.Context, page.Input) error) error {
	return ui.tab.steady(ctx, func(ctx context.Context) error {
		l, err := ui.tab.screenScale(ctx)
		if err != nil {
			return err
		}
		in.At = page.Point{X: in.At.X / l.Scale, Y: in.At.Y / l.Scale} // see sent
		return do(ctx, in)
	})
}

// A wheel is a wheel event. The library omits deltas of 0, which the browser requires.
type wheel struct {
	Type      string  `json:"type"`
	X         float64 `json:"x"`
	Y         float64 `json:"y"`
	DX        float64 `json:"deltaX"`
	DY        float64 `json:"deltaY"`
	Modifiers int64   `json:"modifiers"`
}

var turnWheel = cdp.Command[wheel, cdp.Empty]{Method: input.DispatchMouseEvent.Method}

var ownerButtons = []string{"left", "middle", "right"}

func (ui *userInput) ownerMouse(ctx context.Context, in page.Input) error {
	b := buttons["left"]
	if in.Button > 0 && in.Button < len(ownerButtons) {
		b = buttons[ownerButtons[in.Button]]
	}
	if in.Kind == "dblclick" {
		b = buttons["left"]
	}
	p := input.DispatchMouseEventParams{X: in.At.X, Y: in.At.Y, Modifiers: int64(in.Modifiers & 15), Button: b.name}
	send := func(kind input.DispatchMouseEventType, held int64, count int64) error {
		p.Type, p.Buttons, p.ClickCount = kind, held, count
		return command(ctx, ui.tab.session, input.DispatchMouseEvent, p)
	}
	pair := func(count int64) error {
		if err := send(input.DispatchMouseEventTypeMousePressed, b.bit, count); err != nil {
			return err
		}
		return send(input.DispatchMouseEventTypeMouseReleased, 0, count)
	}
	switch in.Kind {
	case "move":
		p.Button = input.MouseButtonNone
		return send(input.DispatchMouseEventTypeMouseMoved, ui.hold(0, 0), 0)
	case "down":
		return send(input.DispatchMouseEventTypeMousePressed, ui.hold(b.bit, 0), 1)
	case "up":
		return send(input.DispatchMouseEventTypeMouseReleased, ui.hold(0, b.bit), 1)
	case "wheel":
		turn := wheel{"mouseWheel", in.At.X, in.At.Y, in.DX, in.DY, int64(in.Modifiers & 15)}
		return command(ctx, ui.tab.session, turnWheel, turn)
	case "dblclick":
		if err := pair(1); err != nil {
			return err
		}
		return pair(2)
	}
	return pair(1)
}

// hold updates the mouse buttons that the owner holds down, and returns them.
func (ui *userInput) hold(down, up int64) int64 {
	ui.tab.mu.Lock()
	defer ui.tab.mu.Unlock()
	ui.tab.display.buttons = (ui.tab.display.buttons | down) &^ up
	return ui.tab.display.buttons
}

func (ui *userInput) ownerKey(ctx context.Context, in page.Input) error {
	m := int64(in.Modifiers & 15)
	if in.Kind == "keydown" && page.BrowsersOwn(m, in.Key) {
		return page.ErrKey
	}
	var both []*input.DispatchKeyEventParams
	if k, ok := page.KeyNamed(in.Key); ok {
		both = events(k, m)
	} else if r, size := utf8.DecodeRuneInString(in.Key); size == len(in.Key) && size > 0 && r >= 0x20 && r != 0x7f {
		both = character(r, m)
	} else {
		return page.ErrKey
	}
	p := *both[0]
	if in.Kind == "keyup" {
		p = *both[len(both)-1]
	}
	if in.Code != "" && len(in.Code) <= 32 {
		p.Code = in.Code
	}
	return command(ctx, ui.tab.session, input.DispatchKeyEvent, p)
}

func (ui *userInput) compose(ctx context.Context, in page.Input) error {
	if in.Commit {
		return command(ctx, ui.tab.session, input.InsertText, input.InsertTextParams{Text: in.Text})
	}
	p := input.ImeSetCompositionParams{Text: in.Text, SelectionStart: int64(in.Start), SelectionEnd: int64(in.End)}
	return command(ctx, ui.tab.session, input.ImeSetComposition, p)
}

func (ui *userInput) touch(ctx context.Context, in page.Input) error {
	p := input.DispatchTouchEventParams{Modifiers: int64(in.Modifiers & 15), TouchPoints: []*input.TouchPoint{}}
	switch in.Kind {
	case "touchstart":
		p.Type = input.DispatchTouchEventTypeTouchStart
	case "touchmove":
		p.Type = input.DispatchTouchEventTypeTouchMove
	case "touchcancel":
		p.Type = input.DispatchTouchEventTypeTouchCancel
	default:
		p.Type = input.DispatchTouchEventTypeTouchEnd
	}
	if in.Kind == "touchstart" || in.Kind == "touchmove" {
		id := float64(in.TouchID)
		p.TouchPoints = append(p.TouchPoints, &input.TouchPoint{X: in.At.X, Y: in.At.Y, ID: &id})
	}
	return command(ctx, ui.tab.session, input.DispatchTouchEvent, p)
}
