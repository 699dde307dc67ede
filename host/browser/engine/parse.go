package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/browser/page"
)

// Bounds of requests, in bytes unless said otherwise.
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

// Parse parses and checks a request: types, bounds and clamps. base holds the connection's default
// settings. The refusal names the member that is wrong. The request is not retained.
func Parse(request []byte, base Settings) (*Request, *Refusal) {
	if len(request) > MaxRequest {
		return nil, &Refusal{Code: "invalid_request", Message: "a request may have 262144 bytes"}
	}
	v, err := strictjson.Parse(request, strictjson.ParseOptions{MaxValues: maxValues})
	if err != nil {
		return nil, &Refusal{Code: "invalid_request", Message: "a request is one JSON object: " + err.Error()}
	}
	bad := &problem{}
	p := parser{object: newObject(v, "", bad), r: &Request{}, base: base}
	p.verb()
	if bad.code == "" {
		p.common()
		if read := own[p.r.Verb]; read != nil {
			read(&p)
		}
	}
	if bad.code != "" {
		return nil, &Refusal{Code: bad.code, Message: bad.message, Verb: p.r.Verb}
	}
	return p.r, nil
}

// A parser fills in one request.
type parser struct {
	object
	r    *Request
	base Settings
	// leaves counts the predicates of the delta being parsed.
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
	for _, m := range []string{"action_type", "effect"} {
		if _, ok := p.members[m]; ok {
			p.refuse(m, "the effect of an action is the host's to say")
		}
	}
}

