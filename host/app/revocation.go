package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A store belongs to one process at a time, but a revocation must not wait for it. It is left as a file beside
// the store, which the process that has the store open finds within revocationEvery, and any other finds when it
// opens the store. It is therefore not lost if that process is killed.
const revocationEvery = 300 * time.Millisecond

func revocations(dir string) string { return filepath.Join(dir, "revocations") }

// unknown is the suffix with which such a file is renamed if there is no such connection. The name is not a
// slug.
const unknown = ".unknown"

// LeaveRevocation asks the process that has the store in dir open to revoke the grant of a connection. taken
// reports whether that was done; its error is store.ErrNotFound if there is no such connection.
func LeaveRevocation(dir string, id store.ConnectionID) (taken func() (bool, error), err error) {
	if !abi.IsSlug(string(id)) {
		return nil, fmt.Errorf("connection id %q: want ^[a-z0-9][a-z0-9_-]{0,63}$", abi.Cut(abi.Clean(string(id)), 80))
	}
	if err := os.MkdirAll(revocations(dir), 0o700); err != nil {
		return nil, fmt.Errorf("leave revocation: %w", err)
	}
	path := filepath.Join(revocations(dir), string(id))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // an existing file requests the same
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("leave revocation: %w", err)
	}
	if err := syncDir(revocations(dir)); err != nil {
		return nil, fmt.Errorf("leave revocation: %w", err)
	}
	return func() (bool, error) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if os.Remove(path+unknown) == nil {
			return true, fmt.Errorf("connection %s: %w", id, store.ErrNotFound)
		}
		return true, nil
	}, nil
}

// takeRevocations performs the revocations that other processes left.
func (gs *grantStore) takeRevocations(ctx context.Context) error {
	if gs.DataDir == "" {
		return nil
	}
	left, err := os.ReadDir(revocations(gs.DataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for revocations: %w", err)
	}
	for _, e := range left {
		if err := gs.takeRevocation(ctx, filepath.Join(revocations(gs.DataDir), e.Name())); err != nil {
			return fmt.Errorf("revoke the grant of %s: %w", e.Name(), err)
		}
	}
	return nil
}

func (gs *grantStore) takeRevocation(ctx context.Context, path string) error {
	id := filepath.Base(path)
	if !abi.IsSlug(id) { // a response that is about to be read, or has no reader any more
		if fi, err := os.Lstat(path); err == nil && time.Since(fi.ModTime()) > time.Minute {
			return os.Remove(path)
		}
		return nil
	}
	_, err := gs.Revoke(ctx, store.ConnectionID(id))
	if errors.Is(err, store.ErrNotFound) {
		return os.Rename(path, path+unknown)
	}
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// withdrawnEvery is the interval at which a host looks for what other hosts have withdrawn, in case a wake-up is missed.
const withdrawnEvery = 5 * time.Second

// watchRevocations performs the revocations that other processes left, and cancels the runs from which other hosts
// have withdrawn something, until ctx ends.
func (gs *grantStore) watchRevocations(ctx context.Context) {
	look := time.NewTicker(revocationEvery)
	defer look.Stop()
	var withdrawn <-chan struct{} // nil for a host that shares no store
	var again <-chan time.Time
	if members := store.MembersOf(gs.Store); members != nil {
		wake, stop := members.Changed(store.Withdrawals)
		defer stop()
		every := time.NewTicker(withdrawnEvery)
		defer every.Stop()
		withdrawn, again = wake, every.C
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			err = gs.takeRevocations(ctx)
		case <-again: // of the runs that may do something meanwhile
			err = gs.active.cancelWithdrawn(ctx, gs.Store, false)
		case <-withdrawn:
			err = gs.active.cancelWithdrawn(ctx, gs.Store, true)
		}
		if err != nil && ctx.Err() == nil {
			gs.Options.Log.Error("revocation", "error", err)
		}
	}
}
