package guest

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// An Action is the host's report of an action.
type Action struct {
	ID         string          `json:"action_id"`
	Verb       string          `json:"action"`
	Effect     string          `json:"action_type"` // local_state or side_effect
	State      string          `json:"lifecycle_state"`
	Dispatched bool            `json:"dispatched"`
	Success    bool            `json:"success"`
	Code       string          `json:"failure_code"`
	Reason     string          `json:"failure_reason"`
	Detail     string          `json:"detail"`
	Retryable  bool            `json:"retryable"`
	Tabs       []Tab           `json:"tabs"`
	Details    json.RawMessage `json:"details"`
	Raw        json.RawMessage `json:"-"` // the whole envelope
}

// An ActionError reports a failed action. It unwraps to ErrNotVerified.
type ActionError struct{ Action *Action }

func (e *ActionError) Error() string {
	s := "guest: " + e.Action.Verb + " failed: " + e.Action.Code
	if e.Action.Detail != "" {
		s += " (" + e.Action.Detail + ")"
	}
	s += e.Action.near()
	if e.Action.Dispatched {
		return s + "; it may have been carried out"
	}
	return s
}

// near lists what the page has instead of an element that was not found.
func (a *Action) near() string {
	var q struct {
		Target struct {
			Resolution struct {
				Alternates []struct{ Role, Text, Reason string }
			}
		}
	}
	if a.Code != "ELEMENT_NOT_FOUND" || json.Unmarshal(a.Raw, &q) != nil {
		return ""
	}
	var near []string
	for _, o := range q.Target.Resolution.Alternates {
		if o.Reason == "near_miss" {
			near = append(near, strings.TrimSpace(o.Role+" "+strconv.Quote(o.Text)))
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "; the page has " + strings.Join(near, ", ")
}

// Unwrap returns ErrNotVerified.
func (e *ActionError) Unwrap() error { return ErrNotVerified }

// OpenedTab returns the tab that the action opened, for OnTab, or "". For a tab that opens
// late, verify TabOpened first.
func (a *Action) OpenedTab() string {
	var d struct {
		Popups []struct {
			Tab    string `json:"tab_id"`
			Closed string `json:"closed"`
		} `json:"popups"`
	}
	if json.Unmarshal(a.Details, &d) != nil {
		return ""
	}
	for _, p := range d.Popups {
		if p.Closed == "" {
			return p.Tab
		}
	}
	return ""
}

// Into decodes the details of the action into v.
func (a *Action) Into(v any) error { return json.Unmarshal(a.Details, v) }

// act performs an action. A failed action returns an *ActionError besides the Action. An
// action without an expectation is neither verified nor an error; its State is
// pending_verification.
func (b *Browser) act(ctx context.Context, q request, options []PageOption) (*Action, error) {
	var raw json.RawMessage
	if err := b.ask(ctx, q, options, &raw); err != nil {
		return nil, err
	}
	a := &Action{Raw: raw}
	if err := json.Unmarshal(raw, a); err != nil {
		return nil, err
	}
	if a.State == "failed" {
		return a, &ActionError{a}
	}
	return a, nil
}

// local is act for verbs that change only the page. They accept a similar element in place
// of one that was replaced.
func (b *Browser) local(ctx context.Context, q request, options []PageOption) (*Action, error) {
	q["rebind"] = true
	return b.act(ctx, q, options)
}

// Navigate loads url. It is verified when a document of an allowed host is loaded.
func (b *Browser) Navigate(ctx context.Context, url string, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "navigate", "url": url}, options)
}

// Back goes back in the history of the tab.
func (b *Browser) Back(ctx context.Context, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "navigate", "history": "back"}, options)
}

// Forward goes forward in the history of the tab.
func (b *Browser) Forward(ctx context.Context, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "navigate", "history": "forward"}, options)
}

func (b *Browser) Reload(ctx context.Context, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "navigate", "history": "reload"}, options)
}

// Click clicks an element. State its expected result with Expecting.
func (b *Browser) Click(ctx context.Context, t Target, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "click", "target": t}, options)
}

// Fill replaces the content of an editable element. If text is the handle of a sealed
// secret, the host fills in the secret.
func (b *Browser) Fill(ctx context.Context, t Target, text string, options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "fill", "target": t, "value": valueOf(text)}, options)
}

// TypeKeys types text key by key, for fields that react to keys.
func (b *Browser) TypeKeys(ctx context.Context, t Target, text string, options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "type", "target": t, "value": valueOf(text), "mode": "keys"}, options)
}

// sealedPrefix is the prefix of all handles of sealed values.
const sealedPrefix = "sluice-sealed-v1-"

func valueOf(text string) map[string]string {
	if len(text) > len(sealedPrefix) && text[:len(sealedPrefix)] == sealedPrefix {
		return map[string]string{"sealed": text}
	}
	return map[string]string{"plain": text}
}

