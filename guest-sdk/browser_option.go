package guest

import "time"

// A PageOption refines a call to the browser.
type PageOption func(request)

func pageOption(name string, value any) PageOption { return func(q request) { q[name] = value } }

// Expecting says what an action must bring about. Without one, filling, choosing,
// checking and adjusting prove themselves; a click, which could mean anything, is
// left unproved until Expect (B53).
func Expecting(c Condition) PageOption { return pageOption("expect", c) }

// Intent says, for the timeline's readers, what an action is for.
func Intent(text string) PageOption { return pageOption("intent", text) }

// Deadline bounds a call, recovery included: half a second to a minute, ten seconds
// without it.
func Deadline(d time.Duration) PageOption { return pageOption("deadline_ms", d.Milliseconds()) }

// Idempotent states that doing an action twice equals doing it once. Only then
// does the host ever repeat one that may have effects beyond the page (B96).
func Idempotent() PageOption { return pageOption("idempotent", true) }

// Declared names an action of the manifest (B9).
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
// origin, with the placement header:authorization (§18).
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
// it, or forbids it (B130). Filling, choosing and the like may without this.
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
