package app_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// browsing is a module on standard streams that makes one call of the browser binding and
// ends.
const browsing = "\x00asm\x01\x00\x00\x00" + "\x01\x0a\x02\x60\x02\x7f\x7f\x01\x7e\x60\x00\x00" +
	"\x02\x1a\x01\x11sluice_v1_browser\x04call\x00\x00" +
	"\x03\x02\x01\x01" + "\x05\x04\x01\x01\x01\x01" + "\x07\x13\x02\x06_start\x00\x01\x06memory\x02\x00" +
	"\x0a\x0b\x01\x09\x00\x41\x00\x41\x00\x10\x00\x1a\x0b"

// asksBrowser is a manifest that asks for one.
func asksBrowser(id, browser string) string {
	return manifestOf(id, "1", `"network": {"hosts": ["shop.example"]}, "browser": `+browser, `{"secrets": [
		{"name": "password", "destinations": [{"origin": "https://shop.example", "placements": ["browser_fill"]}]}]}`)
}

// lender lends browsers that do nothing.
type lender struct {
	mu      sync.Mutex // guards what follows
	problem string
	leases  []browser.SessionOptions
	calls   int
	closed  int
	gone    []store.ConnectionID
}

func (l *lender) Facts(context.Context) browser.Facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return browser.Facts{Browser: "Chromium 150", Problem: l.problem, Egress: "namespace", UID: "own", Max: 4}
}

func (l *lender) NewSession(q browser.SessionOptions) (app.Browser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problem != "" {
		return nil, errors.New(l.problem)
	}
	l.leases = append(l.leases, q)
	return lent{l}, nil
}

func (l *lender) Forget(_ context.Context, id store.ConnectionID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = append(l.gone, id)
	return nil
}

func (l *lender) Close(context.Context) error { return nil }

type lent struct{ l *lender }

func (b lent) Begin(string, binding.Run) {}
func (b lent) Handle(context.Context, abi.Call, []byte) ([]byte, abi.Errno) {
	b.l.mu.Lock()
	defer b.l.mu.Unlock()
	b.l.calls++
	return nil, abi.EINVAL
}
func (b lent) Takes(call abi.Call, _ []byte) bool                       { return call == abi.CallBrowser }
func (b lent) Seal(string, string, string, [][]byte, []abi.Destination) {}
func (b lent) Surface() abi.Attachment                                  { return abi.Attachment{} }
func (b lent) Probe(context.Context) abi.Attachment                     { return abi.Attachment{} }
func (b lent) Page(context.Context) (string, string)                    { return "", "" }
func (b lent) Spent() bool                                              { return false }
func (b lent) Registered() bool                                         { return false }
func (b lent) Asked(string, string, time.Time)                          {}
func (b lent) Answered(string)                                          {}
func (b lent) Assisted(string, *abi.AssistanceMessage)                  {}
func (b lent) Paused(bool)                                              {}
func (b lent) Close(context.Context) error {
	b.l.mu.Lock()
	defer b.l.mu.Unlock()
	b.l.closed++
	return nil
}

