package app

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/store"
)

// A Host is an open data directory with everything that works on it. newHost connects the parts; each part knows
// only those that it needs.
type Host struct {
	*directory
	*guests
	*modules
	*publishers
	*installer
	*grantStore
	*secretStore
	*bindings
	*authorizer
	*starter
	*artifacts
	*recordFiles
	*backups
	*snapshots
	*checks
	connections *connectionStore
	active      *activeRuns
	stop        func() // ends the background goroutines
}

// newHost makes the parts of a host over a directory, which need not be open yet.
func newHost(d *directory) *Host {
	h := &Host{directory: d, active: &activeRuns{}, checks: &checks{}}
	h.guests = &guests{directory: d}
	h.modules = &modules{directory: d, checked: checkedModules{by: map[store.Digest]*checkedFile{}}}
	h.publishers = &publishers{d, h.modules}
	h.installer = &installer{directory: d, modules: h.modules, publishers: h.publishers, guests: h.guests}
	h.connections = &connectionStore{directory: d}
	h.grantStore = &grantStore{d, h.connections, h.publishers, h.active}
	h.secretStore = &secretStore{d}
	h.bindings = &bindings{d, egress.NewRateLimiter(d.Options.RateLimit)}
	h.authorizer = &authorizer{d, h.connections, h.grantStore, h.secretStore, h.bindings}
	h.starter = &starter{d, h.connections, h.publishers, h.grantStore, h.secretStore, h.authorizer,
		h.bindings, h.guests, h.active}
	h.artifacts = &artifacts{directory: d}
	h.recordFiles = &recordFiles{d}
	h.backups = &backups{directory: d}
	h.snapshots = &snapshots{d, h.modules, h.secretStore, h.bindings}
	return h
}

// Over returns a host that differs only in its store, which the caller closes. Runs of the two hosts do not know
// of each other.
func (h *Host) Over(st store.Store) *Host {
	d := *h.directory
	d.Store = st
	over := newHost(&d)
	over.guests.Sandbox, over.bindings.pace = h.guests.Sandbox, h.bindings.pace
	return over
}

// Open opens the store, closes the runs that an earlier host left active, and starts the sandbox.
func Open(ctx context.Context, o Options) (*Host, error) {
	o = o.settled()
	restrictUmask()
	h := newHost(newDirectory(o))
	if err := h.openStore(); err != nil {
		return nil, err
	}
	h.pace.Share(store.SharedRateLimiterOf(h.Store))
	if err := h.openRest(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Host) openRest(ctx context.Context) error {
	if err := h.openLogs(); err != nil {
		return err
	}
	if err := h.reconcile(ctx, nil); err != nil {
		return err
	}
	if err := h.takeRevocations(ctx); err != nil && !errors.Is(err, store.ErrReadOnly) {
		return err
	}
	if err := h.identify(); err != nil && !h.Options.NoSandbox { // stored data stays readable on a full disk
		return err
	}
	if h.shared == nil && h.DataDir != "" && store.Damage(h.Store) == nil {
		if err := h.leaveVault(ctx); err != nil && !errors.Is(err, store.ErrReadOnly) {
			h.Options.Log.Error("secrets_not_moved", "error", err)
		}
	}
	if h.Options.NoSandbox {
		return nil
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
		h.Options.Browsers = newBrowsers(h.directory)
	}
	if h.DataDir != "" {
		h.watch()
	}
	return nil
}

// watch starts the goroutines that run until the host is closed.
func (h *Host) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { h.watchRevocations(ctx) })
	if h.sharesAudit() {
		watching.Go(func() { h.watchAudit(ctx) })
	}
	h.stop = func() {
		cancel()
		watching.Wait()
	}
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
		h.lastCopyAudit()
		errs = append(errs, h.Store.Close())
	}
	if h.temp != "" {
		errs = append(errs, os.RemoveAll(h.temp))
	}
	return errors.Join(errs...)
}
