package guest

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// A Browser is the browser of a run, which the host owns (browser.md). A connector
// says what is to be done to which element and what must be true afterwards; the
// host does it, and says whether it came true. The connector never holds a cookie,
// a script or a socket of it.
//
// One call is made at a time. A context bounds a call by its deadline; it does not
// interrupt one.
type Browser struct{ run *Run }

// Browser returns the browser of the run. Without the binding every call fails
// with abi.EDENIED.
func (r *Run) Browser() *Browser { return &Browser{r} }

// ErrNotVerified is under the error of an action that the host did not prove: it
// may have been carried out (Action.Dispatched says so), and what was expected of
// it was not seen.
var ErrNotVerified = errors.New("guest: the action is not verified")

// A Surface is what Open opened.
type Surface struct {
	ID         string `json:"surface_id"`
	Profile    string `json:"profile"`
	Persistent bool   `json:"persistent"`
	Reused     bool   `json:"reused"`
	UserAgent  string `json:"user_agent"`
	Tabs       []Tab  `json:"tabs"`
	Session    struct {
		State         string `json:"state"` // live, recovered or not_probed
		InteractionID string `json:"interaction_id"`
	} `json:"session"`
}

// A Tab is one page of the browser.
type Tab struct {
	ID     string `json:"tab_id"`
	Host   string `json:"url_host"`
	Active bool   `json:"active"`
	Closed string `json:"closed,omitempty"` // why it is gone
}

// A Session says how the host finds out whether the owner is signed in, and where
// it sends them when they are not (B186).
type Session struct {
	ProbeURL string
	Expect   Condition     // true when they are
	LoginURL string        // "" stays where the probe ended
	Message  string        // for the owner
	Timeout  time.Duration // the owner's; 0 is ten minutes
}

// Open starts the browser, on the address if it is not empty. Options: Profile,
// Ephemeral, Viewport, WithSession, Establish, Traced.
func (b *Browser) Open(ctx context.Context, url string, options ...PageOption) (*Surface, error) {
	q := request{"verb": "open"}
	if url != "" {
		q["url"] = url
	}
	var s Surface
	if err := b.ask(ctx, q, options, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// Close ends the browser gracefully. A run that ends does it too.
func (b *Browser) Close(ctx context.Context) error {
	return b.ask(ctx, request{"verb": "close"}, nil, nil)
}

// CloseTab closes one tab.
func (b *Browser) CloseTab(ctx context.Context, tab string) error {
	return b.ask(ctx, request{"verb": "close", "tab": tab}, nil, nil)
}

// Mark is a checkpoint of a login that the connector goes through itself, in a
// browser that was opened with Establish: as long as marks come, the host's
// watchdog waits (B189). Done ends it.
func (b *Browser) Mark(ctx context.Context, phase string, done bool) error {
	return b.ask(ctx, request{"verb": "mark", "phase": phase, "done": done}, nil, nil)
}

// HandOver has cookies of the browser sent with requests of the network binding
// to these hosts, as far as the manifest lists them and the owner's policy allows
// it (B34). It returns why hosts were refused, by host.
func (b *Browser) HandOver(ctx context.Context, hosts ...string) (refused map[string]string, err error) {
	var reply struct {
		Refused []struct{ Host, Reason string }
	}
	if err := b.ask(ctx, request{"verb": "cookies", "to": "network", "hosts": hosts}, nil, &reply); err != nil {
		return nil, err
	}
	refused = map[string]string{}
	for _, r := range reply.Refused {
		refused[r.Host] = r.Reason
	}
	return refused, nil
}

// request is a call as it goes over the boundary.
type request map[string]any

// ask makes a call and reads its reply into v, unless that is nil.
func (b *Browser) ask(ctx context.Context, q request, options []PageOption, v any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, set := range options {
		set(q)
	}
	if until, ok := ctx.Deadline(); ok && q["deadline_ms"] == nil && q["verb"] != "open" {
		q["deadline_ms"] = max(500, min(time.Until(until), time.Minute).Milliseconds())
	}
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	reply, err := b.run.BrowserCall(text)
	if err != nil || v == nil {
		return err
	}
	return json.Unmarshal(reply, v)
}
