package engine

// Categories of actions (B44). Verbs that are no actions have none.
const (
	Navigation        = "Navigation"
	Input             = "Input"
	Selection         = "Selection"
	Gesture           = "Gesture"
	ControlAdjustment = "ControlAdjustment"
)

// verbs is the verb table of section 3.2. A verb without a category reads, waits
// or manages the surface. An empty effect leaves the answer to the handler (B47).
var verbs = map[Verb]struct {
	category   string
	annotation string
	idempotent bool
	target     need
}{
	Open:       {},
	Navigate:   {category: Navigation, annotation: SideEffect, idempotent: true},
	Click:      {category: Selection, target: required},
	Type:       {category: Input, annotation: LocalState, idempotent: true, target: required},
	Fill:       {category: Input, annotation: LocalState, idempotent: true, target: required},
	Clear:      {category: Input, annotation: LocalState, idempotent: true, target: required},
	Press:      {category: Input, target: optional},
	Select:     {category: Selection, annotation: LocalState, idempotent: true, target: required},
	Check:      {category: Selection, annotation: LocalState, idempotent: true, target: required},
	Adjust:     {category: ControlAdjustment, annotation: LocalState, idempotent: true, target: required},
	Scroll:     {category: Gesture, annotation: LocalState, idempotent: true, target: optional},
	Hover:      {category: Gesture, annotation: LocalState, idempotent: true, target: required},
	Drag:       {category: Gesture, annotation: SideEffect, target: required},
	Upload:     {category: Input, annotation: SideEffect, target: required},
	Wait:       {target: optional},
	Expect:     {target: optional},
	Extract:    {},
	Snapshot:   {},
	Screenshot: {target: optional},
	Cookies:    {},
	Mark:       {},
	Close:      {},
}

// A need says whether a verb has a target.
type need int

const (
	none need = iota
	optional
	required
)

// Known reports whether v is one of section 2.3.
func (v Verb) Known() bool {
	_, ok := verbs[v]
	return ok
}

// IsAction reports whether v answers with a Result.
func (v Verb) IsAction() bool { return v.Category() != "" }

// Category is the kind of action that v is, or "" (B44).
func (v Verb) Category() string { return verbs[v].category }

// Annotation is the effect that the schema gives v, or "" (B47).
func (v Verb) Annotation() string { return verbs[v].annotation }

// Repeatable reports whether doing what r asks twice equals doing it once: the
// request's word, else that of the declared action, else the table's (B51).
func (r *Request) Repeatable(d *Declared) bool {
	switch {
	case r.Idempotent != nil:
		return *r.Idempotent
	case d != nil && d.Idempotent != nil:
		return *d.Idempotent
	case r.Verb == Navigate && r.Navigate.History == "reload":
		return false
	}
	return verbs[r.Verb].idempotent
}

// DefaultIntent is the intent of an action whose request names none (B52).
func (r *Request) DefaultIntent(role string) string {
	if role == "" {
		return string(r.Verb)
	}
	return string(r.Verb) + " " + role
}
