package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/host/worker"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

// Options configure a Host. The zero value uses the user's data directory.
type Options struct {
	// Store is badger:DIR or memory:; "" is badger: and the default directory.
	Store string
	// CacheDir holds compiled modules; "" is DIR/cache, or the user's cache
	// directory for memory:.
	CacheDir string
	// Require is the least isolation: "", partial or full (S21).
	Require        string
	AllowNetworkFS bool
	AcceptLoss     bool
	Log            *slog.Logger

	Limits  abi.Limits
	Budgets run.Budgets
	Quotas  filesystem.Quotas
	Module  sandbox.ModuleLimits
	// Pace is how fast each server is asked; the zero value is the default.
	Pace network.Pace
	// MemoryBytes caps a guest's linear memory; 0 is 256 MiB.
	MemoryBytes uint64
	// Prespawn is how many blank workers wait; -1 for none.
	Prespawn int
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
	// RequireSignature refuses to install unsigned modules (S140).
	RequireSignature bool
}

// A Host is one open data directory with everything that works on it.
type Host struct {
	Store   store.Store
	Sandbox *sandbox.Sandbox
	// DataDir is "" for memory:.
	DataDir string
	Options Options
	ID      string // of this installation
	Epoch   string // of this start (R189)
	pace    *network.Governor
	active  *active
	temp    string // scratch space of a memory: host
	stop    func() // ends what watches in the background

	started   time.Time
	creating  sync.Mutex // held while a connection is made: there is one of each id
	isolation isolation
	checks    checks
	attention Attention  // nil for none
	listing   sync.Mutex // held while a connector is put on the list
	backing   sync.Mutex // held while a backup is made

	refusals *audit.Limited  // nil for memory:
	requests *audit.Requests // nil for memory:
}

// Over is the same host with another store, which is closed by whoever opened
// it. Runs of the two know nothing of each other.
func (h *Host) Over(st store.Store) *Host {
	return &Host{
		Store: st, Sandbox: h.Sandbox, DataDir: h.DataDir, Options: h.Options, ID: h.ID, Epoch: h.Epoch, pace: h.pace, active: &active{},
		temp: h.temp, started: h.started, refusals: h.refusals, requests: h.requests,
	}
}

// DefaultDataDir is where a user's data lives unless a store is named.
func DefaultDataDir() (string, error) {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "sluice"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find data directory: %w; name one with --store badger:DIR", err)
	}
	return filepath.Join(home, ".local", "share", "sluice"), nil
}

// Open opens the store, reconciles runs that an earlier host left behind
// (R188) and starts the sandbox.
func Open(ctx context.Context, o Options) (*Host, error) {
	o = o.settled()
	restrictUmask()
	h := &Host{Options: o, Epoch: randomID("boot_"), pace: network.NewGovernor(o.Pace), active: &active{}, started: time.Now()}
	if err := h.openStore(); err != nil {
		return nil, err
	}
	if err := h.openRest(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
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

// DataDir is the directory that a store's name means, "" for memory:. It need
// not exist.
func DataDir(store string) (string, error) {
	h := &Host{Options: Options{Store: store}}
	_, err := h.locate()
	return h.DataDir, err
}

// ErrStoreURL: the store's name is not one that this build understands.
var ErrStoreURL = drivers.ErrAddress

// Home is a path whose leading ~ is the home of the user who runs this process.
func Home(path string) string { return filesystem.Home(path) }

// locate settles which store is meant, and the data directory.
func (h *Host) locate() (url string, err error) {
	url = h.Options.Store
	if url == "" {
		dir, err := DefaultDataDir()
		if err != nil {
			return "", err
		}
		url = "badger:" + dir
	}
	a, err := drivers.Parse(url)
	if err != nil {
		return "", fmt.Errorf("store %q: %w", abi.Cut(abi.Clean(url), 200), err)
	}
	if a.Dir == "" {
		return url, nil
	}
	if a.Dir, err = filepath.Abs(Home(a.Dir)); err != nil {
		return "", fmt.Errorf("store %s: %w", url, err)
	}
	if fi, err := os.Stat(a.Dir); err == nil && !fi.IsDir() {
		return "", fmt.Errorf("store %q: it is no directory: %w", abi.Cut(abi.Clean(url), 200), ErrStoreURL)
	}
	h.DataDir = a.Dir
	return a.String(), nil
}

func (h *Host) openStore() error {
	url, err := h.locate()
	if err != nil {
		return err
	}
	return h.openURL(url)
}

// ballast is as much as the store needs to be closed in order (S125).
const ballast = 64 << 20

func (h *Host) openURL(url string) error {
	s, err := drivers.Open(url, drivers.Options{
		Logger: h.Options.Log, AllowNetworkFS: h.Options.AllowNetworkFS, AcceptLoss: h.Options.AcceptLoss,
		Ballast: ballast,
	})
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("open data directory %s: %w; make it yours, or name another with --store badger:DIR", h.DataDir, err)
	}
	if err != nil {
		return err
	}
	h.Store = s
	if limit := store.MemoryLimit(s); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit) // of the process, as the umask is
	}
	return nil
}

