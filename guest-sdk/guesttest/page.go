//go:build !wasip1

package guesttest

import (
	"slices"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Pages are what a connector finds in the browser of a test: give Pages.Call to
// Options.Browser. They know elements and what becomes of them, no markup and no
// time: an action is verified when what was expected of it is true once its
// element has reacted, and fails otherwise. For everything beyond that, try the
// connector on a real page (sluice run).
type Pages struct {
	// Load returns the page of an address; nil is an address that the owner has not
	// approved.
	Load func(url string) *Page
	// Page is what the browser shows; nil before the first Load.
	Page *Page
	// Log has one line for each call, without values.
	Log []string

	open   bool
	action int
	last   *action // the latest action that waits for an Expect
	tab    string  // that the latest action opened
}

// A Page is one document.
type Page struct {
	URL, Title string
	Elements   []*Element
}

// An Element is something on a page. Selectors of a connector find it by the
// members that they name, compared as the host does: without regard to case and
// white space.
type Element struct {
	Role, Name, Label, Text string
	Placeholder, TestID, ID string
	CSS                     []string // selectors that fit it
	In                      *Element // for Within

	Value              string   // of an editable element or a list
	Options            []string // of a list
	Multiple           bool     // several of them can be chosen
	Chosen             []string // of a list of many
	Number             *float64 // of a slider or stepper
	Min, Max           float64
	Checked, Expanded  *bool
	Hidden, Disabled   bool
	Attributes         map[string]string
	Table              *guest.Table
	Links              []guest.Link
	OnClick, OnChanged func(p *Pages)
	OnScroll           func(p *Pages) // it was scrolled to
	Opens              string         // the tab that a click on it opens, such as tab_2
}

// Find returns the element that a test wants to look at, by test id, id, name,
// label or text; nil for none.
func (p *Page) Find(words string) *Element {
	for _, e := range p.Elements {
		if slices.ContainsFunc([]string{e.TestID, e.ID, e.Name, e.Label, e.Text}, func(s string) bool { return s != "" && folded(s) == folded(words) }) {
			return e
		}
	}
	return nil
}

// Add puts elements on the page.
func (p *Page) Add(list ...*Element) { p.Elements = append(p.Elements, list...) }

// Remove takes elements off the page.
func (p *Page) Remove(list ...*Element) {
	p.Elements = slices.DeleteFunc(p.Elements, func(e *Element) bool { return slices.Contains(list, e) })
}

// Go shows the page of an address.
func (p *Pages) Go(url string) bool {
	next := p.Load(url)
	if next == nil {
		return false
	}
	p.Page = next
	return true
}

func folded(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// name is what an element is called.
func (e *Element) name() string {
	for _, s := range []string{e.Name, e.Label, e.Text} {
		if s != "" {
			return s
		}
	}
	return ""
}

func (e *Element) editable() bool { return e.Role == "textbox" || e.Role == "searchbox" }
