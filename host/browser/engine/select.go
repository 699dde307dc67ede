package engine

import (
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A choice is an option to select and the previous selection.
type choice struct {
	option   page.Option
	index    int
	previous *page.Option
	native   bool
	closed   bool  // shows its options only when opened
	many     []int // indices of several options; nil: one
}

// selectFits finds the option. A control without options does not fit; a missing option may still
// appear.
func selectFits(a *act, n *page.Node) *fault {
	if a.req.Select.Many != nil {
		return selectSeveral(a, n)
	}
	if n.Multiple && n.Tag == "select" {
		return &fault{code: SemanticMismatch, stage: StageResolve}
	}
	c := choice{native: n.Tag == "select", previous: n.State.Selected}
	if was, ok := a.work.(choice); ok {
		c.previous = was.previous
	}
	if len(n.Options) == 0 {
		if c.native || !n.Popup && n.Role != "combobox" {
			return &fault{code: SemanticMismatch, stage: StageResolve}
		}
		c.closed, c.option = true, askedOption(a)
		a.work = c
		return nil
	}
	i := optionIn(a, n)
	if i < 0 {
		return &fault{code: ElementNotFound, detail: "no_such_option", stage: StageResolve}
	}
	if c.option, c.index = n.Options[i], i; c.option.Disabled {
		return a.reject("disabled")
	}
	a.work = c
	return nil
}

// selectSeveral finds the options of a multiple-choice control.
func selectSeveral(a *act, n *page.Node) *fault {
	if !n.Multiple || n.Tag != "select" && n.Role != "listbox" {
		return &fault{code: SemanticMismatch, detail: "one_choice", stage: StageResolve}
	}
	c := choice{native: n.Tag == "select", many: []int{}}
	for _, want := range a.req.Select.Many {
		o := Choice(want, n)
		if o == nil {
			return &fault{code: ElementNotFound, detail: "no_such_option", stage: StageResolve}
		}
		if o.Disabled {
			return a.reject("disabled")
		}
		c.many = append(c.many, slices.IndexFunc(n.Options, func(other page.Option) bool { return other == *o }))
	}
	a.work = c
	return nil
}

// optionIn returns the index of the requested option, or -1.
func optionIn(a *act, n *page.Node) int {
	chosen := Choice(a.req.Select, n)
	for i := range n.Options {
		if chosen == &n.Options[i] {
			return i
		}
	}
	return -1
}

// askedOption returns the option as the request describes it.
func askedOption(a *act) page.Option {
	var o page.Option
	if a.req.Select.ID != nil {
		o.ID = *a.req.Select.ID
	}
	if a.req.Select.Label != nil {
		o.Label = *a.req.Select.Label
	}
	return o
}

// selectSend sets a native control, or clicks the option of another one.
func selectSend(a *act) (page.Delivery, error) {
	c, _ := a.work.(choice)
	if c.many != nil && !c.native {
		return toggleOptions(a)
	}
	if c.many != nil {
		return a.tab.Set(a.ctx, a.node(), page.Setting{Indices: c.many})
	}
	if c.native {
		return a.tab.Set(a.ctx, a.node(), page.Setting{Index: &c.index})
	}
	if c.closed {
		d, err := a.tab.Click(a.ctx, page.Click{At: a.point, Button: "left", Count: 1})
		if err != nil {
			return d, err
		}
		if c, err = openOptions(a); err != nil {
			return d, err
		}
	}
	d, err := clickOption(a, c.option.Ref, nil)
	d.Sent = d.Sent || c.closed
	return d, err
}

// clickOption clicks an option after scrolling it into view.
func clickOption(a *act, ref page.Ref, modifiers []string) (page.Delivery, error) {
	r, err := a.tab.Ready(a.ctx, ref, page.Center)
	if err == nil && r.Fault == "outside_viewport" {
		if err = a.tab.ScrollTo(a.ctx, ref, page.Middle, page.Center); err == nil {
			r, err = a.tab.Ready(a.ctx, ref, page.Center)
		}
	}
	if err != nil || r.Fault != "" {
		a.blocked = r.Fault
		return page.Delivery{Trusted: -1}, err
	}
	return a.tab.Click(a.ctx, page.Click{At: r.Point, Button: "left", Count: 1, Modifiers: modifiers})
}

// toggleOptions clicks the options of a custom list until exactly the wanted ones are chosen. If a
// click deselects the others, it holds Control.
func toggleOptions(a *act) (page.Delivery, error) {
	all := page.Delivery{Trusted: -1}
	var modifiers []string
	n, err := readOptions(a, nil)
	for clicks := 0; err == nil && n != nil && clicks <= 2*len(n.Options); clicks++ {
		i := slices.IndexFunc(n.Options, func(o page.Option) bool { return o.Selected != wantsOption(a, &o, n) })
		if i < 0 {
			break
		}
		d, failed := clickOption(a, n.Options[i].Ref, modifiers)
		all.Sent = all.Sent || d.Sent
		if failed != nil || a.blocked != "" {
			return all, failed
		}
		was := n
		if n, err = readOptions(a, was); n != nil && differences(was.Options, n.Options) > 1 {
			modifiers = []string{"Control"}
		}
	}
	return all, err
}

// readOptions returns the list once it differs from was, or nil if it does not change in time.
func readOptions(a *act, was *page.Node) (is *page.Node, err error) {
	_, err = a.watch(maxOpening, []*Target{a.req.Target}, func(l *Look) bool {
		if n := l.Node(a.node()); n != nil && (was == nil || differences(was.Options, n.Options) > 0) {
			is = n
		}
		return is != nil
	})
	return is, err
}

// wantsOption reports whether an option is among those requested.
func wantsOption(a *act, o *page.Option, n *page.Node) bool {
	return slices.ContainsFunc(a.req.Select.Many, func(s SelectArgs) bool {
		chosen := Choice(s, n)
		return chosen != nil && *chosen == *o
	})
}

// differences returns how many options differ in being chosen.
func differences(was, is []page.Option) (n int) {
	for i := range is {
		if i < len(was) && was[i].Selected != is[i].Selected {
			n++
		}
	}
	return n
}

// maxOpening is how long a control is given to show its options.
const maxOpening = time.Second

// openOptions waits for the options of a control that was just opened.
func openOptions(a *act) (choice, error) {
	c, _ := a.work.(choice)
	opened, err := a.watch(maxOpening, []*Target{a.req.Target}, func(l *Look) bool {
		n := l.Node(a.node())
		if n == nil {
			return false
		}
		i := optionIn(a, n)
		if i >= 0 {
			c.option, c.index, c.closed = n.Options[i], i, true
			a.work = c
		}
		return i >= 0
	})
	if err == nil && !opened {
		err = page.ErrKind
	}
	return c, err
}

func selectTell(a *act) {
	c, _ := a.work.(choice)
	if c.many != nil {
		tellSeveral(a)
		return
	}
	a.details["previous"] = optionInfo(c.previous)
	a.details["selected"] = optionInfo(nil)
	if n := a.current(); n != nil {
		a.details["selected"] = optionInfo(n.State.Selected)
	}
}

// tellSeveral adds the chosen options to the details.
func tellSeveral(a *act) {
	chosen := []any{}
	if n := a.current(); n != nil {
		for i := range n.Options {
			if n.Options[i].Selected {
				chosen = append(chosen, optionInfo(&n.Options[i]))
			}
		}
	}
	a.details["selected"] = chosen
}

func optionInfo(o *page.Option) any {
	if o == nil {
		return nil
	}
	return map[string]string{"id": o.ID, "label": o.Label}
}
