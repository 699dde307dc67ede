package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// ExtractReply is the reply of extract.
type ExtractReply struct {
	Items     map[string]json.RawMessage `json:"items"`
	Truncated bool                       `json:"truncated"`
	Revision  int64                      `json:"snapshot_revision"`
	Captured  int64                      `json:"captured_at_ms"`
	URL       string                     `json:"url"`
}

const (
	maxExtract = 900 << 10 // bytes of all items; a reply has 1 MiB
	maxRows    = 5000      // elements of one item
)

var null = json.RawMessage("null")

// extract reads data from the page. It neither scrolls nor clicks.
func (v *verb) extract() (any, *Refusal) {
	items, got, refused := v.taken()
	if refused != nil {
		return nil, refused
	}
	out := &ExtractReply{Items: map[string]json.RawMessage{}, Truncated: got.Truncated}
	for i, want := range v.req.Extract {
		out.Items[want.Name] = v.item(want, items[i], got.Items[want.Name])
	}
	if o := got.Observation; o != nil {
		out.Revision, out.Captured, out.URL = o.Revision, o.CapturedAt.UnixMilli(), o.URL
	}
	out.shrink()
	v.tracer.add(stageVerify, stepSuccess, meta{"items": len(items), "revision": out.Revision})
	v.succeeded = true
	v.record(nil)
	return out, nil
}

// maxTaken bounds how often an extract is retried while elements vanish during the read.
const maxTaken = 4

// taken returns the items and their data. Elements that are not on the page are not asked for; if
// the page redraws meanwhile, the read is retried.
func (v *verb) taken() (items []page.Item, got page.Extracted, refused *Refusal) {
	for n := 1; ; n++ {
		if items, refused = v.items(); refused != nil {
			return nil, got, refused
		}
		there := slices.DeleteFunc(slices.Clone(items), func(i page.Item) bool { return slices.Contains(i.Refs, nowhere) })
		var err error
		if got, err = v.tab.Extract(v.ctx, there); err == nil {
			return items, got, nil
		}
		if !errors.Is(err, page.ErrGone) || n == maxTaken {
			return nil, got, v.unread(err)
		}
		if err := v.sleep(glimpse); err != nil {
			return nil, got, v.unread(err)
		}
	}
}

// items resolves the targets of a request to nodes. An item whose target is missing gets the ref
// nowhere.
func (v *verb) items() ([]page.Item, *Refusal) {
	var targets []*Target
	for i := range v.req.Extract {
		targets = append(targets, v.req.Extract[i].Target)
	}
	q := v.withClaims(v.want(targets, nil))
	o, err := v.reads(q)
	if err != nil {
		return nil, v.unread(err)
	}
	l := NewLook(o, q)
	gone, err := v.reverted(l, "")
	if err != nil {
		return nil, v.unread(err)
	}
	if len(gone) > 0 {
		return nil, v.refusal(gone)
	}
	out := make([]page.Item, len(v.req.Extract))
	for i, want := range v.req.Extract {
		out[i] = page.Item{Name: want.Name, Take: want.Take, Attribute: want.Attribute, Columns: want.Columns}
		if want.Target == nil {
			continue
		}
		out[i].Refs = v.refsOf(l, &want)
	}
	return out, nil
}

// refsOf returns the nodes that an item is about: the best match, or all that fit equally well.
func (v *verb) refsOf(l *Look, want *ExtractItem) []page.Ref {
	found, _ := l.Resolve(v.opt.Identity, want.Target, ResolveOptions{})
	if found == nil {
		return []page.Ref{nowhere}
	}
	if !want.All {
		return []page.Ref{found.Node.Ref}
	}
	nodes := []*page.Node{}
	for _, c := range found.Candidates {
		if found.Candidates[0].Score-c.Score <= 0.05 && len(nodes) < maxRows {
			nodes = append(nodes, c.Node)
		}
	}
	slices.SortFunc(nodes, func(a, b *page.Node) int { return a.Order - b.Order })
	refs := make([]page.Ref, len(nodes))
	for i, n := range nodes {
		refs[i] = n.Ref
	}
	return refs
}

// nowhere is a ref of no node, from which nothing is extracted.
const nowhere page.Ref = "nowhere"

// item returns the value, or the list of values, that the guest gets. Fields with sealed values
// give their handle.
func (v *verb) item(want ExtractItem, item page.Item, got []json.RawMessage) json.RawMessage {
	for i, ref := range item.Refs {
		if s, ok := v.filled[v.tab.ID()][ref]; ok && i < len(got) {
			got[i], _ = json.Marshal(s.handle)
		}
	}
	if slices.Contains(item.Refs, nowhere) {
		got = nil
	}
	if want.All {
		if got == nil {
			got = []json.RawMessage{}
		}
		raw, err := json.Marshal(got)
		if err != nil {
			return null
		}
		return raw
	}
	if len(got) == 0 || len(got[0]) == 0 {
		return null
	}
	return got[0]
}

// shrink cuts lists at their end, the largest first, until the reply fits.
func (r *ExtractReply) shrink() {
	for {
		largest, total := "", 0
		for name, raw := range r.Items {
			total += len(raw)
			if len(raw) > len(r.Items[largest]) {
				largest = name
			}
		}
		if total <= maxExtract {
			return
		}
		r.Truncated = true
		r.Items[largest] = halved(r.Items[largest])
	}
}

// halved returns the first half of a list, or null for anything else.
func halved(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if !bytes.HasPrefix(raw, []byte("[")) || json.Unmarshal(raw, &list) != nil || len(list) < 2 {
		return null
	}
	out, err := json.Marshal(list[:len(list)/2])
	if err != nil {
		return null
	}
	return out
}

// unselected refuses a verb whose CSS selector the browser does not accept.
func (v *verb) unselected() *Refusal {
	return &Refusal{Code: "INVALID_SELECTOR", Message: "not a CSS selector", Verb: v.req.Verb}
}

// unread refuses a reading verb because the page did not answer.
func (v *verb) unread(err error) *Refusal {
	v.tracer.add(stageVerify, stepFailure, meta{"read": false})
	v.record(nil)
	select {
	case <-v.lost:
		return lostRefusal(v.req.Verb)
	default:
	}
	switch {
	case errors.Is(err, errLease):
		return v.owned()
	case errors.Is(err, page.ErrLost):
		return lostRefusal(v.req.Verb)
	case errors.Is(err, page.ErrTooLarge):
		return &Refusal{Code: "result_too_large", Message: "the result is too large", Verb: v.req.Verb}
	case errors.Is(err, page.ErrSelector):
		return v.unselected()
	case errors.Is(err, page.ErrUndrawn):
		return &Refusal{Code: "surface_busy",
			Message: "the page has no size or was not drawn yet, so there is no picture of it; wait until it has loaded and try again", Verb: v.req.Verb}
	case err == nil, v.ctx.Err() != nil, errors.Is(err, page.ErrHung), errors.Is(err, page.ErrGone),
		errors.Is(err, page.ErrDialog):
		// A page that hangs or keeps navigating is no fault of the host.
		return &Refusal{Code: "surface_busy", Message: "the page did not answer in time; try again later", Verb: v.req.Verb}
	}
	v.broke(err)
	return &Refusal{Code: "internal", Message: "the page could not be read", Verb: v.req.Verb}
}
