package page

import "time"

// A Ref names one node of one document for as long as the document lives. Refs are never reused,
// and the page cannot see them.
type Ref string

// A Point is in CSS pixels of the tab's viewport.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// A Box is in CSS pixels of the tab's viewport, also for nodes in frames.
type Box struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	W float64 `json:"w"`
	H float64 `json:"h"`
}

// Empty reports whether the box has no area, so that nothing can be seen or hit there.
func (b Box) Empty() bool { return b.W <= 0 || b.H <= 0 }

// Center returns the middle of the box.
func (b Box) Center() Point { return Point{b.X + b.W/2, b.Y + b.H/2} }

// A Node is an element as one look at the page found it. Texts are trimmed, have their white space
// collapsed and are cut to 512 bytes, except for the values in State, which are cut to 64 KiB.
type Node struct {
	Ref   Ref    `json:"ref"`
	Up    Ref    `json:"up,omitempty"`    // the nearest ancestor that is in the same observation
	Frame string `json:"frame,omitempty"` // "" is the main frame
	// Origin of the frame, scheme://host[:port]; "null" is opaque.
	Origin string `json:"origin,omitempty"`

	Tag     string   `json:"tag"`            // lower case
	Type    string   `json:"type,omitempty"` // of input and button
	ID      string   `json:"id,omitempty"`
	TestID  string   `json:"test_id,omitempty"` // data-testid, data-test or data-qa, verbatim
	NameAtt string   `json:"name_att,omitempty"`
	Classes []string `json:"classes,omitempty"`

	Role        string `json:"role,omitempty"` // explicit or implied
	Name        string `json:"name,omitempty"` // accessible name
	AriaLabel   string `json:"aria_label,omitempty"`
	Label       string `json:"label,omitempty"` // of label elements and aria-labelledby
	Placeholder string `json:"placeholder,omitempty"`
	Description string `json:"description,omitempty"` // title, aria-description(-by)
	Text        string `json:"text,omitempty"`        // visible, of the whole subtree
	OwnText     bool   `json:"own_text,omitempty"`    // some of it is in a text node of its own

	Bounds  Box  `json:"bounds"`
	Visible bool `json:"visible,omitempty"` // non-empty box, neither hidden nor collapsed
	InView  bool `json:"in_view,omitempty"` // at least half of the box is in the viewport
	Hovered bool `json:"hovered,omitempty"`

	// Signs that the node can be acted on. Native: a control, link, summary or editable content.
	// Listens: a pointer or key listener of its own or inherited from below body. Cursor:
	// cursor:pointer. Tabbable: a tabindex. Labels: the control that it labels.
	Native  bool `json:"native,omitempty"`
	Listens bool `json:"listens,omitempty"`
	OwnHear bool `json:"own_hear,omitempty"` // the listener is on the node itself
	// Delegated means that nothing below body listens, but body or the document does, possibly for
	// this node.
	Delegated bool `json:"delegated,omitempty"`
	Cursor    bool `json:"cursor,omitempty"`
	Tabbable  bool `json:"tabbable,omitempty"`
	Labels    Ref  `json:"labels,omitempty"`

	// What a click on it does by default.
	Submits  bool   `json:"submits,omitempty"`  // submit or image input, button of a form, formaction
	Leaves   bool   `json:"leaves,omitempty"`   // a link to another document
	Fragment bool   `json:"fragment,omitempty"` // a link within the same document
	Popup    bool   `json:"popup,omitempty"`    // aria-haspopup
	InForm   bool   `json:"in_form,omitempty"`  // a field of a form
	URL      string `json:"url,omitempty"`      // of a link, absolute http(s), cut to 2048 bytes

	Editable     bool   `json:"editable,omitempty"` // takes text
	Multiline    bool   `json:"multiline,omitempty"`
	ReadOnly     bool   `json:"read_only,omitempty"`
	Disabled     bool   `json:"disabled,omitempty"` // itself, its fieldset or aria-disabled
	Multiple     bool   `json:"multiple,omitempty"` // a select or list of many, a file input of many
	Secret       bool   `json:"secret,omitempty"`   // a password field
	Autocomplete string `json:"autocomplete,omitempty"`

	State State `json:"state"`
	// Options of a select, listbox or radio group, at most 500.
	Options []Option `json:"options,omitempty"`
	Scroll  Point    `json:"scroll,omitzero"` // its scroll offset
	Files   []string `json:"files,omitempty"` // names chosen in a file input

	// Attributes holds the attributes that the query asked for.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Matches holds the indices of the query's selectors whose CSS the node satisfies.
	Matches []int `json:"matches,omitempty"`
	// Order is its position in document order across frames, counting every element.
	Order int `json:"order"`
	// Ordinal is the number of actionable elements before it in document order across frames: those
	// with Native, Tabbable, an interactive role or Labels. Listeners and cursors do not count,
	// since they are not read for every element.
	Ordinal int `json:"ordinal"`
	// Waves counts how often the node changed and changed back between repeated looks
	// ([Query.Again]).
	Waves int `json:"waves,omitempty"`
	// Changed means that the node differs from the previous repeated look. Working means that it,
	// or an ancestor, is marked busy or is being moved or faded by an animation that ends.
	Changed bool `json:"changed,omitempty"`
	Working bool `json:"working,omitempty"`
}