// common reads the members that every verb may have.
func (p *parser) common() {
	r := p.r
	if p.has("tab") { // "" is no tab: a guest that lost the name must not close another tab
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
	r.Rebind, r.Force, r.AllowPreexist = p.flag("rebind", false), p.flag("force", false),
		p.flag("allow_preexisting", false)
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

// dialogText reads the answer to prompts. The page's script receives it, so handles of secrets are
// refused.
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

func (p *parser) open() {
	a := OpenArgs{
		Profile: p.text("profile", maxText), Persistent: p.flag("persistent", true), URL: p.text("url", maxURL),
		Viewport: p.viewport(), Trace: p.flag("trace", false), Establish: p.flag("establish", false), Session: p.session(),
	}
	if p.has("profile") && !abi.IsProfileName(a.Profile) {
		p.bad.set("profile_name_invalid", "profile name required, must be [A-Za-z0-9_-]+")
	}
	p.r.Open = a
}

// viewport reads the viewport, 1280×720 by default. Sides are clamped to 240..3840 pixels.
func (p *parser) viewport() page.Viewport {
	v := page.Viewport{Width: 1280, Height: 720, Scale: 1}
	if o, ok := p.object.object("viewport"); ok {
		v.Width, v.Height = o.clamped("width", v.Width, 240, 3840), o.clamped("height", v.Height, 240, 3840)
	}
	return v
}

// session reads the session flow. Without a probe, login_url and message are allowed and have no
// effect.
func (p *parser) session() *Session {
	o, ok := p.object.object("session")
	if !ok {
		return nil
	}
	s := &Session{LoginURL: o.text("login_url", maxURL), Message: o.text("message", maxPath)}
	s.Owner = o.millis("timeout_seconds", 600, 10, 3600) * 1000
	probe, ok := o.object("probe")
	if !ok {
		return s
	}
	s.ProbeURL, s.Timeout = probe.text("url", maxURL), probe.millis("timeout_ms", 15_000, 1000, 60_000)
	if !probe.has("expect") {
		probe.wrong("object", "expect")
		return s
	}
	p.leaves = 0
	s.Expect = p.delta(probe, "expect", probe.members["expect"], 1)
	return s
}

func at(name string, i int) string { return name + "[" + strconv.Itoa(i) + "]" }

// Conditions of wait.
var elementConditions = []string{"exists", "not_exists", "visible", "hidden", "clickable"}

func (p *parser) wait() {
	a := WaitArgs{For: p.must("for", 64), Attempts: 1}
	aboutElement := slices.Contains(elementConditions, a.For)
	switch {
	case p.bad.code != "":
		return
	case !aboutElement && !slices.Contains([]string{"load", "navigation", "page_change", "ui_change"}, a.For):
		p.bad.set("INVALID_CONDITION", "there is no condition %.40q", a.For)
		return
	case aboutElement && p.r.Target == nil:
		p.wrong("object", "target")
	}
	if o, ok := p.object.object("match"); ok {
		a.Index = o.intp("index")
	}
	a.Timeout = p.millis("timeout_ms", 10_000, 500, 60_000)
	if o, ok := p.object.object("retry"); ok {
		a.Attempts, a.Backoff = o.clamped("max_attempts", 1, 1, 5), o.millis("backoff_ms", 0, 0, 5000)
	}
	if p.has("expected_change") {
		a.Change = p.word("expected_change", "hierarchy_diff", "text_change", "state_change")
	}
	a.Stability = p.millis("stability_window_ms", 250, 0, 2000)
	if n := p.intp("since_revision"); n != nil {
		since := int64(*n)
		a.Since = &since
	}
	a.Fingerprint = p.text("previous_fingerprint", maxName)
	p.r.Wait = a
	p.lengthen(time.Duration(a.Attempts)*a.Timeout + time.Duration(a.Attempts-1)*a.Backoff)
	p.r.Deadline = max(p.r.Deadline, a.Timeout)
}

// lengthen raises a default deadline to at least d.
func (p *parser) lengthen(d time.Duration) {
	if !p.has("deadline_ms") {
		p.r.Deadline = max(p.r.Deadline, d)
	}
}

func (p *parser) expect() {
	p.r.ExpectArgs.ActionID = p.text("action_id", maxName)
	if p.has("timeout_ms") {
		p.r.ExpectArgs.Timeout = p.millis("timeout_ms", 5000, 500, 60_000)
	}
	p.r.Deadline = max(p.r.Deadline, p.r.ExpectArgs.Timeout)
	if p.r.Expect = p.predicate("expect"); p.r.Expect == nil {
		p.wrong("object", "expect")
	}
}

// Bounds of extract.
const (
	maxItems   = 64
	maxColumns = 100
)

func (p *parser) extract() {
	items := p.items("items", maxItems)
	if len(items) == 0 {
		p.wrong("array", "items")
	}
	var names []string
	for i, v := range items {
		if !v.Is(strictjson.KindObject) {
			p.wrong("object", at("items", i))
			return
		}
		item := extractItem(newObject(v, at("items", i)+".", p.bad))
		if slices.Contains(names, item.Name) {
			p.refuse(at("items", i)+".name", "every item has a name of its own")
		}
		names = append(names, item.Name)
		p.r.Extract = append(p.r.Extract, item)
	}
}

func extractItem(o object) ExtractItem {
	i := ExtractItem{
		Name: o.must("name", maxName), Take: oneOf(o, "take", "text", "attribute", "value", "table", "links", "jsonld"),
		Target: target(o, "target", 1), All: o.flag("all", false), Columns: o.texts("columns", maxColumns, maxField),
	}
	switch {
	case i.Take == "attribute":
		i.Attribute = attribute(o, "attribute")
	case o.has("attribute"):
		o.refuse("attribute", "for take attribute only")
	}
	if i.Target == nil && (i.Take == "attribute" || i.Take == "value" || i.Take == "text") {
		o.wrong("object", "target")
	}
	return i
}

func (p *parser) snapshot() {
	a := SnapshotArgs{
		Query: usable(p.object, "query"), Exact: p.flag("exact", false), Within: target(p.object, "within", 1),
		Limit: p.clamped("limit", 256, 1, 2000), LogLines: p.clamped("log_lines", 200, 1, 1000),
		ActionID: p.text("action_id", maxName),
	}
	if a.Include = p.words("include", "elements", "screenshot", "console", "diagnostics"); a.Include == nil {
		a.Include = []string{"elements"}
	}
	if a.ActionID == "" && slices.Contains(a.Include, "diagnostics") {
		p.wrong("string", "action_id")
	}
	p.r.Snapshot = a
}

func (p *parser) screenshot() {
	a := ScreenshotArgs{Format: p.word("format", "jpeg", "png"), Quality: p.clamped("quality", 70, 1, 100),
		Full: p.flag("full_page", false)}
	if a.Full && p.r.Target != nil {
		p.refuse("full_page", "a target or the full page, not both")
	}
	p.r.Screenshot = a
}

func (p *parser) cookies() {
	oneOf(p.object, "to", "network")
	a := CookiesArgs{Hosts: p.texts("hosts", 64, 255), Names: p.texts("names", 64, 255)}
	if len(a.Hosts) == 0 {
		p.wrong("array", "hosts")
	}
	p.r.Cookies = a
}
