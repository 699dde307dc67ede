package binding

import (
	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A Flag is the option of the command line by which an owner approves a binding. It is
// given once for each value, or is a switch without any.
type Flag struct {
	Name, Usage string
	Switch      bool
	// Take and TakeUsage are those of the option that takes an approval back.
	Take, TakeUsage string
}

// A Given is what an owner approves on a command line.
type Given struct {
	Manifest *abi.Manifest
	Values   []string // of the flag; of a switch, any says that it is on
	DataDir  string   // see Approval
	Remote   bool     // the host is another machine, which looks at its files itself
}

// A Commander is approved on a command line.
type Commander interface {
	Flag() Flag
	// Given reads what was given with the flag. The error names the flag.
	Given(g Given) (store.Approved, error)
	// Offer is what the owner may approve with one yes, besides what is approved: words
	// after "it wants to", "" for nothing, and the approval.
	Offer(m *abi.Manifest, a store.Approved) (words string, more store.Approved)
	// Choices are what is required, not approved, and needs more of an owner than a yes.
	Choices(m *abi.Manifest, a store.Approved) []Choice
}

// A Choice is what an owner approves by naming something.
type Choice struct {
	Words   string // after "it wants to"
	Purpose string // that the manifest states; "" for none
	Prompt  string // asks for the name
	More    string // asks, once there is a name, whether to give all that is wanted; "" where there is no more
	// Take approves what was named.
	Take func(name, dataDir string, more bool) (store.Approved, error)
}