func (h *Host) openRest(ctx context.Context) error {
	if err := h.openLogs(); err != nil {
		return err
	}
	if err := h.reconcile(ctx); err != nil {
		return err
	}
	if err := h.takeRevocations(ctx); err != nil && !errors.Is(err, store.ErrReadOnly) {
		return err
	}
	if h.Options.NoSandbox {
		return nil
	}
	if err := h.identify(); err != nil {
		return err
	}
	if err := h.clearScratch(); err != nil {
		return err
	}
	if err := h.sweepTraces(ctx); err != nil {
		h.Options.Log.Warn("traces_not_swept", "error", err)
	}
	if err := h.openSandbox(ctx); err != nil {
		return err
	}
	if h.Options.Browsers == nil {
		h.Options.Browsers = newBrowsers(h)
	}
	if h.DataDir != "" {
		h.watch()
	}
	return nil
}

// watch begins what goes on until the host is closed.
func (h *Host) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { h.watchRevocations(ctx) })
	h.stop = func() {
		cancel()
		watching.Wait()
	}
}

// reconcile closes the runs that an earlier start left active (R188), so that
// whoever looks sees how they ended. The lock of the data directory says that
// nobody else has them.
func (h *Host) reconcile(ctx context.Context) error {
	if err := run.Reconcile(ctx, h.Store, "", h.Epoch); err != nil && !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("close runs of an earlier start: %w", err)
	}
	return nil
}

func (h *Host) openSandbox(ctx context.Context) error {
	cache, err := h.cacheDir()
	if err != nil {
		return err
	}
	wire := abi.DefaultWireLimits()
	h.Sandbox, err = sandbox.Open(ctx, sandbox.Options{
		CacheDir: cache, BuildID: worker.BuildID(), Engine: worker.EngineVersion(), Jail: jail.Options{Walls: h.Options.Walls},
		Require: h.Options.Require, Prespawn: h.Options.Prespawn, Limits: wire, Log: h.Options.Log,
		Audit: func(event string, details map[string]string) { h.Options.Log.Warn(event, "details", details) },
	})
	return err
}

// identify reads or makes the id of this installation. What is no id, as a power
// cut or a bad disk leaves it, is replaced: nothing stored refers to it.
func (h *Host) identify() error {
	if h.DataDir == "" {
		h.ID = randomID("host_")
		return nil
	}
	path := filepath.Join(h.DataDir, "host-id")
	b, err := os.ReadFile(path)
	if h.ID = strings.TrimSpace(string(b)); err == nil && isID("host_", h.ID) {
		return nil
	}
	if err == nil {
		h.Options.Log.Warn("installation_id_replaced", "was", abi.Cut(abi.Clean(h.ID), 80))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		h.ID = randomID("host_")
		err = writeWhole(path, []byte(h.ID), 0o600)
	}
	if err != nil {
		return fmt.Errorf("read installation id: %w", err)
	}
	return nil
}

func (h *Host) cacheDir() (string, error) {
	switch {
	case h.Options.CacheDir != "":
		return h.Options.CacheDir, nil
	case h.DataDir != "":
		return filepath.Join(h.DataDir, "cache"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache directory: %w; set SLUICE_CACHE to one", err)
	}
	return filepath.Join(dir, "sluice"), nil
}

// scratchDir holds the /tmp directories of runs; they are erased at boot
// (S60, S149).
func (h *Host) scratchDir() string {
	if h.DataDir != "" {
		return filepath.Join(h.DataDir, "runs")
	}
	return h.temp
}

func (h *Host) clearScratch() error {
	if h.DataDir == "" {
		dir, err := os.MkdirTemp("", "sluice-runs-")
		h.temp = dir
		return err
	}
	if err := os.RemoveAll(h.scratchDir()); err != nil {
		return fmt.Errorf("clear scratch space: %w", err)
	}
	return nil
}

// Close ends all workers and closes the store.
func (h *Host) Close() error {
	var errs []error
	if h.stop != nil {
		h.stop()
	}
	if h.Sandbox != nil {
		errs = append(errs, h.Sandbox.Close())
	}
	if b := h.Options.Browsers; b != nil {
		errs = append(errs, b.Close(context.Background()))
	}
	errs = append(errs, h.closeLogs())
	if h.Store != nil {
		errs = append(errs, h.Store.Close())
	}
	if h.temp != "" {
		errs = append(errs, os.RemoveAll(h.temp))
	}
	return errors.Join(errs...)
}

func randomID(prefix string) string {
	var b [8]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// isID reports whether randomID could have made id.
func isID(prefix, id string) bool {
	digits, ok := strings.CutPrefix(id, prefix)
	b, err := hex.DecodeString(digits)
	return ok && err == nil && len(b) == 8
}

// writeWhole replaces a file as one step, which is on the device when it
// returns: a power cut leaves the old file or the new one.
func writeWhole(path string, data []byte, perm fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}
