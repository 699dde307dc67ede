package engine

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
)

// Bounds of requests (section 1), in bytes unless said otherwise.
const (
	MaxRequest    = 256 << 10
	MaxReply      = 1 << 20
	maxValues     = 20_000 // JSON values
	maxIntent     = 200    // characters
	maxName       = 128
	maxField      = 1024 // of a selector
	maxCSS        = 2048
	maxText       = 64 << 10
	maxURL        = 8 << 10
	maxPath       = 4096
	maxCandidates = 10_000 // of an index
)

// Parse reads a request and checks all of it: types, bounds, defaults and clamps
// (B7, B10, B66). The refusal names the field. Nothing of request is kept.
func Parse(request []byte) (*Request, *Refusal) { return ParseWith(request, DefaultSettings) }

// ParseWith is Parse with the settings of a connection (B66).
func ParseWith(request []byte, base Settings) (*Request, *Refusal) {
	if len(request) > MaxRequest {
		return nil, &Refusal{Code: "invalid_request", Message: "a request may have 262144 bytes"}
	}
	v, err := abi.Parse(request, abi.ParseOptions{MaxValues: maxValues})
	if err != nil {
		return nil, &Refusal{Code: "invalid_request", Message: "a request is one JSON object: " + err.Error()}
	}
	bad := &problem{}
	p := parser{object: newObject(v, "", bad), r: &Request{}, base: base}
	p.verb()
	if bad.code == "" {
		p.common()
		p.own()
	}
	if bad.code != "" {
		return nil, &Refusal{Code: bad.code, Message: bad.message, Verb: p.r.Verb}
	}
	return p.r, nil
}

// A parser fills one request.
type parser struct {
	object
	r    *Request
	base Settings
	// leaves counts the predicates of the delta being read.
	leaves int
}

func (p *parser) verb() {
	name := p.must("verb", maxName)
	if p.bad.code != "" {
		return
	}
	if !Verb(name).Known() {
		p.bad.set("unknown_verb", "there is no verb %.40q", name)
		return
	}
	p.r.Verb = Verb(name)
	for _, m := range []string{"action_type", "effect"} { // B46
		if _, ok := p.members[m]; ok {
			p.refuse(m, "the effect of an action is the host's to say")
		}
	}
}

// common reads the members that every verb may have.
func (p *parser) common() {
	r := p.r
	if p.has("tab") { // "" is no tab: a guest that lost its name closes nothing else
		r.Tab = p.must("tab", 32)
	}
	r.Declared = p.text("declared", maxName)
	r.Intent = p.text("intent", 4*maxIntent)
	if utf8.RuneCountInString(r.Intent) > maxIntent {
		p.refuse("intent", "at most %d characters", maxIntent)
	}
	r.Deadline = p.millis("deadline_ms", 10_000, 500, 60_000)
	r.Actionable = p.millis("actionable_timeout_ms", 5000, 0, 30_000)
	r.Idempotent = p.flagp("idempotent")
	r.Rebind, r.Force, r.AllowPreexist = p.flag("rebind", false), p.flag("force", false), p.flag("allow_preexisting", false)
	r.AcceptDialog = p.word("on_dialog", "dismiss", "accept") == "accept"
	p.dialogText()
	r.MaxRecovery, r.MaxRetryDepth = 3, 3
	if o, ok := p.object.object("recovery"); ok {
		r.MaxRecovery = o.clamped("max_recovery_attempts", 3, 0, 3)
		r.MaxRetryDepth = o.clamped("max_retry_depth", 3, 0, 3)
	}
	p.settings()
	p.target()
	if r.Verb.IsAction() {
		r.Expect = p.predicate("expect")
	}
}

func (p *parser) settings() {
	s := p.base
	if o, ok := p.object.object("verify"); ok {
		ms := func(name string, otherwise time.Duration) time.Duration {
			return time.Duration(o.clamped(name, int(otherwise.Milliseconds()), 1, 60_000)) * time.Millisecond
		}
		s = Settings{
			Window: ms("window_ms", s.Window), Interval: ms("interval_ms", s.Interval), Stale: ms("stale_ms", s.Stale),
			Count: o.clamped("stable_count", s.Count, 1, 100), MaxRecheck: o.clamped("max_recheck", s.MaxRecheck, 1, 100),
		}
	}
	p.r.Verify = s.Clamped(p.r.Verb.IsAction())
}

func (p *parser) target() {
	switch verbs[p.r.Verb].target {
	case required:
		if !p.has("target") {
			p.wrong("object", "target")
			return
		}
		fallthrough
	case optional:
		p.r.Target = target(p.object, "target", 1)
	}
}

// dialogText reads what prompts are answered with. A page shows it to nobody else, but
// its script gets it: no secret goes this way.
func (p *parser) dialogText() {
	p.r.DialogText = p.textp("dialog_text", maxField)
	switch {
	case p.r.DialogText == nil:
	case !p.r.AcceptDialog:
		p.refuse("dialog_text", "only with on_dialog accept")
	case strings.Contains(*p.r.DialogText, handlePrefix):
		p.bad.set("sealed_placement_denied", "dialog_text: a sealed handle is no plain text")
	}
}
