package guest

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ErrPage is under the error of Wait and Expect when the page is not what was
// waited for or asserted.
var ErrPage = errors.New("guest: the page is not as expected")

// A PageError says how.
type PageError struct {
	Code   string // ELEMENT_NOT_FOUND, TIMEOUT or EXPECT_STATE_MISMATCH
	Reason string
}

// Error has both.
func (e *PageError) Error() string { return "guest: " + e.Code + ": " + e.Reason }

// Unwrap is ErrPage.
func (e *PageError) Unwrap() error { return ErrPage }

// An Element is one that a reply names.
type Element struct {
	ID       string          `json:"element_id"`
	StableID string          `json:"stable_id"`
	Role     string          `json:"role"`
	Label    string          `json:"label"`
	Text     string          `json:"text"`
	State    json.RawMessage `json:"state"`
}

// WaitFor waits until an element exists, and returns it. Other states: visible,
// hidden, not_exists, clickable.
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

// WaitChange waits until the page has changed since the latest action.
func (b *Browser) WaitChange(ctx context.Context, timeout time.Duration) error {
	var reply struct {
		Success bool   `json:"success"`
		Reason  string `json:"reason"`
	}
	if err := b.ask(ctx, request{"verb": "wait", "for": "ui_change", "timeout_ms": timeout.Milliseconds()}, nil, &reply); err != nil {
		return err
	}
	if !reply.Success {
		return &PageError{"TIMEOUT", reply.Reason}
	}
	return nil
}

// Expect asserts a condition, for at most the timeout, or for one proof when it
// is 0. It also proves the action before it, if nothing was expected of that.
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

// A Table is what a table element shows.
type Table struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// A Link is one of a page.
type Link struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// extract reads one thing into v.
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

// Text reads the visible text of an element.
func (b *Browser) Text(ctx context.Context, t Target) (text string, err error) {
	_, err = b.extract(ctx, map[string]any{"take": "text", "target": t}, &text)
	return text, err
}

// Texts reads those of all elements that fit, at most 5000.
func (b *Browser) Texts(ctx context.Context, t Target) (texts []string, truncated bool, err error) {
	truncated, err = b.extract(ctx, map[string]any{"take": "text", "target": t, "all": true}, &texts)
	return texts, truncated, err
}

// Value reads what a control holds.
func (b *Browser) Value(ctx context.Context, t Target) (value string, err error) {
	_, err = b.extract(ctx, map[string]any{"take": "value", "target": t}, &value)
	return value, err
}

// Attribute reads an attribute.
func (b *Browser) Attribute(ctx context.Context, t Target, name string) (value string, err error) {
	_, err = b.extract(ctx, map[string]any{"take": "attribute", "attribute": name, "target": t}, &value)
	return value, err
}

// Table reads a table, or only some of its columns.
func (b *Browser) Table(ctx context.Context, t Target, columns ...string) (table Table, truncated bool, err error) {
	item := map[string]any{"take": "table", "target": t}
	if len(columns) > 0 {
		item["columns"] = columns
	}
	truncated, err = b.extract(ctx, item, &table)
	return table, truncated, err
}

// Links reads the links inside of an element.
func (b *Browser) Links(ctx context.Context, t Target) (links []Link, truncated bool, err error) {
	truncated, err = b.extract(ctx, map[string]any{"take": "links", "target": t}, &links)
	return links, truncated, err
}

// JSONLD reads the structured data of the page.
func (b *Browser) JSONLD(ctx context.Context) (json.RawMessage, error) {
	var raw json.RawMessage
	_, err := b.extract(ctx, map[string]any{"take": "jsonld"}, &raw)
	return raw, err
}

// A Snapshot is what a page shows.
type Snapshot struct {
	Revision    int64     `json:"snapshot_revision"`
	Fingerprint string    `json:"fingerprint"`
	URL         string    `json:"url"`
	Title       string    `json:"title"`
	Elements    []Element `json:"elements"`
	Truncated   bool      `json:"truncated"`
}

// Snapshot looks at the page. It is for finding out; conditions are for knowing.
func (b *Browser) Snapshot(ctx context.Context, options ...PageOption) (*Snapshot, error) {
	var s Snapshot
	if err := b.ask(ctx, request{"verb": "snapshot"}, options, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// A Picture is a screenshot: its bytes are behind a handle (ReadAll).
type Picture struct {
	Handle int32  `json:"handle"`
	MIME   string `json:"mime"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Bytes  int64  `json:"bytes"`
}

// Screenshot takes a picture of what the page shows. Fields that hold sealed
// secrets are painted over.
func (b *Browser) Screenshot(ctx context.Context) (Picture, error) {
	var p Picture
	err := b.ask(ctx, request{"verb": "screenshot"}, nil, &p)
	return p, err
}
