package app

import (
	"log/slog"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
)

// Options configure a Host. The zero value uses the user's data directory.
type Options struct {
	// Store is badger:DIR or memory:; "" is badger: and the default directory.
	Store string
	// Labels are what this host has that others may not, as CheckLabels has them.
	Labels []string
	// CacheDir holds compiled modules; "" is DIR/cache, or the user's cache
	// directory for memory:.
	CacheDir string
	// Require is the least isolation: "", partial or full.
	Require        string
	AllowNetworkFS bool
	AcceptLoss     bool
	Log            *slog.Logger

	Limits  abi.Limits
	Budgets run.Budgets
	Quotas  filesystem.Quotas
	Files   run.FileQuotas // of files that records hold
	Copies  CopyQuotas
	Module  sandbox.ModuleLimits
	Journal JournalOptions // of runs that wait for their owner
	// Pace is how fast each server is asked; the zero value is the default.
	Pace network.Pace
	// MemoryBytes caps a guest's linear memory; 0 is 256 MiB.
	MemoryBytes uint64
	// Prespawn is how many blank workers wait; -1 for none.
	Prespawn int
	// OneRun is for commands that end after one run: no worker waits for another.
	OneRun bool
	// Walls are for benchmarks of the price of the jail; the zero value is all.
	Walls jail.Walls
	// NoSandbox opens the store alone, for commands that run nothing.
	NoSandbox bool
	// Browser configures the browsers of this machine (browser.*); their data is the
	// host's.
	Browser browser.Options
	// Browsers lends browsers to runs; nil lends those of this machine. The host closes
	// it.
	Browsers Browsers
	// RequireSignature refuses to install unsigned modules.
	RequireSignature bool
}

// CopyQuotas bound what may be made anew and is kept beside the store, in bytes on the disk.
// The zero value is the default.
type CopyQuotas struct {
	Query     int64 // copies for queries, of all connections
	Search    int64 // indexes for search
	Assistant int64 // copies for one assistant, and as much for its indexes
}

// DefaultCopyQuotas are those of a host that was not told otherwise.
func DefaultCopyQuotas() CopyQuotas {
	return CopyQuotas{Query: 16 << 30, Search: 16 << 30, Assistant: 4 << 30}
}

func (o Options) settled() Options {
	if o.Limits == (abi.Limits{}) {
		o.Limits = abi.DefaultLimits()
	}
	if o.Budgets == (run.Budgets{}) {
		o.Budgets = run.DefaultBudgets()
	}
	if o.Quotas == (filesystem.Quotas{}) {
		o.Quotas = filesystem.DefaultQuotas()
	}
	if o.Files == (run.FileQuotas{}) {
		o.Files = run.DefaultFileQuotas()
	}
	if o.Copies == (CopyQuotas{}) {
		o.Copies = DefaultCopyQuotas()
	}
	if o.Module == (sandbox.ModuleLimits{}) {
		o.Module = sandbox.DefaultModuleLimits()
	}
	if o.Pace == (network.Pace{}) {
		o.Pace = network.DefaultPace()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// DefaultOptions are Options with the defaults written out, for who changes one of them.
func DefaultOptions() Options {
	return Options{Budgets: run.DefaultBudgets(), Files: run.DefaultFileQuotas(), Copies: DefaultCopyQuotas(), Pace: network.DefaultPace()}
}
