package abi

import (
	"fmt"
	"slices"
	"strings"
)

// A BrowserRequest is what a manifest asks of the browser binding. The network binding has
// its hosts. Zero members mean the host's defaults.
type BrowserRequest struct {
	Profile       string   `json:"profile,omitempty"`
	Uploads       bool     `json:"uploads,omitempty"`
	Downloads     bool     `json:"downloads,omitempty"`
	Popups        string   `json:"popups,omitempty"`         // tab, deny or ""
	CookieHandoff []string `json:"cookie_handoff,omitempty"` // exact host names
	// MaxActions can only lower the host's limit, per minute.
	MaxActions int64            `json:"max_actions_per_minute,omitempty"`
	Actions    []DeclaredAction `json:"actions,omitempty"`
}

// A DeclaredAction is an action that the author declares in advance, so that an owner can
// review it. Requests refer to it by name.
type DeclaredAction struct {
	Name       string `json:"name"`
	Verb       string `json:"verb"`
	ActionType string `json:"action_type"`          // local_state or side_effect
	Idempotent *bool  `json:"idempotent,omitempty"` // nil means as the verb is
	Category   string `json:"category,omitempty"`
}

// What becomes of a popup.
const (
	PopupTab  = "tab"
	PopupDeny = "deny"
)

// Bounds of a manifest's browser request.
const (
	maxHandoffHosts    = 32
	maxDeclaredActions = 256
	maxActionsAMinute  = 6000
)

// actionVerbs are the verbs that act; only they can be declared.
var actionVerbs = []string{"navigate", "click", "type", "fill", "clear", "press", "select", "check", "adjust",
	"scroll", "hover", "upload"}

var actionCategories = []string{"Navigation", "Input", "Selection", "Gesture", "ControlAdjustment"}

// browser reads the members of the binding. It ignores hosts like any unknown member: a
// browser reaches the hosts of the network binding.
func (r *manifestReader) browser(a at, of *Binding) {
	b := &BrowserRequest{
		Uploads: r.flag(a.member("uploads")), Downloads: r.flag(a.member("downloads")),
		Popups: r.oneOf(a.member("popups"), false, PopupTab, PopupDeny),
	}
	if p := a.member("profile"); !p.Absent() {
		b.Profile, _ = p.Text()
		if !IsProfileName(b.Profile) {
			r.fail(p, "profile_name_invalid", "^[A-Za-z0-9_-]{1,64}$")
		}
	}
	r.list(a.member("cookie_handoff"), maxHandoffHosts, func(i at) {
		host, _ := i.Text()
		if !isPlainHost(host) {
			r.fail(i, "handoff_host", "the name of one host in lower case, without port and pattern")
		}
		b.CookieHandoff = append(b.CookieHandoff, host)
	})
	if n := a.member("max_actions_per_minute"); !n.Absent() {
		v, ok := n.SafeInteger()
		if !ok || v < 1 || v > maxActionsAMinute {
			r.fail(n, "rate", fmt.Sprintf("an integer from 1 to %d", maxActionsAMinute))
		}
		b.MaxActions = v
	}
	r.list(a.member("actions"), maxDeclaredActions, func(i at) {
		if r.object(i, true) {
			b.Actions = append(b.Actions, r.declaredAction(i, b.Actions))
		}
	})
	of.Browser = b
}

func (r *manifestReader) declaredAction(a at, before []DeclaredAction) DeclaredAction {
	d := DeclaredAction{
		Name: r.text(a.member("name"), 64, true), Verb: r.oneOf(a.member("verb"), true, actionVerbs...),
		ActionType: r.oneOf(a.member("action_type"), true, "local_state", "side_effect"),
		Category:   r.oneOf(a.member("category"), false, actionCategories...),
	}
	switch {
	case !isFieldName(d.Name):
		r.fail(a.member("name"), "action_name_invalid", "^[A-Za-z0-9_.-]{1,64}$")
	case slices.ContainsFunc(before, func(o DeclaredAction) bool { return o.Name == d.Name }):
		r.fail(a.member("name"), "action_duplicate", "a name that no other action has")
	}
	if i := a.member("idempotent"); !i.Absent() {
		twice := r.flag(i)
		d.Idempotent = &twice
	}
	return d
}

// IsProfileName reports whether s names a browser profile: ^[A-Za-z0-9_-]{1,64}$.
func IsProfileName(s string) bool {
	return isFieldName(s) && !strings.Contains(s, ".")
}

// isPlainHost reports whether s is a single host name in lower case, not a pattern.
func isPlainHost(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 253 && s[0] != '.' && s[0] != '-' && s[len(s)-1] != '.'
}
