//go:build !wasip1

package guesttest

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A pageTarget is a target in the form that connectors send.
type pageTarget struct {
	Element  string `json:"element_id"`
	Selector *struct {
		TestID      string `json:"test_id"`
		ID          string `json:"id"`
		Role        string `json:"role"`
		Name        string `json:"name"`
		Label       string `json:"label"`
		Text        string `json:"text"`
		Placeholder string `json:"placeholder"`
		CSS         string `json:"css"`
		Query       string `json:"query"`
		Contains    string `json:"contains"`
		Exact       *bool  `json:"exact"`
		Index       *int   `json:"index"`
		Within      *pageTarget
	} `json:"selector"`
}

// words describes a target in the log.
func (t *pageTarget) words() string {
	if t == nil {
		return ""
	}
	if t.Selector == nil {
		return t.Element
	}
	s := t.Selector
	return strings.Join(strings.Fields(strings.Join([]string{s.TestID, s.ID, s.Role, s.Name, s.Label, s.Text,
		s.Placeholder, s.CSS, s.Query}, " ")), " ")
}

// find returns the elements that match a target, in the order of the page.
func (p *Pages) find(t *pageTarget) (found []*Element) {
	if p.Page == nil || t == nil {
		return nil
	}
	for i, e := range p.Page.Elements {
		if t.Selector == nil && t.Element == elementID(i) || t.Selector != nil && p.fits(e, t) {
			found = append(found, e)
		}
	}
	if t.Selector != nil && t.Selector.Index != nil {
		i := *t.Selector.Index
		if i < 0 || i >= len(found) {
			return nil
		}
		return found[i : i+1]
	}
	return found
}

func elementID(i int) string { return "el_" + strconv.Itoa(i) }

func (p *Pages) fits(e *Element, t *pageTarget) bool {
	s := t.Selector
	exact := s.Exact == nil || *s.Exact
	for _, pair := range [][2]string{
		{s.TestID, e.TestID}, {s.ID, e.ID}, {s.Role, e.Role}, {s.Name, e.name()}, {s.Label, e.Label}, {s.Text, e.Text},
		{s.Placeholder, e.Placeholder},
	} {
		wanted, have := folded(pair[0]), folded(pair[1])
		if wanted != "" && have != wanted && (exact || !strings.Contains(have, wanted)) {
			return false
		}
	}
	if s.CSS != "" && !slices.Contains(e.CSS, s.CSS) ||
		s.Contains != "" && !strings.Contains(folded(e.Text), folded(s.Contains)) {
		return false
	}
	if s.Query != "" && !strings.Contains(folded(strings.Join([]string{e.Role, e.Name, e.Label, e.Text}, " ")),
		folded(s.Query)) {
		return false
	}
	if s.Within != nil && (e.In == nil || !slices.Contains(p.find(s.Within), e.In)) {
		return false
	}
	return true
}

// A pageCondition is a single condition or a combination.
type pageCondition struct {
	All, Any  []*pageCondition
	Not       *pageCondition
	Kind      string
	Pattern   string `json:"name_matches"`
	Target    *pageTarget
	Op        string
	Name      string
	Value     any
	Equals    any
	Tolerance float64
}

func (p *Pages) holds(c *pageCondition) bool {
	switch {
	case c.Not != nil:
		return !p.holds(c.Not)
	case c.All != nil:
		return !slices.ContainsFunc(c.All, func(o *pageCondition) bool { return !p.holds(o) })
	case c.Any != nil:
		return slices.ContainsFunc(c.Any, p.holds)
	}
	switch c.Kind {
	case "url":
		return compare(c.Op, p.Page.URL, c.Value)
	case "title":
		return compare(c.Op, p.Page.Title, c.Value)
	case "tab":
		return p.tab != ""
	case "download":
		return slices.ContainsFunc(p.downloaded,
			func(d guest.Download) bool { return !d.Denied && matches(c.Pattern, d.Name) })
	case "navigation", "any_change", "in_viewport", "scrolled", "hovered":
		return true // the fake has no time and no layout
	}
	found := p.find(c.Target)
	switch c.Kind {
	case "exists":
		return (len(found) > 0) == (c.Equals != false)
	case "visible":
		return slices.ContainsFunc(found, func(e *Element) bool { return !e.Hidden }) == (c.Equals != false)
	case "count":
		n, _ := c.Value.(float64)
		return map[string]bool{"eq": len(found) == int(n), "gte": len(found) >= int(n), "lte": len(found) <= int(n)}[c.Op]
	}
	return len(found) > 0 && found[0].is(c)
}

