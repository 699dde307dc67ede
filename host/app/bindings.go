package app

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/grant"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Kinds are the bindings of this build.
var Kinds = binding.Kinds{
	filesystem.Kind{},
	network.Kind{},
	browser.Kind{}, // after the network, which it uses
}

// merge returns the union of two approvals.
func merge(have, more store.Approved) store.Approved {
	out := have
	Kinds.Merge(&out, more)
	out.Plain, out.Destinations = binding.Union(have.Plain, more.Plain),
		mergeDestinations(have.Destinations, more.Destinations)
	return out
}

// narrows reports whether new lacks something that old approves.
func narrows(old, new store.Approved) bool {
	if Kinds.Narrower(old, new) {
		return true
	}
	if _, missing := binding.Without(new.Plain, old.Plain); len(missing) > 0 {
		return true
	}
	for name, to := range old.Destinations {
		for _, d := range to {
			if !slices.ContainsFunc(new.Destinations[name], func(n abi.Destination) bool { return sameDestination(n, d) }) {
				return true
			}
		}
	}
	return new.NoInteractive && !old.NoInteractive
}

// Wants lists what a manifest requests, without duplicates.
func Wants(m *abi.Manifest) []binding.Want { return grant.Wants(Kinds, m) }

// ApprovedBy returns what an API document approves, without checking it.
func ApprovedBy(q host.Bindings) store.Approved {
	out := store.Approved{Destinations: q.Destinations, Plain: q.PlainAcknowledged,
		NoInteractive: q.Interactive != nil && !*q.Interactive}
	Kinds.Read(q, &out)
	return out
}

// An opening opens the bindings of one run. A binding may use those that were opened before it.
type opening struct {
	bindings *bindings
	request  RunRequest
	plan     *run.Plan
	reserved *egress.Policy // hosts that only the host itself reaches, for tokens
	tokens   *tokens
	trace    *requestLogger

	session binding.Binding               // the network binding, nil for none
	files   atomic.Pointer[filesystem.FS] // set when the guest is launched, if it has files
}

// open opens all bindings but the files, which are opened at launch. If it fails, none stays open.
func (o *opening) open() (lent []binding.Binding, err error) {
	if lent, err = openKinds(o.plan); err != nil {
		return nil, err
	}
	if o.session, err = o.bindings.network(o.request, o.plan, o.reserved, o.tokens, o.trace); err != nil {
		return nil, errors.Join(err, closeUnused(lent...))
	}
	pages, err := o.bindings.browser(o.request, o.plan, o.session, o.openFile)
	if err != nil {
		return nil, errors.Join(err, closeUnused(append(lent, o.session)...))
	}
	o.request = RunRequest{}                   // a run may wait for days and does not need its module any more
	return append(lent, pages, o.session), nil // the network comes last and takes handles that are not the browser's
}

// setFiles makes the files of the run available to the browser.
func (o *opening) setFiles(files binding.Binding) {
	if lent, ok := files.(filesystem.Binding); ok {
		o.files.Store(lent.FS)
	}
}

// openFile opens a file of the run.
func (o *opening) openFile(path string) (io.ReadCloser, error) {
	fs := o.files.Load()
	if fs == nil {
		return nil, errors.New("the run has no files")
	}
	return fs.Take(path)
}

// files opens the files of a run and returns them with the mounts for its worker. It returns nil if the manifest
// requests none.
func (h *bindings) files(m *abi.Manifest, conn store.Connection, id store.RunID) (binding.Binding, []abi.Mount, error) {
	if _, declared := m.Bindings[abi.BindingFilesystem]; !declared {
		return nil, nil, nil
	}
	fs, err := filesystem.Open(filesystem.GuestRoots(m, conn.Approved.Mounts),
		filepath.Join(h.scratchDir(), string(id)), h.Options.Quotas)
	if err != nil {
		code := "host_resources"
		if errors.Is(err, filesystem.ErrMountChanged) {
			code = "mount_changed"
		}
		return nil, nil, &run.LaunchError{Code: code, Err: err}
	}
	var mounts []abi.Mount
	for i, m := range fs.Mounts() {
		mounts = append(mounts, abi.Mount{ID: uint32(i), Path: m.Path})
	}
	return filesystem.Binding{FS: fs}, mounts, nil
}

// openKinds opens the bindings whose kinds implement binding.Opener.
func openKinds(plan *run.Plan) ([]binding.Binding, error) {
	var out []binding.Binding
	for _, k := range Kinds {
		o, ok := k.(binding.Opener)
		if _, declared := plan.Manifest.Bindings[k.Name()]; !ok || !declared {
			continue
		}
		b, err := o.Open(plan.Manifest, plan.Connection)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open binding %s: %w", k.Name(), err), closeUnused(out...))
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out, nil
}