// State is what an element exposes. A nil member could not be read and asserts nothing.
type State struct {
	Checked   *bool    `json:"checked,omitempty"`
	Mixed     bool     `json:"mixed,omitempty"` // neither on nor off, of a check box with three states
	Selected  *Option  `json:"selected,omitempty"`
	Chosen    *bool    `json:"chosen,omitempty"` // aria-selected, aria-current of an option or tab
	Value     *float64 `json:"value,omitempty"`  // in the units of Range
	RawValue  *string  `json:"raw_value,omitempty"`
	Range     *Range   `json:"value_range,omitempty"`
	Focused   *bool    `json:"focused,omitempty"`
	Expanded  *bool    `json:"expanded,omitempty"`
	Enabled   *bool    `json:"enabled,omitempty"`
	TextValue *string  `json:"text_value,omitempty"` // of editable content
}

// An Option is one of several choices: ID is its value, Label the text that people read.
type Option struct {
	ID       string `json:"id"`
	Label    string `json:"label"`
	Disabled bool   `json:"disabled,omitempty"`
	Selected bool   `json:"selected,omitempty"`
	Ref      Ref    `json:"ref,omitempty"`
}

// A Range bounds a value; Step 0 allows any value.
type Range struct {
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Step float64 `json:"step,omitempty"`
}

// A Query says what an observation has to contain.
type Query struct {
	// Selectors include every node that one of them may mean, wholly or in part, visible or not,
	// with its ancestors, its labels and the actionable nodes around it. Matching ignores case.
	Selectors []Selector `json:"selectors,omitempty"`
	// Refs are included if their nodes are still in their documents.
	Refs []Ref `json:"refs,omitempty"`
	// All includes everything that a snapshot shows by default, nodes inside or near the viewport
	// first, at most Limit.
	All   bool `json:"all,omitempty"`
	Limit int  `json:"limit,omitempty"` // of nodes; 0 is 2000
	// Digests asks for Observation.Digests and Fingerprint.
	Digests    bool     `json:"digests,omitempty"`
	Attributes []string `json:"attributes,omitempty"`
	// Again marks a repeated look: listeners are read only for elements that are new since the
	// previous one, and changes that come and go until the next one are counted (Node.Waves).
	Again bool `json:"again,omitempty"`
	// Patient marks a look by which nothing is decided: it may take longer and cover more of a
	// large page.
	Patient bool `json:"patient,omitempty"`
}

// A Selector describes elements. An empty member does not restrict the match.
type Selector struct {
	TestID      string `json:"test_id,omitempty"`
	ID          string `json:"id,omitempty"`
	Role        string `json:"role,omitempty"`
	Name        string `json:"name,omitempty"`
	Label       string `json:"label,omitempty"`
	Text        string `json:"text,omitempty"`
	Placeholder string `json:"placeholder,omitempty"`
	CSS         string `json:"css,omitempty"`
	Query       string `json:"query,omitempty"`
}

// Digests summarise what a page shows; equal digests mean that nothing changed.
type Digests struct {
	Hierarchy string `json:"hierarchy"`
	Text      string `json:"text"`
	State     string `json:"state"`
}

// An Observation is one fresh look at a tab, made by one call per renderer process in an isolated
// world.
type Observation struct {
	// CapturedAt is by the page's clock, Arrived by the host's. The page's clock only counts where
	// the age that it gives is not negative.
	CapturedAt time.Time
	Arrived    time.Time

	Document string // changes with every new document of the main frame
	// Revision never decreases within a surface and rises when the page's structure, text or state
	// changes.
	Revision    int64
	Digests     Digests
	Fingerprint string // of the path, the structure and the text
	URL         string // of the main frame, as the host knows it to be committed
	Title       string
	Viewport    Viewport
	Scroll      Point
	Loading     *Loading // nil: it is not loading
	Frames      []Subframe
	Nodes       []Node // in document order
	// Truncated says that nodes are missing.
	Truncated bool
}

// Age returns how old the observation was when it arrived.
func (o *Observation) Age() time.Duration { return max(0, o.Arrived.Sub(o.CapturedAt)) }

// A Subframe is a document inside the tab.
type Subframe struct {
	ID     string `json:"id"`
	Origin string `json:"origin"`
	// Name and ElementID are the name and the id of the frame element.
	Name      string `json:"name,omitempty"`
	ElementID string `json:"element_id,omitempty"`
}

// Loading describes why the page counts as busy.
type Loading struct {
	Signal string `json:"signal"` // progress_indicator, aria_busy, document_loading or requests_in_flight
	Source string `json:"source"`
}

// A Viewport is the size of a page in CSS pixels.
type Viewport struct {
	Width  int     `json:"width"`
	Height int     `json:"height"`
	Scale  float64 `json:"scale,omitempty"` // device pixels per CSS pixel; 0 is 1
	Mobile bool    `json:"mobile,omitempty"`
}