// is reports whether a condition holds for one element.
func (e *Element) is(c *pageCondition) bool {
	wanted, _ := c.Equals.(bool)
	switch c.Kind {
	case "text":
		return compare(c.Op, e.Text, c.Value)
	case "text_value", "selected":
		if list, many := c.Equals.([]any); many {
			return e.Multiple && len(list) == len(e.Chosen) && !slices.ContainsFunc(list, func(o any) bool {
				return !slices.ContainsFunc(e.Chosen, func(have string) bool { return o == have })
			})
		}
		return e.Value == c.Equals
	case "attribute":
		return compare(c.Op, e.Attributes[c.Name], c.Value)
	case "value":
		n, ok := c.Equals.(float64)
		return ok && e.Number != nil && math.Abs(*e.Number-n) <= c.Tolerance
	case "checked":
		return e.Checked != nil && *e.Checked == wanted
	case "expanded":
		return e.Expanded != nil && *e.Expanded == wanted
	case "enabled":
		return e.Disabled != wanted
	}
	return false
}

func compare(op, have string, want any) bool {
	w, _ := want.(string)
	switch op {
	case "equals":
		return folded(have) == folded(w)
	case "prefix":
		return strings.HasPrefix(have, w)
	case "contains":
		return strings.Contains(folded(have), folded(w))
	case "matches":
		return matches(w, have)
	}
	return false
}

func matches(pattern, text string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(text)
}

// expect checks a condition, which also verifies the last action.
func (p *Pages) expect(q *pageRequest) map[string]any {
	if q.Expect == nil || p.Page == nil || !p.holds(q.Expect) {
		return map[string]any{"success": false, "failure_code": "EXPECT_STATE_MISMATCH",
			"reason": "the page is not as expected"}
	}
	if p.last != nil {
		p.last.State, p.last.Success = "verified", true
		p.last = nil
	}
	return map[string]any{"success": true, "reason": "the page is as expected"}
}

func (p *Pages) wait(q *pageRequest) map[string]any {
	found := p.find(q.Target)
	shown := slices.ContainsFunc(found, func(e *Element) bool { return !e.Hidden })
	met := map[string]bool{
		"exists": len(found) > 0, "not_exists": len(found) == 0, "visible": shown, "hidden": !shown,
		"clickable": shown && !found[0].Disabled, "load": true, "navigation": true, "page_change": true, "ui_change": true,
	}[q.For]
	if !met {
		return map[string]any{"status": "timeout", "success": false, "reason": "it did not come",
			"error": map[string]string{"code": "ELEMENT_NOT_FOUND",
				"message": "observed " + strconv.Itoa(len(found)) + " match(es)"}}
	}
	out := map[string]any{"status": "success", "matched": len(found) > 0, "success": true}
	if len(found) > 0 {
		out["element"] = p.seen(found[0])
	}
	return out
}

func (p *Pages) seen(e *Element) guest.Element {
	return guest.Element{ID: elementID(slices.Index(p.Page.Elements, e)), StableID: e.TestID, Role: e.Role,
		Label: e.name(), Text: e.Text}
}

func (p *Pages) snapshot() map[string]any {
	list := []guest.Element{}
	for _, e := range p.Page.Elements {
		if !e.Hidden {
			list = append(list, p.seen(e))
		}
	}
	return map[string]any{"snapshot_revision": p.action, "url": p.Page.URL, "title": p.Page.Title, "elements": list}
}

// A pageItem is one item to extract.
type pageItem struct {
	Name, Take, Attribute string
	Target                *pageTarget
	All                   bool
	Columns               []string
}

func (p *Pages) extract(q *pageRequest) map[string]any {
	items := map[string]any{}
	for _, item := range q.Items {
		var all []any
		for _, e := range p.find(item.Target) {
			all = append(all, e.take(item))
		}
		switch {
		case item.All:
			items[item.Name] = append([]any{}, all...)
		case len(all) > 0:
			items[item.Name] = all[0]
		default:
			items[item.Name] = nil
		}
	}
	return map[string]any{"items": items, "truncated": false, "url": p.Page.URL}
}

func (e *Element) take(item pageItem) any {
	switch item.Take {
	case "text":
		return e.Text
	case "value":
		return e.Value
	case "attribute":
		return e.Attributes[item.Attribute]
	case "links":
		return e.Links
	case "table":
		return pick(e.Table, item.Columns)
	}
	return json.RawMessage("null")
}

// pick reduces a table to the given columns, in that order.
func pick(t *guest.Table, columns []string) any {
	if t == nil || len(columns) == 0 {
		return t
	}
	out := guest.Table{Columns: columns, Rows: [][]string{}}
	for _, row := range t.Rows {
		var cells []string
		for _, name := range columns {
			if i := slices.Index(t.Columns, name); i >= 0 && i < len(row) {
				cells = append(cells, row[i])
			}
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}
