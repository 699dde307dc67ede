package binding

import (
	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A Flag is the command-line option with which an owner approves a binding. It is repeated
// for several values, or is a switch without a value.
type Flag struct {
	Name, Usage string
	Switch      bool
	// Take and TakeUsage describe the option that withdraws an approval.
	Take, TakeUsage string
}

// FlagValues are what an owner approves on a command line.
type FlagValues struct {
	Manifest *abi.Manifest
	Values   []string // of the flag; any value turns on a switch
	DataDir  string   // see Approval
	Remote   bool     // the host is another machine and checks files itself
}

// A Commander can be approved on a command line.
type Commander interface {
	Flag() Flag
	// ParseFlag parses the values of the flag. The error names the flag.
	ParseFlag(v FlagValues) (store.Approved, error)
	// Offer returns what the owner can approve with a single yes beyond what is approved:
	// words after "it wants to", or "", and the approval.
	Offer(m *abi.Manifest, a store.Approved) (words string, more store.Approved)
	// Choices lists what is required but not approved, and needs more of the owner than a
	// yes.
	Choices(m *abi.Manifest, a store.Approved) []Choice
}

// A Choice is something that an owner approves by naming a thing, such as a directory.
type Choice struct {
	Words   string // after "it wants to"
	Purpose string // as stated by the manifest; "" for none
	Prompt  string // for the name
	More    string // asks, after the name, whether to approve the larger request too; "" if there is none
	// Take returns the approval of the named thing.
	Take func(name, dataDir string, more bool) (store.Approved, error)
}
