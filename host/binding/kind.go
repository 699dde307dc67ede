package binding

import (
	"maps"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A Kind is a kind of binding: everything that the host needs to know besides serving
// calls. The core has a list of kinds and does not name them elsewhere.
type Kind interface {
	// Name is its name in manifests and the API.
	Name() string
	// Imports returns the prefix of the functions that it serves, in the form MODULE.NAME,
	// and words for what a connector that imports them can do.
	Imports() (prefix, words string)
	// Asks lists what a manifest that declares the binding asks for, in the order in which
	// an owner is shown it, with the state of its approval.
	Asks(m *abi.Manifest, a store.Approved) []Ask
	// Request adds what a manifest asks for to an API document.
	Request(b abi.Binding, r *host.RequestedBinding)
	// Granted describes in words what is approved.
	Granted(m *abi.Manifest, a store.Approved) []string
	// AddToStart adds the binding to START. It is called for every kind of this host, whether or
	// not the manifest declares it. The error is a *host.Refusal.
	AddToStart(m *abi.Manifest, c store.Connection, lent *abi.Bindings) error
	// Denial answers calls of a guest whose run did not get the binding.
	Denial() (code, message string)
	Approver
	Commander
}

// An Opener is a kind that opens a run's binding itself, without needing anything of its
// host.
type Opener interface {
	// Open opens the binding of one run, which closes it. It returns nil if the binding is
	// not approved.
	Open(m *abi.Manifest, c store.Connection) (Binding, error)
}

// A Reader is a kind that reads its part of a manifest itself, from abi.Binding.Members.
type Reader interface {
	// Check validates that part. The error is an *abi.ManifestError.
	Check(b abi.Binding) error
}

// An Approver handles the part of an approval that belongs to its kind, and leaves the
// other parts unchanged.
type Approver interface {
	// Approve checks an approval against the manifest and stores it in c. The error is a
	// *host.Refusal.
	Approve(q Approval, c *store.Connection) error
	// Read copies the part of an API document to a, unchecked.
	Read(q host.Bindings, a *store.Approved)
	// Show adds the approval of a connection to an API document. With asked, the manifest
	// declares the binding, which is then shown even if nothing is approved.
	Show(c store.Connection, asked bool, q *host.Bindings)
	// Merge adds the approvals in more.
	Merge(a *store.Approved, more store.Approved)
	// Withdraw removes the named approvals and returns the names that were not approved.
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

// A Want is one thing that a manifest asks for. Equal wants ask for the same.
type Want struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	To   string `json:"to,omitempty"`
	// Words describe it to people, after "it wants to"; they follow from the other members.
	Words string `json:"-"`
}

// String returns Words without control characters.
func (w Want) String() string { return abi.Clean(w.Words) }

// An Ask is one request of a manifest and the state of its approval.
type Ask struct {
	// Wants have to be approved for it; none if it needs no approval. Missing are those not
	// approved.
	Wants, Missing []Want
	// Implied are wants that are covered by this approval.
	Implied []Want
	// Words describe it, "" if another Ask does. Granted describes the result, and Flag is
	// the option that approves it, "" if it is approved or there is no option.
	Words, Granted, Flag string
	// Lacks names what is not approved and prevents a run if the binding is required, or
	// "".
	Lacks string
}

// Kinds are all kinds that a host knows, in the order of display and of AddToStart: a kind may
// use what earlier ones added to START.
type Kinds []Kind

// Of finds a kind by its name.
func (ks Kinds) Of(name string) (Kind, bool) {
	i := slices.IndexFunc(ks, func(k Kind) bool { return k.Name() == name })
	if i < 0 {
		return nil, false
	}
	return ks[i], true
}

// Asks lists what a manifest asks for, by name of the binding. It leaves out unknown
// bindings and questions to the owner.
func (ks Kinds) Asks(m *abi.Manifest, a store.Approved) []Ask {
	var out []Ask
	for _, name := range slices.Sorted(maps.Keys(m.Bindings)) {
		if k, ok := ks.Of(name); ok {
			out = append(out, k.Asks(m, a)...)
		}
	}
	return out
}

// Check validates a manifest's bindings. The error is an *abi.ManifestError.
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

// Granted describes in words what is approved.
func (ks Kinds) Granted(m *abi.Manifest, a store.Approved) []string {
	var out []string
	for _, k := range ks {
		out = append(out, k.Granted(m, a)...)
	}
	return out
}

// Approve calls Approve of all kinds.
func (ks Kinds) Approve(q Approval, c *store.Connection) error {
	for _, k := range ks {
		if err := k.Approve(q, c); err != nil {
			return err
		}
	}
	return nil
}

// Read calls Read of all kinds.
func (ks Kinds) Read(q host.Bindings, a *store.Approved) {
	for _, k := range ks {
		k.Read(q, a)
	}
}

// Show calls Show of all kinds. m is nil if the manifest is unknown.
func (ks Kinds) Show(c store.Connection, m *abi.Manifest, q *host.Bindings) {
	for _, k := range ks {
		asked := false
		if m != nil {
			_, asked = m.Bindings[k.Name()]
		}
		k.Show(c, asked, q)
	}
}

// Merge calls Merge of all kinds.
func (ks Kinds) Merge(a *store.Approved, more store.Approved) {
	for _, k := range ks {
		k.Merge(a, more)
	}
}

// Withdraw removes the approvals named for each kind.
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

// Without returns have without names, and the names that it did not contain.
func Without(have, names []string) (left, missing []string) {
	left = slices.DeleteFunc(slices.Clone(have), func(h string) bool { return slices.Contains(names, h) })
	for _, n := range names {
		if !slices.Contains(have, n) {
			missing = append(missing, n)
		}
	}
	return left, missing
}

// Union returns have with the names of more that it did not contain.
func Union(have, more []string) []string {
	out := slices.Clone(have)
	for _, m := range more {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
