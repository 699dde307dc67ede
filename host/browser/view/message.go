package view

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Bounds of a message's members, in bytes.
const (
	maxText        = 64 << 10
	maxComposition = 4 << 10
	maxKey         = 32
	maxName        = 255
	// MaxUpload bounds a file that the owner sends.
	MaxUpload = 25 << 20
)

// A message is a checked message of a viewer. Points are in pixels of the picture.
type message struct {
	kind   string // the type on the wire
	input  page.Input
	move   bool // only the last of several counts
	do     string
	id     string
	text   string
	accept bool
	view   page.Viewport
	name   string
	size   int64
	seq    uint32
}

// wire holds the members of a message. Absent ones are nil.
type wire struct {
	Type      string          `json:"type"`
	Action    string          `json:"action"`
	X         *float64        `json:"x"`
	Y         *float64        `json:"y"`
	DX        *float64        `json:"deltaX"`
	DY        *float64        `json:"deltaY"`
	Button    json.RawMessage `json:"button"`
	Key       *string         `json:"key"`
	Code      string          `json:"code"`
	Modifiers json.RawMessage `json:"modifiers"`
	Text      *string         `json:"text"`
	Start     *int            `json:"start"`
	End       *int            `json:"end"`
	Commit    bool            `json:"commit"`
	ID        json.RawMessage `json:"id"`
	Width     *float64        `json:"width"`
	Height    *float64        `json:"height"`
	Scale     *float64        `json:"deviceScaleFactor"`
	Mobile    bool            `json:"mobile"`
	Accept    *bool           `json:"accept"`
	Value     *string         `json:"value"`
	Name      *string         `json:"name"`
	Size      *int64          `json:"size"`
	Seq       *uint32         `json:"seq"`
}

// parse parses a message. It reports false for invalid_input.
func parse(raw []byte) (message, bool) {
	var w wire
	if len(raw) == 0 || len(raw) > MaxMessage || !utf8.Valid(raw) || json.Unmarshal(raw, &w) != nil {
		return message{}, false
	}
	m := message{kind: w.Type}
	check := checks[w.Type]
	if check == nil {
		return message{}, false
	}
	return m, check(&w, &m)
}

// checks maps the message types to their checks.
var checks = map[string]func(*wire, *message) bool{
	"ack":     func(w *wire, m *message) bool { return w.Seq != nil && set(&m.seq, *w.Seq) },
	"bye":     nothing,
	"take":    nothing,
	"release": nothing,

	"mouse":       mouse,
	"scroll":      scroll,
	"keyboard":    keyboard,
	"text":        text,
	"paste":       text,
	"composition": composition,
	"touch":       touch,
	"viewport":    viewport,

	"select_choice": func(w *wire, m *message) bool { return name(w.ID, &m.id) },
	"picker":        func(w *wire, m *message) bool { return bounded(w.Value, 64) && set(&m.text, *w.Value) },
	"dialog":        dialog,
	"file_choose":   file,
	"nav":           nav,
	"copy":          nothing,
	"elements":      nothing,
	"element":       element,
}

func nothing(*wire, *message) bool { return true }

func set[T any](to *T, v T) bool {
	*to = v
	return true
}

func bounded(s *string, most int) bool { return s != nil && len(*s) <= most }

func point(w *wire, m *message) bool {
	if w.X == nil || w.Y == nil {
		return false
	}
	m.input.At = page.Point{X: *w.X, Y: *w.Y}
	return finite(*w.X) && finite(*w.Y)
}

func finite(f float64) bool { return !math.IsNaN(f) && math.Abs(f) <= 1e6 }

// number returns an optional number, or otherwise if it is missing or invalid.
func number(raw json.RawMessage, otherwise int) int {
	var f float64
	if json.Unmarshal(raw, &f) != nil || f != math.Trunc(f) || math.Abs(f) > 1e6 {
		return otherwise
	}
	return int(f)
}

func mouse(w *wire, m *message) bool {
	kinds := map[string]string{"mousemove": "move", "mousedown": "down", "mouseup": "up", "click": "click",
		"dblclick": "dblclick"}
	m.input.Kind = kinds[w.Action]
	m.move = m.input.Kind == "move"
	m.input.Modifiers = modifiers(w)
	if m.input.Button = number(w.Button, 0); m.input.Button != 1 && m.input.Button != 2 || m.input.Kind == "dblclick" {
		m.input.Button = 0
	}
	return m.input.Kind != "" && point(w, m)
}