// Clear empties an editable element.
func (b *Browser) Clear(ctx context.Context, t Target, options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "clear", "target": t}, options)
}

// Press presses keys, such as Enter or Control+A, in the focused element.
func (b *Browser) Press(ctx context.Context, keys string, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "press", "keys": keys}, options)
}

// PressOn presses keys in the given element.
func (b *Browser) PressOn(ctx context.Context, t Target, keys string, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "press", "keys": keys, "target": t}, options)
}

// SelectLabel selects an option of a list by its visible text.
func (b *Browser) SelectLabel(ctx context.Context, t Target, label string, options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "select", "target": t, "option": map[string]string{"label": label}}, options)
}

// SelectID selects an option of a list by its value.
func (b *Browser) SelectID(ctx context.Context, t Target, id string, options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "select", "target": t, "option": map[string]string{"id": id}}, options)
}

// SelectLabels selects exactly these options of a multiple-choice list by their visible
// text; none without labels.
func (b *Browser) SelectLabels(ctx context.Context, t Target, labels []string, options ...PageOption) (*Action, error) {
	return b.selectMany(ctx, t, "label", labels, options)
}

// SelectIDs selects exactly these options of a multiple-choice list by their values.
func (b *Browser) SelectIDs(ctx context.Context, t Target, ids []string, options ...PageOption) (*Action, error) {
	return b.selectMany(ctx, t, "id", ids, options)
}

func (b *Browser) selectMany(ctx context.Context, t Target, by string, list []string,
	options []PageOption) (*Action, error) {
	many := []map[string]string{}
	for _, one := range list {
		many = append(many, map[string]string{by: one})
	}
	return b.local(ctx, request{"verb": "select", "target": t, "options": many}, options)
}

// Check turns a checkbox or switch on or off, or selects a radio button.
func (b *Browser) Check(ctx context.Context, t Target, on bool, options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "check", "target": t, "checked": on}, options)
}

// Adjust sets a slider or stepper to value, within tolerance.
func (b *Browser) Adjust(ctx context.Context, t Target, value, tolerance float64,
	options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "adjust", "target": t, "value": value, "tolerance": tolerance}, options)
}

// ScrollTo scrolls an element into view.
func (b *Browser) ScrollTo(ctx context.Context, t Target, options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "scroll", "target": t}, options)
}

// Scroll scrolls the page down, up, left or right by amount, a fraction of the viewport.
func (b *Browser) Scroll(ctx context.Context, direction string, amount float64,
	options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "scroll", "direction": direction, "amount": amount}, options)
}

// Hover moves the pointer over an element.
func (b *Browser) Hover(ctx context.Context, t Target, options ...PageOption) (*Action, error) {
	return b.local(ctx, request{"verb": "hover", "target": t}, options)
}

// Drag drags an element to the middle of another one. Like a click it needs Expecting.
func (b *Browser) Drag(ctx context.Context, t, to Target, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "drag", "target": t, "to": to}, options)
}

// DragBy drags an element by x CSS pixels to the right and y down.
func (b *Browser) DragBy(ctx context.Context, t Target, x, y float64, options ...PageOption) (*Action, error) {
	return b.act(ctx, request{"verb": "drag", "target": t, "by": map[string]float64{"x": x, "y": y}}, options)
}

// Upload selects files from the connector's mounts in a file input, or in the file chooser
// that opens when the element is clicked; the latter needs Expecting.
func (b *Browser) Upload(ctx context.Context, t Target, paths []string, options ...PageOption) (*Action, error) {
	files := make([]map[string]string, len(paths))
	for i, p := range paths {
		files[i] = map[string]string{"path": p}
	}
	return b.act(ctx, request{"verb": "upload", "target": t, "files": files}, options)
}

// A Download is a file that a page offered and the host received.
type Download struct {
	Handle int32  `json:"handle"`
	Name   string `json:"name"`
	MIME   string `json:"mime"`
	Bytes  int64  `json:"bytes"`
	Denied bool   `json:"denied"`
}

// Downloads returns the downloads that an action caused.
func (a *Action) Downloads() []Download {
	var d struct {
		Downloads []Download `json:"downloads"`
	}
	_ = json.Unmarshal(a.Details, &d) // an action of another verb has none
	return d.Downloads
}

// ReadAll reads a stream handle to its end and closes it. It fails for more than limit
// bytes.
func (b *Browser) ReadAll(handle int32, limit int) ([]byte, error) {
	defer func() { _ = b.run.CloseHandle(handle) }()
	var out []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := b.run.ReadHandle(handle, buf)
		if err != nil || n == 0 {
			return out, err
		}
		if out = append(out, buf[:n]...); len(out) > limit {
			return nil, &Error{Code: "result_too_large", Message: "more than " + strconv.Itoa(limit) + " bytes"}
		}
	}
}
