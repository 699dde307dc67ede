package engine

import (
	"cmp"
	"regexp"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Verb is the name of an operation, as guests write it.
type Verb string

// The verbs. Fill is an alias of Type.
const (
	Open       Verb = "open"
	Navigate   Verb = "navigate"
	Click      Verb = "click"
	Type       Verb = "type"
	Fill       Verb = "fill"
	Clear      Verb = "clear"
	Press      Verb = "press"
	Select     Verb = "select"
	Check      Verb = "check"
	Adjust     Verb = "adjust"
	Scroll     Verb = "scroll"
	Hover      Verb = "hover"
	Drag       Verb = "drag"
	Upload     Verb = "upload"
	Wait       Verb = "wait"
	Expect     Verb = "expect"
	Extract    Verb = "extract"
	Snapshot   Verb = "snapshot"
	Screenshot Verb = "screenshot"
	Cookies    Verb = "cookies"
	Mark       Verb = "mark"
	Close      Verb = "close"
)

// A Request is one checked call, with every default filled in and every number clamped. The members
// of a verb are in the member of its name.
type Request struct {
	Verb Verb

	Target *Target
	Intent string
	Expect *Predicate // nil: the verb's default, or deferred
	Verify Settings
	// Deadline covers the whole verb, Actionable the checks before a dispatch.
	Deadline      time.Duration
	Actionable    time.Duration
	Idempotent    *bool
	Declared      string
	Tab           string
	Rebind        bool
	Force         bool
	AllowPreexist bool
	AcceptDialog  bool
	DialogText    *string // answer to prompts; nil: their default text
	MaxRecovery   int     // 0 to 3
	MaxRetryDepth int
	Navigate      NavigateArgs
	Click         ClickArgs
	Drag          DragArgs
	Type          TypeArgs
	Press         PressArgs
	Select        SelectArgs
	Check         bool
	Adjust        AdjustArgs
	Scroll        ScrollArgs
	Upload        []File
	Wait          WaitArgs
	ExpectArgs    ExpectArgs
	Extract       []ExtractItem
	Snapshot      SnapshotArgs
	Screenshot    ScreenshotArgs
	Cookies       CookiesArgs
	Mark          MarkArgs
	Open          OpenArgs
}

// A Target is an element, given by the id of an earlier reply or by a description. Exactly one of
// ElementID and Selector is set.
type Target struct {
	ElementID string    `json:"element_id,omitempty"`
	Selector  *Selector `json:"selector,omitempty"`
}

// A Selector describes an element and how to choose among matches.
type Selector struct {
	page.Selector
	Exact    *bool   `json:"exact,omitempty"` // nil: true for structured members, false for query
	Contains string  `json:"contains,omitempty"`
	Index    *int    `json:"index,omitempty"`
	Within   *Target `json:"within,omitempty"`
	Near     *Target `json:"near,omitempty"`
	Frame    string  `json:"frame,omitempty"` // name or id of a frame
}

// Settings are the clamped settings of a stabilisation.
type Settings struct {
	Window     time.Duration
	Count      int
	MaxRecheck int
	Interval   time.Duration
	Stale      time.Duration
}

// A Predicate is a condition on what a page shows, with a depth of at most 3 and at most 16 leaves.
// Kind is "all", "any" or "not" for compositions of Of.
type Predicate struct {
	Kind   string
	Of     []Predicate
	Target *Target

	Op    string // equals, contains, matches, prefix, eq, gte or lte
	Text  string // the member value of text, attribute, url and title
	Count int
	// The wanted value: exactly one is set where the kind has "equals".
	Bool      *bool
	String    *string
	Number    *float64
	Option    *page.Option
	Tolerance float64

	// Formatted accepts a text in another format, as in a field that formats its input.
	Formatted bool

	Attribute    string
	Names        []string
	SameDocument *bool
	ChangedFrom  string
	Kinds        []string
	NameMatches  string

	re *regexp.Regexp // of Text or NameMatches, made by Parse
}

// NavigateArgs has either URL or History.
type NavigateArgs struct {
	URL, History, Until string
	Auth                *HTTPAuth // sent if the server of URL asks for it
}

// HTTPAuth is a user name and a password for HTTP authentication.
type HTTPAuth struct{ Username, Password Value }

// A Value is given in plain text or as a handle.
type Value struct{ Plain, Sealed string }

type ClickArgs struct {
	Button    string
	Count     int
	Modifiers []string
	Position  page.Point    // fractions of the element's box
	Hold      time.Duration // between press and release
}

// DragArgs has exactly one member set.
type DragArgs struct {
	To *Target     // the target is dropped on its middle
	By *page.Point // CSS pixels from where the target is
}

// TypeArgs are for type, fill and clear. Sealed is a handle; Plain may be empty.
type TypeArgs struct {
	Plain  string
	Sealed string
	Keys   bool // type key by key
	Clear  bool
}

type PressArgs struct {
	Chords []string // chords, split at white space
	Count  int
}

// SelectArgs has exactly one member set. Many is for controls with several choices: exactly these
// are to be chosen, none for an empty list.
type SelectArgs struct {
	ID, Label *string
	Index     *int
	Many      []SelectArgs // nil: one
}

type AdjustArgs struct {
	Value       float64
	Tolerance   float64
	MaxAttempts int
	Modes       []string // semantic, gesture, coordinate
	WidenTo     *float64
}

// ScrollArgs needs Direction if there is no target.
type ScrollArgs struct {
	Within    *Target
	Direction string
	Amount    float64
	Max       int
}

// A File is a file to upload: a path in the guest's mounts, or a stream handle.
type File struct {
	Path   string
	Handle uint32
	Name   string
}

type WaitArgs struct {
	For         string
	Index       *int
	Timeout     time.Duration
	Attempts    int
	Backoff     time.Duration
	Change      string
	Stability   time.Duration
	Since       *int64
	Fingerprint string
}

// ExpectArgs with Timeout 0 runs the check once.
type ExpectArgs struct {
	ActionID string
	Timeout  time.Duration
}

// An ExtractItem is one thing to read.
type ExtractItem struct {
	Name      string
	Take      string
	Target    *Target
	Attribute string
	All       bool
	Columns   []string
}

type SnapshotArgs struct {
	Query    string
	Exact    bool
	Within   *Target
	Limit    int
	Include  []string
	LogLines int
	ActionID string
}

type ScreenshotArgs struct {
	Format  string
	Quality int
	Full    bool
}

type CookiesArgs struct{ Hosts, Names []string }

type MarkArgs struct {
	Phase string
	Done  bool
}

type OpenArgs struct {
	Profile    string
	Persistent bool
	URL        string
	Viewport   page.Viewport
	Trace      bool
	Establish  bool
	Session    *Session
}

// A Session says how to find out whether the owner is signed in.
type Session struct {
	ProbeURL string
	Expect   *Predicate // nil: no probe
	Timeout  time.Duration
	LoginURL string
	Message  string
	Owner    time.Duration
}

// DefaultSettings are used where nothing is set.
var DefaultSettings = Settings{Window: time.Second, Count: 2, MaxRecheck: 3, Interval: 100 * time.Millisecond,
	Stale: 500 * time.Millisecond}

// Clamped moves every setting to the nearest bound; 0 becomes the default. Proof after an action
// needs at least two matches.
func (s Settings) Clamped(proof bool) Settings {
	least := 1
	if proof {
		least = 2
	}
	d := DefaultSettings
	return Settings{
		Window:     clamp(cmp.Or(s.Window, d.Window), 500*time.Millisecond, 1500*time.Millisecond),
		Count:      clamp(cmp.Or(s.Count, d.Count), least, 5),
		MaxRecheck: clamp(cmp.Or(s.MaxRecheck, d.MaxRecheck), 1, 10),
		Interval:   clamp(cmp.Or(s.Interval, d.Interval), 100*time.Millisecond, 200*time.Millisecond),
		Stale:      clamp(cmp.Or(s.Stale, d.Stale), 300*time.Millisecond, 800*time.Millisecond),
	}
}

// Info returns the settings as results echo them.
func (s Settings) Info() SettingsInfo {
	return SettingsInfo{s.Window.Milliseconds(), s.Count, s.MaxRecheck, s.Interval.Milliseconds(), s.Stale.Milliseconds()}
}

func clamp[T ~int | ~int64 | ~float64](v, least, most T) T { return min(max(v, least), most) }