func scroll(w *wire, m *message) bool {
	if w.DX == nil || w.DY == nil || !finite(*w.DX) || !finite(*w.DY) {
		return false
	}
	m.input.Kind, m.input.DX, m.input.DY, m.input.Modifiers = "wheel", *w.DX, *w.DY, modifiers(w)
	return point(w, m)
}

func modifiers(w *wire) int { return number(w.Modifiers, 0) & 15 }

func keyboard(w *wire, m *message) bool {
	if w.Action != "keydown" && w.Action != "keyup" || !bounded(w.Key, maxKey) || *w.Key == "" || len(w.Code) > maxKey {
		return false
	}
	m.input = page.Input{Kind: w.Action, Key: *w.Key, Code: w.Code, Modifiers: modifiers(w)}
	return true
}

func text(w *wire, m *message) bool {
	m.input.Kind = "text"
	return bounded(w.Text, maxText) && set(&m.input.Text, *w.Text)
}

func composition(w *wire, m *message) bool {
	if !bounded(w.Text, maxComposition) {
		return false
	}
	units := len(*w.Text)
	at := func(n *int) (int, bool) {
		if n == nil {
			return units, w.Commit
		}
		return *n, *n >= 0 && *n <= units
	}
	start, ok := at(w.Start)
	end, ok2 := at(w.End)
	m.input = page.Input{Kind: "compose", Text: *w.Text, Start: start, End: end, Commit: w.Commit}
	return ok && ok2 && start <= end
}

func touch(w *wire, m *message) bool {
	if !slices.Contains([]string{"touchstart", "touchmove", "touchend", "touchcancel"}, w.Action) {
		return false
	}
	m.input.Kind, m.move = w.Action, w.Action == "touchmove"
	if m.input.TouchID = number(w.ID, 1); m.input.TouchID < 0 || m.input.TouchID > 15 {
		return false
	}
	return point(w, m)
}

func viewport(w *wire, m *message) bool {
	if w.Width == nil || w.Height == nil || !side(*w.Width) || !side(*w.Height) {
		return false
	}
	m.view = page.Viewport{Width: int(*w.Width), Height: int(*w.Height), Scale: 1, Mobile: w.Mobile}
	if w.Scale != nil {
		m.view.Scale = *w.Scale
	}
	return m.view.Scale >= 0.5 && m.view.Scale <= 4
}

func side(f float64) bool { return f == math.Trunc(f) && f >= 240 && f <= 3840 }

// Viewport returns the viewport of a request for a view, or nil if it is invalid.
func Viewport(width, height, scale float64, mobile bool) *page.Viewport {
	var m message
	scale = cmp.Or(scale, 1)
	if !viewport(&wire{Width: &width, Height: &height, Scale: &scale, Mobile: mobile}, &m) {
		return nil
	}
	return &m.view
}

func name(raw json.RawMessage, to *string) bool {
	return json.Unmarshal(raw, to) == nil && *to != "" && len(*to) <= maxKey
}

func dialog(w *wire, m *message) bool {
	if w.Accept == nil || w.Text != nil && len(*w.Text) > maxComposition {
		return false
	}
	if m.accept = *w.Accept; w.Text != nil {
		m.text = *w.Text
	}
	return true
}

// file announces a file, or with the action none that there will be none.
func file(w *wire, m *message) bool {
	if w.Action == "none" {
		m.do = "none"
		return true
	}
	if w.Action != "" || !bounded(w.Name, maxName) || *w.Name == "" || w.Size == nil || *w.Size < 0 ||
		*w.Size > MaxUpload {
		return false
	}
	m.name, m.size = *w.Name, *w.Size
	return true
}

func nav(w *wire, m *message) bool {
	m.do = w.Action
	return slices.Contains([]string{"back", "forward", "reload", "stop"}, w.Action)
}

func element(w *wire, m *message) bool {
	m.do = w.Action
	if !name(w.ID, &m.id) || !slices.Contains([]string{"focus", "click", "type", "open"}, w.Action) {
		return false
	}
	return w.Action != "type" || bounded(w.Text, maxText) && set(&m.text, *w.Text)
}

// clean returns a text of the page for display to the owner: without control and reordering
// characters, at most most bytes.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// toValid returns s as valid UTF-8.
func toValid(s string) string { return strings.ToValidUTF8(s, "") }
