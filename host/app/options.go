package app

import (
	"log/slog"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
)

// Options configure a Host. The zero value uses the user's data directory.
type Options struct {
	// Store is badger:DIR, memory: or the URL of a database; "" is badger: with the default directory.
	Store string
	// Labels describe what this host has that others may lack; see CheckLabels.
	Labels []string
	// CacheDir holds compiled modules; "" means DIR/cache, or the user's cache directory for memory:.
	CacheDir string
	// Require is the minimal isolation: "", partial or full.
	Require        string
	AllowNetworkFS bool
	AcceptLoss     bool
	Log            *slog.Logger

	Limits  abi.Limits
	Budgets run.Budgets
	Quotas  filesystem.Quotas
	Files   run.FileQuotas // limits of files that belong to records
	Copies  CopyQuotas
	Module  sandbox.ModuleLimits
	Journal JournalOptions // for runs that wait for their owner
	// RateLimit limits the requests to each server; the zero value means the default.
	RateLimit egress.RateLimit
	// MemoryBytes limits a guest's linear memory; 0 means 256 MiB.
	MemoryBytes uint64
	// Prespawn is how many idle workers are kept ready; -1 means none.
	Prespawn int
	// OneRun is for commands that end after one run, so that no worker is kept for another.
	OneRun bool
	// Walls selects the layers of the jail, for benchmarks; the zero value means all.
	Walls jail.Walls
	// NoSandbox opens only the store, for commands that run nothing.
	NoSandbox bool
	// Browser configures the browsers of this machine (browser.*). Their data directory is set by the host.
	Browser browser.Options
	// Browsers lends browsers to runs; nil means those of this machine. The host closes it.
	Browsers Browsers
	// RequireSignature refuses to install unsigned modules.
	RequireSignature bool
}

// CopyQuotas limit, in bytes on disk, the data beside the store that can be rebuilt. The zero value means the
// default.
type CopyQuotas struct {
	Query     int64 // copies of all connections for queries
	Search    int64 // indexes for search
	Assistant int64 // copies for one assistant, and the same again for its indexes
}

// DefaultCopyQuotas returns the default quotas.
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
	if o.RateLimit == (egress.RateLimit{}) {
		o.RateLimit = egress.DefaultRateLimit()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// DefaultOptions returns Options with the defaults filled in, for callers that change some of them.
func DefaultOptions() Options {
	return Options{Budgets: run.DefaultBudgets(), Files: run.DefaultFileQuotas(), Copies: DefaultCopyQuotas(),
		RateLimit: egress.DefaultRateLimit()}
}
