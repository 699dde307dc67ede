package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
)

// A Sandbox starts guests. It is safe for concurrent use.
type Sandbox struct {
	options  Options
	launcher *jail.Launcher
	pool     *pool
	cache    *cache
	probed   atomic.Pointer[jail.Isolation] // what Probe found; nil before
	broken   atomic.Bool                    // Probe found a hole
}

// Open opens the cache and starts blank workers in the background. It fails if the options are out of bounds, or if the
// launcher or the cache directory cannot be used.
func Open(ctx context.Context, o Options) (*Sandbox, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	launcher, err := jail.NewLauncher(o.Jail)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	s := &Sandbox{options: o, launcher: launcher}
	if s.cache, err = openCache(o, launcher.GID()); err != nil {
		return nil, errors.Join(fmt.Errorf("open sandbox: %w", err), launcher.Close())
	}
	s.pool = openPool(launcher, o)
	return s, nil
}

// Close kills every worker and waits until all have ended.
func (s *Sandbox) Close() error {
	s.pool.close()
	err := s.launcher.Close()
	s.cache.close()
	return err
}

// Workers returns how many workers wait for a task, and how many are in use.
func (s *Sandbox) Workers() (blank, busy int) {
	live := s.launcher.Live()
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	blank = min(len(s.pool.idle), live)
	return blank, live - blank
}

// ErrIsolationBroken means that an isolation layer that is reported as active let a canary through. No guest starts
// then.
var ErrIsolationBroken = errors.New("isolation_broken")

// Probe sends canaries into the jail and reports which layers hold and which are missing. From then on, a worker that
// gets less isolation than Probe found is refused. A host calls it at start, before any run; doctor prints the report.
// dataDir is the host's data directory, which no canary may reach.
//
// The report is complete even if the error is ErrIsolationBroken, or a *Failure with CodeIsolationUnavailable because
// less than Options.Require holds.
func (s *Sandbox) Probe(ctx context.Context, dataDir string) (jail.Report, error) {
	report, err := s.launcher.Probe(ctx, dataDir)
	if err != nil {
		return report, fmt.Errorf("probe isolation: %w", err)
	}
	if broken := report.Broken(); len(broken) > 0 {
		names := make([]string, len(broken))
		for i, a := range broken {
			names[i] = a.Name
		}
		s.broken.Store(true)
		return report, fmt.Errorf("%w: %s", ErrIsolationBroken, strings.Join(names, ", "))
	}
	s.broken.Store(false)
	s.probed.Store(&report.Isolation)
	if r := s.options.Require; r != "" && !report.Isolation.Meets(r) {
		return report, &Failure{Code: CodeIsolationUnavailable,
			Detail: fmt.Sprintf("isolation is %s, %s is required", report.Isolation.Level, r)}
	}
	return report, nil
}

// Isolation is the isolation around a guest, for packages that do not import jail.
type Isolation = jail.Isolation

// Options configure a [Sandbox]. Zero fields mean the defaults, except those that are marked required.
type Options struct {
	// CacheDir is the directory of compiled code; required. It must belong to this user alone.
	CacheDir string
	// CacheKey authenticates cache entries. If it is empty, a random key is kept in CacheDir.
	CacheKey []byte
	// CacheBytes limits the whole cache, EntryBytes one entry.
	CacheBytes, EntryBytes int64

	// BuildID is the build that workers must report, worker.BuildID(); required.
	BuildID string
	// Engine is the engine's name and version, worker.EngineVersion(); required. It is part of every cache key.
	Engine string

	// Jail configures the launcher.
	Jail jail.Options
	// Require is the lowest isolation level at which a run may start: one of the jail's levels, or empty for any.
	Require string

	// Prespawn is the number of blank workers kept ready, -1 for none; BlankLife is how long each may wait. With
	// OneRun, one worker is kept ready and is not replaced, because no other run follows.
	Prespawn  int
	OneRun    bool
	BlankLife time.Duration

	// CompileCPU, CompileWall and CompileData limit one compilation.
	CompileCPU, CompileWall time.Duration
	CompileData             uint64

	// Limits are the size limits of messages to and from workers.
	Limits abi.WireLimits
	// DataBytes is the memory of a worker beyond guest memory and code.
	DataBytes uint64
	// CallsPerSecond and CallBurst limit a guest's calls; a guest above them is slowed down.
	CallsPerSecond, CallBurst int

	// Audit receives events for the audit log: a name such as "cache_entry_bad", and details without secrets. It may be
	// nil.
	Audit func(event string, details map[string]string)
	// Log receives diagnostics about workers; nil discards them.
	Log *slog.Logger
}

// Bounds and defaults of the options.
const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30

	defaultMemory = 256 * mebibyte // guest.memory
	maxMemory     = 4 * gibibyte
)

// withDefaults fills in defaults. The error names each option that is out of bounds.
func (o Options) withDefaults() (Options, error) {
	if o.CacheDir == "" || o.BuildID == "" || o.Engine == "" {
		return o, errors.New("sandbox options: CacheDir, BuildID and Engine are required")
	}
	bound := func(key string, v *int64, fallback, most int64) error {
		if *v == 0 {
			*v = fallback
		}
		if *v < 0 || *v > most {
			return fmt.Errorf("%s is %d: want 1 to %d", key, *v, most)
		}
		return nil
	}
	duration := func(d *time.Duration) *int64 { return (*int64)(d) }
	prespawn, rate, burst := int64(o.Prespawn), int64(o.CallsPerSecond), int64(o.CallBurst)
	if prespawn < 0 {
		prespawn = 1 // any valid value; set to 0 below
	}
	compileData, data := int64(o.CompileData), int64(o.DataBytes)
	err := errors.Join(
		bound("cache.max_bytes", &o.CacheBytes, 2*gibibyte, 1<<50),
		bound("cache.entry_bytes", &o.EntryBytes, 512*mebibyte, gibibyte),
		bound("worker.prespawn", &prespawn, 2, 16),
		bound("worker.blank_life", duration(&o.BlankLife), int64(5*time.Minute), int64(time.Hour)),
		bound("compile.cpu", duration(&o.CompileCPU), int64(30*time.Second), int64(300*time.Second)),
		bound("compile.wall", duration(&o.CompileWall), int64(60*time.Second), int64(600*time.Second)),
		bound("compile.data", &compileData, gibibyte, 4*gibibyte),
		bound("worker.data", &data, 384*mebibyte, gibibyte),
		bound("guest.calls_per_second", &rate, 20_000, 100_000),
		bound("guest.call_burst", &burst, 5_000, 100_000),
	)
	switch {
	case o.Prespawn < 0:
		prespawn = 0
	case o.OneRun:
		prespawn = 1
	}
	o.Prespawn, o.CallsPerSecond, o.CallBurst = int(prespawn), int(rate), int(burst)
	o.CompileData, o.DataBytes = uint64(compileData), uint64(data)
	if o.Limits == (abi.WireLimits{}) {
		o.Limits = abi.DefaultWireLimits()
	}
	if !o.Limits.Valid() {
		err = errors.Join(err, errors.New("limits of messages are out of bounds"))
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Audit == nil {
		o.Audit = func(string, map[string]string) {}
	}
	if err != nil {
		return o, fmt.Errorf("sandbox options: %w", err)
	}
	return o, nil
}
