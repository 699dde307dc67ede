package engine

import (
	"slices"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/abi"
)

func at(name string, i int) string { return name + "[" + strconv.Itoa(i) + "]" }

// Conditions of wait (B148).
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

// lengthen makes room for d in a deadline that the request does not name (B7).
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
		if !v.Is(abi.KindObject) {
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
		Limit: p.clamped("limit", 256, 1, 2000), LogLines: p.clamped("log_lines", 200, 1, 1000), ActionID: p.text("action_id", maxName),
	}
	if a.Include = p.words("include", "elements", "screenshot", "console", "diagnostics"); a.Include == nil {
		a.Include = []string{"elements"}
	}
	if a.ActionID == "" && slices.Contains(a.Include, "diagnostics") {
		p.wrong("string", "action_id") // B62
	}
	p.r.Snapshot = a
}

func (p *parser) screenshot() {
	a := ScreenshotArgs{Format: p.word("format", "jpeg", "png"), Quality: p.clamped("quality", 70, 1, 100), Full: p.flag("full_page", false)}
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