// A browser is lent to a run of which the manifest asks for it, the owner approved it and the
// module can use it; and comes back.
func TestBrowserIsLent(t *testing.T) {
	h := serviceHost(t)
	l := &lender{}
	h.Options.Browsers = l
	wasm, err := sandbox.EmbedManifest([]byte(browsing),
		[]byte(asksBrowser("shop", `{"required": true, "uploads": true, "profile": "Shop"}`)))
	if err != nil {
		t.Fatal(err)
	}
	c := installAs(t, h, wasm, nil)
	connect(t, h, c, "shop", "")
	loaded, err := h.Load(t.Context(), "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	start := func(q app.RunRequest) (*run.Run, error) {
		q.Connector, q.Existing = loaded, true
		return h.Start(t.Context(), q)
	}
	code := func(err error) string {
		var r *run.Refusal
		errors.As(err, &r)
		if r == nil {
			return ""
		}
		return r.Code
	}
	if _, err := start(app.RunRequest{}); code(err) != "binding_not_approved" {
		t.Errorf("not approved: %v", err)
	}
	approved := store.Approved{Browser: true, Hosts: []string{"shop.example"}}
	l.problem = "no browser was found"
	if _, err := start(app.RunRequest{Approved: approved}); code(err) != "binding_unsatisfied" {
		t.Errorf("no browser: %v", err)
	}
	l.problem = ""
	r, err := start(app.RunRequest{Approved: approved, Trace: true, Trigger: "scheduled"})
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Do(t.Context())
	if err != nil || *result.TerminalReason != "connector_exit_without_done" {
		t.Errorf("%+v, %v", result, err)
	}
	if l.calls != 1 || l.closed != 1 || len(l.leases) != 1 {
		t.Fatalf("%d calls, closed %d times, %d leases", l.calls, l.closed, len(l.leases))
	}
	q := l.leases[0]
	if q.Connection != "shop" || q.Connector != "shop" || !q.Request.Uploads || q.Request.Profile != "Shop" || !q.Trace ||
		!q.Scheduled || q.Interactive ||
		q.Policy == nil || !q.Untrusted {
		t.Errorf("lease %+v", q)
	}
	loaded.Connector.Signer = &store.Signer{KeyID: "k"} // A publisher vouches for it
	if r, err = start(app.RunRequest{Approved: approved}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Do(t.Context()); err != nil || len(l.leases) != 2 || l.leases[1].Untrusted {
		t.Errorf("%d leases, %v", len(l.leases), err)
	}
	// A module that has no import for it is lent none.
	plain := installAs(t, h, module(t, asksBrowser("plain", `{}`)), nil)
	connect(t, h, plain, "plain", "")
	if loaded, err = h.Load(t.Context(), "plain", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := start(app.RunRequest{Approved: approved}); err != nil || len(l.leases) != 2 {
		t.Errorf("%d leases, %v", len(l.leases), err)
	}
}

// What an owner approves of a browser, under which profile, and that it goes with the
// connection.
func TestBrowserApproval(t *testing.T) {
	s, h := service(t)
	l := &lender{}
	h.Options.Browsers = l
	upload(t, s, asksBrowser("shop", `{"required": true, "downloads": true, "cookie_handoff": ["shop.example"],
		"actions": [{"name": "tick", "verb": "click", "action_type": "local_state", "idempotent": true}]}`))
	upload(t, s, manifestOf("mute", "1", "", ""))
	upload(t, s, manifestOf("pages", "1", `"browser": {}`, ""))
	for id, connector := range map[string]string{"one": "shop", "two": "shop", "mute": "mute", "pages": "pages"} {
		if _, err := s.CreateConnection(host.As(t.Context(), somebody),
			host.NewConnection{ConnectorName: connector, ConnectionID: id}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GrantConnection(host.As(t.Context(), somebody), store.ConnectionID(id),
			host.GrantTerms{}); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := s.Requested(t.Context(), "one")
	if err != nil || len(asked.Missing) == 0 ||
		!slices.ContainsFunc(asked.Missing, func(w string) bool { return strings.HasPrefix(w, "act in a browser") }) ||
		!slices.Contains(asked.Words, "make requests of its own as the one who is signed in at shop.example") ||
		asked.Bindings["browser"].Browser == nil {
		t.Errorf("%+v, %v", asked, err)
	}
	approve := func(id store.ConnectionID, b *host.BrowserBinding) (host.Bindings, error) {
		return s.ApproveBindings(host.As(t.Context(), somebody), id, host.Bindings{Browser: b})
	}
	_, err = approve("mute", &host.BrowserBinding{})
	refused(t, err, "binding_not_requested", "binding_not_requested")
	// The pages of a connector that names no server are on servers of the owner's choice.
	elsewhere := host.Bindings{Network: &host.NetworkBinding{Hosts: []string{"http://127.0.0.1:8093"}}}
	if _, err := s.ApproveBindings(host.As(t.Context(), somebody), "pages", elsewhere); err != nil {
		t.Error(err)
	}
	for _, id := range []store.ConnectionID{"one", "mute"} {
		_, err := s.ApproveBindings(host.As(t.Context(), somebody), id, elsewhere)
		refused(t, err, "binding_not_requested", "binding_not_requested")
	}
	_, err = approve("one", &host.BrowserBinding{Profile: "../../etc"})
	refused(t, err, "validation_error", "profile_name_invalid", "../../etc")
	_, err = approve("one", &host.BrowserBinding{Profile: "TWO"})
	refused(t, err, "validation_error", "profile_name_taken")
	got, err := approve("one", &host.BrowserBinding{Profile: "Mine"})
	if err != nil || got.Browser == nil || got.Browser.Profile != "Mine" || !stored(t, h, "one").Approved.Browser {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = approve("two", &host.BrowserBinding{Profile: "mine"})
	refused(t, err, "validation_error", "profile_name_taken")
	name := "mine"
	_, err = s.ChangeConnection(host.As(t.Context(), somebody), "two", host.ChangeConnection{ProfileName: &name}, nil)
	refused(t, err, "validation_error", "profile_name_taken")
	if asked, err = s.Requested(t.Context(), "one"); err != nil ||
		slices.ContainsFunc(asked.Missing, func(w string) bool { return strings.Contains(w, "browser") }) {
		t.Errorf("missing %q, %v", asked.Missing, err)
	}
	if c, err := s.Connection(t.Context(), "two"); err != nil || !slices.Contains(c.NotReady, "binding_not_approved") {
		t.Errorf("%v, %v", c.NotReady, err)
	}
	l.problem = "gone"
	if c, err := s.Connection(t.Context(), "one"); err != nil || !slices.Contains(c.NotReady, "binding_unsatisfied") {
		t.Errorf("%v, %v", c.NotReady, err)
	}
	was := stored(t, h, "one").Withdrawals
	if got, err = approve("one", nil); err != nil || got.Browser != nil || stored(t, h, "one").Withdrawals != was+1 {
		t.Errorf("taken back: %+v, %v", got, err)
	}
	if err := s.DeleteConnection(host.As(t.Context(), somebody), "one", false); err != nil ||
		!slices.Equal(l.gone, []store.ConnectionID{"one"}) {
		t.Errorf("forgotten %q, %v", l.gone, err)
	}
}
