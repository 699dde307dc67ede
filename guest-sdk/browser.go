package guest

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// A Browser is the browser of a run, which the host owns. A connector
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
// it sends them when they are not.
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
// watchdog waits. Done ends it.
func (b *Browser) Mark(ctx context.Context, phase string, done bool) error {
	return b.ask(ctx, request{"verb": "mark", "phase": phase, "done": done}, nil, nil)
}

// HandOver has cookies of the browser sent with requests of the network binding
// to these hosts, as far as the manifest lists them and the owner's policy allows
// it. It returns why hosts were refused, by host.
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

// A PageOption refines a call to the browser.
type PageOption func(request)

func pageOption(name string, value any) PageOption { return func(q request) { q[name] = value } }

// Expecting says what an action must bring about. Without one, filling, choosing,
// checking and adjusting prove themselves; a click, which could mean anything, is
// left unproved until Expect.
func Expecting(c Condition) PageOption { return pageOption("expect", c) }

// Intent says, for the timeline's readers, what an action is for.
func Intent(text string) PageOption { return pageOption("intent", text) }

// Deadline bounds a call, recovery included: half a second to a minute, ten seconds
// without it.
func Deadline(d time.Duration) PageOption { return pageOption("deadline_ms", d.Milliseconds()) }

// Idempotent states that doing an action twice equals doing it once. Only then
// does the host ever repeat one that may have effects beyond the page.
func Idempotent() PageOption { return pageOption("idempotent", true) }

// Declared names an action of the manifest.
func Declared(name string) PageOption { return pageOption("declared", name) }

// OnTab acts on another tab than the active one.
func OnTab(id string) PageOption { return pageOption("tab", id) }

// AcceptDialog accepts a dialog that the action opens; without it one is dismissed.
func AcceptDialog() PageOption { return pageOption("on_dialog", "accept") }

// AnswerPrompt accepts a dialog that the action opens, and answers a prompt with text.
// The page's script gets it: it is no place for a secret.
func AnswerPrompt(text string) PageOption {
	return func(q request) { q["on_dialog"], q["dialog_text"] = "accept", text }
}

// HTTPLogin answers the server of a Navigate when it asks for a login by HTTP. The
// values may be handles of sealed secrets whose destination is the server's whole
// origin, with the placement header:authorization.
func HTTPLogin(username, password string) PageOption {
	return pageOption("http_auth", map[string]any{"username": valueOf(username), "password": valueOf(password)})
}

// Held keeps the button of a click pressed for as long, at most 5 s.
func Held(d time.Duration) PageOption { return pageOption("hold_ms", d.Milliseconds()) }

// Forced carries an action out although what it is for is true already.
func Forced() PageOption { return pageOption("force", true) }

// Preexisting lets a condition count that was true before the action.
func Preexisting() PageOption { return pageOption("allow_preexisting", true) }

// Rebound lets an element that is meant by its id be replaced by the only one like
// it, or forbids it. Filling, choosing and the like may without this.
func Rebound(on bool) PageOption { return pageOption("rebind", on) }

// Proof changes how long and how often the page is looked at for a proof: the
// window (500 to 1500 ms) and how many looks in a row must agree (2 to 5).
func Proof(window time.Duration, looks int) PageOption {
	return pageOption("verify", map[string]any{"window_ms": window.Milliseconds(), "stable_count": looks})
}

// NoRecovery reports the first failure.
func NoRecovery() PageOption {
	return pageOption("recovery", map[string]any{"max_recovery_attempts": 0})
}

// Profile names the profile to open, among those of the connection.
func Profile(name string) PageOption { return pageOption("profile", name) }

// Ephemeral opens a profile that is forgotten at the end.
func Ephemeral() PageOption { return pageOption("persistent", false) }

// Viewport is the size of the page in CSS pixels.
func Viewport(width, height int) PageOption {
	return pageOption("viewport", map[string]any{"width": width, "height": height})
}

// Establish opens a browser in which the connector signs in by itself, with Mark.
func Establish() PageOption { return pageOption("establish", true) }

// Traced asks for a trace that the owner can replay.
func Traced() PageOption { return pageOption("trace", true) }

// WithSession checks, when the browser is opened, whether the owner is signed in.
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
