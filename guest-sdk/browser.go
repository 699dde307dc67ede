package guest

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// A Browser controls the browser of a run, which the host owns. A connector says what to do
// to which element and what must be true afterwards; the host does it and reports whether
// it became true. The connector never gets a cookie, a script or a socket of the browser.
//
// One call is made at a time. The deadline of a context bounds a call; cancelling it does
// not interrupt one.
type Browser struct{ run *Run }

// Browser returns the browser of the run. Without the browser binding every call fails with
// abi.EDENIED.
func (r *Run) Browser() *Browser { return &Browser{r} }

// ErrNotVerified is wrapped by the error of an action whose expected result the host did
// not see. The action may have been carried out; see Action.Dispatched.
var ErrNotVerified = errors.New("guest: the action is not verified")

// A Surface describes the browser that Open opened.
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

// A Tab is a tab of the browser.
type Tab struct {
	ID     string `json:"tab_id"`
	Host   string `json:"url_host"`
	Active bool   `json:"active"`
	Closed string `json:"closed,omitempty"` // why it was closed
}

// A Session tells the host how to check whether the owner is signed in, and where the owner
// signs in if not.
type Session struct {
	ProbeURL string
	Expect   Condition     // true if the owner is signed in
	LoginURL string        // "" means the page where the probe ended
	Message  string        // for the owner
	Timeout  time.Duration // for the owner; 0 means ten minutes
}

// Open starts the browser and loads url, unless that is empty. Options: Profile, Ephemeral,
// Viewport, WithSession, Establish, Traced.
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

// Close ends the browser gracefully, as the end of the run does.
func (b *Browser) Close(ctx context.Context) error {
	return b.ask(ctx, request{"verb": "close"}, nil, nil)
}

func (b *Browser) CloseTab(ctx context.Context, tab string) error {
	return b.ask(ctx, request{"verb": "close", "tab": tab}, nil, nil)
}

// Mark reports progress of a login that the connector performs itself, in a browser opened
// with Establish. The host's watchdog waits as long as marks arrive. done ends the login.
func (b *Browser) Mark(ctx context.Context, phase string, done bool) error {
	return b.ask(ctx, request{"verb": "mark", "phase": phase, "done": done}, nil, nil)
}

// HandOver sends cookies of the browser with requests of the network binding to these
// hosts, if the manifest lists them and the owner's policy allows it. It returns the
// reasons for hosts that were refused.
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

// request is a call to the browser, before it is encoded.
type request map[string]any

// ask makes a call and decodes its reply into v, unless v is nil.
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

// A PageOption refines a call to the browser.
type PageOption func(request)

func pageOption(name string, value any) PageOption { return func(q request) { q[name] = value } }

// Expecting says what an action must bring about. Without it, filling, selecting, checking
// and adjusting are verified by their own result, but a click, which could mean anything,
// stays unverified until Expect.
func Expecting(c Condition) PageOption { return pageOption("expect", c) }

// Intent explains the purpose of an action to readers of the timeline.
func Intent(text string) PageOption { return pageOption("intent", text) }

// Deadline bounds a call including recovery, between half a second and a minute. The
// default is ten seconds.
func Deadline(d time.Duration) PageOption { return pageOption("deadline_ms", d.Milliseconds()) }

// Idempotent states that repeating an action has no further effect. Without it the host
// never repeats an action that may have effects beyond the page.
func Idempotent() PageOption { return pageOption("idempotent", true) }

// Declared names the action of the manifest that a call performs.
func Declared(name string) PageOption { return pageOption("declared", name) }

// OnTab acts on the given tab instead of the active one.
func OnTab(id string) PageOption { return pageOption("tab", id) }

// AcceptDialog accepts a dialog that the action opens. By default dialogs are dismissed.
func AcceptDialog() PageOption { return pageOption("on_dialog", "accept") }

// AnswerPrompt accepts a dialog that the action opens and answers a prompt with text. The
// page's script reads the text, so it must not be a secret.
func AnswerPrompt(text string) PageOption {
	return func(q request) { q["on_dialog"], q["dialog_text"] = "accept", text }
}

// HTTPLogin gives the credentials for HTTP authentication during Navigate. They may be
// handles of sealed secrets whose destination is the server's whole origin with the
// placement header:authorization.
func HTTPLogin(username, password string) PageOption {
	return pageOption("http_auth", map[string]any{"username": valueOf(username), "password": valueOf(password)})
}

// Held keeps the button of a click pressed for d, at most 5 s.
func Held(d time.Duration) PageOption { return pageOption("hold_ms", d.Milliseconds()) }

// Forced carries out an action even if its result is already true.
func Forced() PageOption { return pageOption("force", true) }

// Preexisting accepts a condition that was already true before the action.
func Preexisting() PageOption { return pageOption("allow_preexisting", true) }

// Rebound allows or forbids that an element targeted by its id is replaced by the only
// similar one. Verbs that change only the page, such as Fill, allow it by default.
func Rebound(on bool) PageOption { return pageOption("rebind", on) }

// Proof sets how an action is verified: the time window (500 to 1500 ms) and how many
// consecutive looks at the page must agree (2 to 5).
func Proof(window time.Duration, looks int) PageOption {
	return pageOption("verify", map[string]any{"window_ms": window.Milliseconds(), "stable_count": looks})
}

// NoRecovery reports the first failure instead of trying to recover.
func NoRecovery() PageOption {
	return pageOption("recovery", map[string]any{"max_recovery_attempts": 0})
}

// Profile selects one of the connection's browser profiles.
func Profile(name string) PageOption { return pageOption("profile", name) }

// Ephemeral opens a profile that is deleted at the end.
func Ephemeral() PageOption { return pageOption("persistent", false) }

// Viewport sets the size of the page in CSS pixels.
func Viewport(width, height int) PageOption {
	return pageOption("viewport", map[string]any{"width": width, "height": height})
}

// Establish opens a browser in which the connector itself signs in; see Mark.
func Establish() PageOption { return pageOption("establish", true) }

// Traced records a trace that the owner can replay.
func Traced() PageOption { return pageOption("trace", true) }

// WithSession checks on Open whether the owner is signed in.
func WithSession(s Session) PageOption {
	probe := map[string]any{}
	if s.ProbeURL != "" {
		probe["url"] = s.ProbeURL
	}
	if s.Expect.members != nil {
		probe["expect"] = s.Expect
	}
	out := map[string]any{"probe": probe}
	if s.LoginURL != "" {
		out["login_url"] = s.LoginURL
	}
	if s.Message != "" {
		out["message"] = s.Message
	}
	if s.Timeout > 0 {
		out["timeout_seconds"] = int64(s.Timeout.Seconds())
	}
	return pageOption("session", out)
}
