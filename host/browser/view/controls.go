package view

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxElements bounds the list of elements.
const maxElements = 300

// controls is the state of a controller: the list or picker that the dashboard draws, a pointer
// pressed on it, a file being sent, and the elements last listed. It is used under Run.acting,
// except for the file, which the reader receives.
type controls struct {
	popup    *page.Node // the select or picker being drawn
	swallow  bool       // the pointer was pressed on it, so the page does not get its release
	elements map[string]page.Node
	files    filing
}

// point applies a pointer event. Where the browser would open a pop-up, which no picture shows, the
// dashboard draws it instead.
func (h *controls) point(ctx context.Context, w *viewer, screen page.Screen, in page.Input) error {
	if w.seen().scale <= 0 {
		return nil // no picture was sent yet
	}
	in.At = w.seen().at(in.At)
	switch in.Kind {
	case "down", "click", "dblclick", "touchstart":
		h.swallow = false
		if in.Button == 0 {
			node, ok, err := screen.Control(ctx, in.At)
			if err != nil {
				return err
			}
			if ok && h.open(w, node) {
				h.swallow = in.Kind == "down" || in.Kind == "touchstart"
				return nil
			}
		}
	case "up", "touchend", "touchcancel":
		if h.swallow {
			h.swallow = false
			return nil
		}
	case "touchmove":
		if h.swallow {
			return nil
		}
	}
	return screen.Input(ctx, in)
}

// open makes the dashboard draw a list or a picker. It reports false if the node has none.
func (h *controls) open(w *viewer, n page.Node) bool {
	if n.Disabled || n.Secret {
		return false
	}
	m := outgoing{"name": clean(n.Name, maxName), "bounds": n.Bounds}
	switch {
	case n.Tag == "select" && !n.Multiple:
		options := make([]any, 0, len(n.Options))
		for i, o := range n.Options {
			options = append(options,
				map[string]any{"id": strconv.Itoa(i), "label": clean(o.Label, maxName), "disabled": o.Disabled,
					"selected": o.Selected})
		}
		m["type"], m["options"] = "select", options
	case n.Tag == "input" && pickers[n.Type]:
		m["type"], m["kind"] = "picker", n.Type
		if v := n.State.RawValue; v != nil {
			m["value"] = clean(*v, 64)
		} else if v := n.State.TextValue; v != nil {
			m["value"] = clean(*v, 64)
		}
	default:
		return false
	}
	h.popup = &n
	w.send(m)
	return true
}

var pickers = map[string]bool{"date": true, "time": true, "datetime-local": true, "month": true,
	"week": true, "color": true}

// choose sets the drawn control through its native setter.
func (h *controls) choose(ctx context.Context, screen page.Screen, m message) error {
	n := h.popup
	if n == nil {
		return page.ErrGone
	}
	if m.kind == "picker" {
		if n.Tag != "input" {
			return page.ErrKind
		}
		h.popup = nil
		return screen.Set(ctx, n.Ref, page.Setting{Text: &m.text})
	}
	i, err := strconv.Atoi(m.id)
	if err != nil || n.Tag != "select" || i < 0 || i >= len(n.Options) || n.Options[i].Disabled {
		return page.ErrKind
	}
	h.popup = nil
	return screen.Set(ctx, n.Ref, page.Setting{Index: &i})
}

// list sends the owner the elements to choose from, by role and name.
func (h *controls) list(ctx context.Context, w *viewer, screen page.Screen) error {
	nodes, err := screen.Elements(ctx, maxElements)
	if err != nil {
		return err
	}
	nodes = nodes[:min(len(nodes), maxElements)]
	h.elements = make(map[string]page.Node, len(nodes))
	list := make([]any, 0, len(nodes))
	for i, n := range nodes {
		if n.Labels != "" && slices.ContainsFunc(nodes, func(of page.Node) bool { return of.Ref == n.Labels }) {
			continue // the control has its name
		}
		id := strconv.Itoa(i)
		h.elements[id] = n
		list = append(list, map[string]any{"id": id, "role": clean(cmp.Or(n.Role, n.Tag), 64),
			"name":     clean(called(n), maxName),
			"editable": n.Editable && !n.ReadOnly, "opens": n.Tag == "select" || n.Tag == "input" && pickers[n.Type],
			"disabled": n.Disabled, "secret": n.Secret})
	}
	w.send(outgoing{"type": "elements", "elements": list})
	return nil
}

// called returns the name of an element for the owner: its accessible name or its text, never what
// was typed into it.
func called(n page.Node) string {
	text := n.Text
	if n.Editable {
		text = ""
	}
	return cmp.Or(n.Name, n.Label, n.Placeholder, text)
}

// element acts on a listed element.
func (h *controls) element(ctx context.Context, w *viewer, screen page.Screen, m message) error {
	n, ok := h.elements[m.id]
	if !ok {
		return page.ErrGone
	}
	switch m.do {
	case "open":
		if !h.open(w, n) {
			return page.ErrKind
		}
		return nil
	case "click":
		return screen.Click(ctx, n.Ref)
	case "type":
		if err := screen.FocusOn(ctx, n.Ref); err != nil {
			return err
		}
		return screen.Input(ctx, page.Input{Kind: "text", Text: m.text})
	}
	return screen.FocusOn(ctx, n.Ref)
}
