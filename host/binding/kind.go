package binding

import (
	"maps"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A Kind is one sort of binding: everything that the host knows of it besides how calls
// are served. The core holds a list of all kinds and names none of them.
type Kind interface {
	// Name is what manifests and the API call it.
	Name() string
	// Imports is the module whose functions serve it, with the beginning of their names
	// where others share it, and what a connector that imports them can do.
	Imports() (prefix, words string)
	// Asks lists what a manifest that declares the binding asks for, in the order in
	// which an owner is told, and how each stands with what is approved.
	Asks(m *abi.Manifest, a store.Approved) []Ask
	// Request puts what a manifest asks for into a document of the API.
	Request(b abi.Binding, r *host.RequestedBinding)
	// Granted says in words what is approved.
	Granted(m *abi.Manifest, a store.Approved) []string
	// Lend says in START what a run of the connection is lent. It is called for every
	// kind that this host has, whether or not the manifest declares it. The error is a
	// *host.Refusal.
	Lend(m *abi.Manifest, c store.Connection, lent *abi.Bindings) error
	// Denial answers calls of a guest whose run was lent none.
	Denial() (code, message string)
	Approver
	Commander
}

// An Opener is a kind that opens the binding of a run by itself, needing nothing else of
// its host. A connector that was approved none is given none.
type Opener interface {
	// Open makes the binding of one run, which closes it; nil where it is lent none.
	Open(m *abi.Manifest, c store.Connection) (Binding, error)
}

// A Reader is a kind whose part of a manifest is its own to read: Members of abi.Binding.
type Reader interface {
	// Check refuses what is not valid; the error is an *abi.ManifestError.
	Check(b abi.Binding) error
}

// An Approver reads, shows, compares, widens and narrows the part of an approval that
// belongs to a kind, and leaves the other parts alone.
type Approver interface {
	// Approve checks what an owner approves against what the manifest asks for, and puts
	// it into c. The error is a *host.Refusal.
	Approve(q Approval, c *store.Connection) error
	// Read puts what a document of the API says into a, unchecked.
	Read(q host.Bindings, a *store.Approved)
	// Show puts what a connection was approved into a document of the API; asked says
	// that the manifest declares the binding, which then appears also where nothing is
	// approved.
	Show(c store.Connection, asked bool, q *host.Bindings)
	// Merge adds what is approved in more.
	Merge(a *store.Approved, more store.Approved)
	// Withdraw takes back what is named, and returns the names of which nothing was
	// approved.
	Withdraw(a *store.Approved, names []string) (missing []string)
	// Narrower reports whether old approves something that new does not.
	Narrower(old, new store.Approved) bool
}

// An Approval is what an owner approves.
type Approval struct {
	Manifest *abi.Manifest
	Bindings host.Bindings
	DataDir  string // of this host, which no guest may see; "" for none
}

// A Want is one thing that a manifest asks for. Wants are equal when they ask for the
// same.
type Want struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	To   string `json:"to,omitempty"`
	// Words are the same for people, after "it wants to"; they follow from the others.
	Words string `json:"-"`
}

// String is the want in plain words, free of control characters.
func (w Want) String() string { return abi.Clean(w.Words) }

// An Ask is one thing that a manifest asks of a binding, as an owner looks at it.
type Ask struct {
	// Wants are what is to be approved for it, none for what needs no approval; Missing
	// are those that are not approved.
	Wants, Missing []Want
	// Implied are wants that an approval of this one covers.
	Implied []Want
	// Words say what is asked for, "" where another Ask says it. Granted says what comes
	// of it, and Flag of the command line gives it, "" when it is given or nothing does.
	Words, Granted, Flag string
	// Lacks names what is not approved and a run cannot start without where the binding
	// is required, "" for nothing.
	Lacks string
}

// Kinds are all kinds that a host knows, in the order in which they are told and lent: a
// kind may look at what those before it said in START.
type Kinds []Kind

// Of finds a kind by its name.
func (ks Kinds) Of(name string) (Kind, bool) {
	i := slices.IndexFunc(ks, func(k Kind) bool { return k.Name() == name })
	if i < 0 {
		return nil, false
	}
	return ks[i], true
}

// Asks lists what a manifest asks for by binding, in the order of their names. Those
// that no kind has, and questions to the owner, are left out.
func (ks Kinds) Asks(m *abi.Manifest, a store.Approved) []Ask {
	var out []Ask
	for _, name := range slices.Sorted(maps.Keys(m.Bindings)) {
		if k, ok := ks.Of(name); ok {
			out = append(out, k.Asks(m, a)...)
		}
	}
	return out
}

// Check refuses a manifest whose part for a binding is not valid. The error is an
// *abi.ManifestError.
func (ks Kinds) Check(m *abi.Manifest) error {
	for _, k := range ks {
		b, declared := m.Bindings[k.Name()]
		if r, ok := k.(Reader); ok && declared {
			if err := r.Check(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Granted says in words what is approved.
func (ks Kinds) Granted(m *abi.Manifest, a store.Approved) []string {
	var out []string
	for _, k := range ks {
		out = append(out, k.Granted(m, a)...)
	}
	return out
}

// Approve is that of all kinds.
func (ks Kinds) Approve(q Approval, c *store.Connection) error {
	for _, k := range ks {
		if err := k.Approve(q, c); err != nil {
			return err
		}
	}
	return nil
}

// Read is that of all kinds.
func (ks Kinds) Read(q host.Bindings, a *store.Approved) {
	for _, k := range ks {
		k.Read(q, a)
	}
}

// Show is that of all kinds. m is nil where it is not known what the connector asks for.
func (ks Kinds) Show(c store.Connection, m *abi.Manifest, q *host.Bindings) {
	for _, k := range ks {
		asked := false
		if m != nil {
			_, asked = m.Bindings[k.Name()]
		}
		k.Show(c, asked, q)
	}
}

// Merge is that of all kinds.
func (ks Kinds) Merge(a *store.Approved, more store.Approved) {
	for _, k := range ks {
		k.Merge(a, more)
	}
}

// Withdraw takes back what is named, by the name of the kind.
func (ks Kinds) Withdraw(a *store.Approved, names map[string][]string) (missing []string) {
	for _, k := range ks {
		if of := names[k.Name()]; len(of) > 0 {
			missing = append(missing, k.Withdraw(a, of)...)
		}
	}
	return missing
}

// Narrower reports whether old approves something that new does not.
func (ks Kinds) Narrower(old, new store.Approved) bool {
	return slices.ContainsFunc(ks, func(k Kind) bool { return k.Narrower(old, new) })
}

// Without takes names away; those that were not there are missing.
func Without(have, names []string) (left, missing []string) {
	left = slices.DeleteFunc(slices.Clone(have), func(h string) bool { return slices.Contains(names, h) })
	for _, n := range names {
		if !slices.Contains(have, n) {
			missing = append(missing, n)
		}
	}
	return left, missing
}

// Union adds names that are not there yet.
func Union(have, more []string) []string {
	out := slices.Clone(have)
	for _, m := range more {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
