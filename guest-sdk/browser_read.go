package guest

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ErrPage is wrapped by the error of Wait and Expect if the page is not in the expected
// state.
var ErrPage = errors.New("guest: the page is not as expected")

// A PageError says how the page differs.
type PageError struct {
	Code   string // ELEMENT_NOT_FOUND, TIMEOUT or EXPECT_STATE_MISMATCH
	Reason string
}

func (e *PageError) Error() string { return "guest: " + e.Code + ": " + e.Reason }

// Unwrap returns ErrPage.
func (e *PageError) Unwrap() error { return ErrPage }

// An Element is an element of a page.
type Element struct {
	ID       string          `json:"element_id"`
	StableID string          `json:"stable_id"`
	Role     string          `json:"role"`
	Label    string          `json:"label"`
	Text     string          `json:"text"`
	State    json.RawMessage `json:"state"`
}

// WaitFor waits until an element is in a state and returns the element. States: exists,
// visible, hidden, not_exists, clickable.
func (b *Browser) WaitFor(ctx context.Context, t Target, state string, timeout time.Duration) (*Element, error) {
	var reply struct {
		Status  string   `json:"status"`
		Matched bool     `json:"matched"`
		Element *Element `json:"element"`
		Error   *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	q := request{"verb": "wait", "for": state, "target": t, "timeout_ms": timeout.Milliseconds()}
	if err := b.ask(ctx, q, nil, &reply); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, &PageError{reply.Error.Code, reply.Error.Message}
	}
	return reply.Element, nil
}

// WaitChange waits until the page has changed since the last action.
func (b *Browser) WaitChange(ctx context.Context, timeout time.Duration) error {
	var reply struct {
		Success bool   `json:"success"`
		Reason  string `json:"reason"`
	}
	if err := b.ask(ctx, request{"verb": "wait", "for": "ui_change", "timeout_ms": timeout.Milliseconds()}, nil,
		&reply); err != nil {
		return err
	}
	if !reply.Success {
		return &PageError{"TIMEOUT", reply.Reason}
	}
	return nil
}

// Expect asserts a condition, waiting up to timeout; 0 allows only for the verification
// itself. It also verifies the last action, if that had no expectation.
func (b *Browser) Expect(ctx context.Context, c Condition, timeout time.Duration) error {
	var reply struct {
		Success bool   `json:"success"`
		Code    string `json:"failure_code"`
		Reason  string `json:"reason"`
	}
	q := request{"verb": "expect", "expect": c}
	if timeout > 0 {
		q["timeout_ms"] = timeout.Milliseconds()
	}
	if err := b.ask(ctx, q, nil, &reply); err != nil {
		return err
	}
	if !reply.Success {
		return &PageError{reply.Code, reply.Reason}
	}
	return nil
}

// A Table is the content of a table element.
type Table struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

type Link struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// extract reads one item into v.
func (b *Browser) extract(ctx context.Context, item map[string]any, v any) (truncated bool, err error) {
	item["name"] = "it"
	var reply struct {
		Items     map[string]json.RawMessage `json:"items"`
		Truncated bool                       `json:"truncated"`
	}
	if err := b.ask(ctx, request{"verb": "extract", "items": []any{item}}, nil, &reply); err != nil {
		return false, err
	}
	it := reply.Items["it"]
	if len(it) == 0 || string(it) == "null" {
		return reply.Truncated, &PageError{"ELEMENT_NOT_FOUND", "there is nothing to extract"}
	}
	return reply.Truncated, json.Unmarshal(it, v)
}

func (b *Browser) Text(ctx context.Context, t Target) (text string, err error) {
	_, err = b.extract(ctx, map[string]any{"take": "text", "target": t}, &text)
	return text, err
}

// Texts reads the visible texts of all matching elements, at most 5000.
func (b *Browser) Texts(ctx context.Context, t Target) (texts []string, truncated bool, err error) {
	truncated, err = b.extract(ctx, map[string]any{"take": "text", "target": t, "all": true}, &texts)
	return texts, truncated, err
}

// Value reads the value of a control.
func (b *Browser) Value(ctx context.Context, t Target) (value string, err error) {
	_, err = b.extract(ctx, map[string]any{"take": "value", "target": t}, &value)
	return value, err
}

// Attribute reads an attribute of an element.
func (b *Browser) Attribute(ctx context.Context, t Target, name string) (value string, err error) {
	_, err = b.extract(ctx, map[string]any{"take": "attribute", "attribute": name, "target": t}, &value)
	return value, err
}

// Table reads a table, or only the given columns of it.
func (b *Browser) Table(ctx context.Context, t Target, columns ...string) (table Table, truncated bool, err error) {
	item := map[string]any{"take": "table", "target": t}
	if len(columns) > 0 {
		item["columns"] = columns
	}
	truncated, err = b.extract(ctx, item, &table)
	return table, truncated, err
}

// Links reads the links inside an element.
func (b *Browser) Links(ctx context.Context, t Target) (links []Link, truncated bool, err error) {
	truncated, err = b.extract(ctx, map[string]any{"take": "links", "target": t}, &links)
	return links, truncated, err
}

// JSONLD reads the structured data (JSON-LD) of the page.
func (b *Browser) JSONLD(ctx context.Context) (json.RawMessage, error) {
	var raw json.RawMessage
	_, err := b.extract(ctx, map[string]any{"take": "jsonld"}, &raw)
	return raw, err
}

// A Snapshot describes the elements of a page.
type Snapshot struct {
	Revision    int64     `json:"snapshot_revision"`
	Fingerprint string    `json:"fingerprint"`
	URL         string    `json:"url"`
	Title       string    `json:"title"`
	Elements    []Element `json:"elements"`
	Truncated   bool      `json:"truncated"`
}

// Snapshot describes the page, for exploring it. To test for something use conditions.
func (b *Browser) Snapshot(ctx context.Context, options ...PageOption) (*Snapshot, error) {
	var s Snapshot
	if err := b.ask(ctx, request{"verb": "snapshot"}, options, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// A Picture is a screenshot. ReadAll reads its bytes from Handle.
type Picture struct {
	Handle int32  `json:"handle"`
	MIME   string `json:"mime"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Bytes  int64  `json:"bytes"`
}

// Screenshot takes a picture of the visible part of the page. Fields with sealed secrets
// are masked.
func (b *Browser) Screenshot(ctx context.Context) (Picture, error) {
	var p Picture
	err := b.ask(ctx, request{"verb": "screenshot"}, nil, &p)
	return p, err
}
