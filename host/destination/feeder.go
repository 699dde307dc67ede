package destination

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A feeder says which of the hosts that share a store feeds a destination. It is part of the definition, and each
// change is one write conditional on the revision that was read.
//
// Invariant: an epoch of a host has a feed of the destination only while Epoch names it. The feeding host names its
// successor after its own feed has ended. Another host names itself only once the feeder is no longer a member, after
// which the store accepts no writes from it. Requests that a stopped host still sends to the destination are refused by
// the destination's own fence.
type feeder struct {
	Host  string `json:"host,omitempty"`  // lasting id
	Epoch string `json:"epoch,omitempty"` // of Host; "" for a host of an older version
	Next  string `json:"next,omitempty"`  // epoch of the host that is to take over once Host lets go
	// Owner is the host whose id the destination was claimed with, if that is not Host.
	Owner string `json:"owner,omitempty"`
}

// pass makes another host the feeder.
func (r *feeder) pass(host, epoch string) {
	owner := cmp.Or(r.Owner, r.Host)
	*r = feeder{Host: host, Epoch: epoch}
	if owner != host {
		r.Owner = owner
	}
}

// of returns the feeder if it is one of the given members, otherwise nil.
func (r *feeder) of(all []store.Member) *store.Member {
	i := slices.IndexFunc(all, func(m store.Member) bool {
		return m.Epoch == r.Epoch || r.Epoch == "" && m.ID == r.Host
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// owner returns the identity with which a destination is claimed.
func (def definition) owner(o Options) Owner {
	return Owner{Host: cmp.Or(def.Owner, def.Host, o.Host), Destination: def.Name, Marks: marks{o.Store, def.ID}}
}

// lookAgain is how often a host checks the feeders when nothing wakes it.
const lookAgain = 15 * time.Second

// tend takes over destinations that no host feeds, and hands over those that another host is to feed, until ctx ends.
func (fs *Feeds) tend(ctx context.Context) {
	wake, stop := fs.o.Members.Changed(store.Destinations)
	defer stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		select {
		case <-wake:
		case <-look.C:
		case <-fs.o.Members.Removed():
			return
		case <-ctx.Done():
			return
		}
		if err := fs.share(ctx); err != nil && ctx.Err() == nil {
			fs.o.Log.Error("destinations_not_shared", "error", err)
		}
	}
}

// share aligns what this host feeds with the definitions and the current members.
func (fs *Feeds) share(ctx context.Context) error {
	defs, err := fs.definitions(ctx)
	if err != nil {
		return err
	}
	all, err := fs.o.Members.Members(ctx)
	if err != nil {
		return fmt.Errorf("list hosts: %w", err)
	}
	for _, def := range defs {
		if err := fs.settle(ctx, all, def); err != nil && !errors.Is(err, store.ErrNotFound) { // it was removed meanwhile
			return err
		}
	}
	return nil
}

// settle does what share does for one destination.
func (fs *Feeds) settle(ctx context.Context, all []store.Member, def definition) error {
	self := fs.o.Members.Self().Epoch
	at := def.of(all)
	switch {
	case at != nil && at.Epoch == self:
		if next := slices.IndexFunc(all,
			func(m store.Member) bool { return m.Epoch == def.Next && m.Epoch != self }); next >= 0 {
			return fs.yield(ctx, def.Name, all[next])
		}
		return fs.take(ctx, def.Name)
	case !willing(all, self) || !fs.reaches(ctx, def):
		return nil
	case at == nil:
		return fs.take(ctx, def.Name)
	case at.Draining && def.Epoch != "" &&
		!slices.ContainsFunc(all, func(m store.Member) bool { return m.Epoch == def.Next }):
		return fs.rewrite(ctx, def.Name, func(now *definition) (bool, error) {
			ask := now.feeder == def.feeder
			now.Next = self
			return ask, nil
		})
	}
	return nil
}

// willing reports whether a host takes over destinations: it does not while it is draining, unless all hosts are.
func willing(all []store.Member, epoch string) bool {
	i := slices.IndexFunc(all, func(m store.Member) bool { return m.Epoch == epoch })
	return i >= 0 && (!all[i].Draining || !slices.ContainsFunc(all, func(m store.Member) bool { return !m.Draining }))
}

// reaches reports whether this host can feed a destination: the vault has the address and, if the destination was added
// on another host and is on a disk, the claimed files are visible here.
func (fs *Feeds) reaches(ctx context.Context, def definition) bool {
	url, err := fs.o.Secrets.Get(secretID(def))
	if err != nil {
		return false
	}
	defer clear(url)
	kind, err := fs.o.Kinds.Of(string(url))
	if err != nil {
		return false
	}
	o := def.owner(fs.o)
	local, ok := kind.(Local)
	if !ok || o.Host == fs.o.Host {
		return true
	}
	if _, err := kind.Check(string(url), fs.o.DataDir); err != nil {
		return false
	}
	here, err := local.Here(ctx, string(url), o)
	if err != nil {
		fs.o.Log.Warn("destination_not_looked_at", "destination", def.Name, "error", err)
	}
	return here
}

// take makes this host the feeder, unless another member is.
func (fs *Feeds) take(ctx context.Context, name string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.feeds[name] != nil {
		return nil
	}
	self := fs.o.Members.Self().Epoch
	var mine *definition
	err := fs.rewrite(ctx, name, func(def *definition) (changed bool, err error) {
		// Members are read after the definition, because the named feeder was a member when that was written.
		all, err := fs.o.Members.Members(ctx)
		if err != nil {
			return false, fmt.Errorf("list hosts: %w", err)
		}
		if at := def.of(all); at != nil && at.Epoch != self {
			return false, nil
		}
		mine, changed = def, def.Epoch != self || def.Next != ""
		def.pass(fs.o.Host, self)
		return changed, nil
	})
	if err != nil || mine == nil {
		return err
	}
	return fs.start(ctx, *mine)
}

// yield ends the feed of a destination and makes another host the feeder.
func (fs *Feeds) yield(ctx context.Context, name string, to store.Member) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.feeds[name]; f != nil {
		fs.stop(f)
	}
	return fs.rewrite(ctx, name, func(def *definition) (bool, error) {
		if def.Epoch != fs.o.Members.Self().Epoch || def.Next != to.Epoch {
			return false, nil
		}
		def.pass(to.ID, to.Epoch)
		return true, nil
	})
}

// stop ends a feed and waits for it. The caller holds mu.
func (fs *Feeds) stop(f *feed) {
	f.end()
	<-f.gone
	delete(fs.feeds, f.def.Name)
}

// rewrite changes a definition in one write, unless do returns false. If the definition changes meanwhile, it calls do
// again.
func (fs *Feeds) rewrite(ctx context.Context, name string, do func(*definition) (bool, error)) error {
	return rewrite(ctx, fs.o.Store, name, do)
}

func rewrite(ctx context.Context, s Store, name string, do func(*definition) (bool, error)) error {
	for {
		d, err := s.Document(ctx, store.Destinations, name)
		if err != nil {
			return fmt.Errorf("read destination %s: %w", name, err)
		}
		var def definition
		if err := json.Unmarshal(d.Data, &def); err != nil {
			return fmt.Errorf("read destination %s: %w", name, err)
		}
		changed, err := do(&def)
		if err != nil || !changed {
			return err
		}
		data, err := json.Marshal(def)
		if err != nil {
			return err
		}
		err = s.Write(ctx, store.Write{Kind: store.Destinations, ID: name, Data: data, If: &d.Revision})
		if !errors.As(err, new(*store.ConflictError)) {
			return err
		}
	}
}

// foreign returns feeds, for display only, of the destinations that this host does not feed.
func (fs *Feeds) foreign(ctx context.Context) (out []*feed, err error) {
	if fs.o.Members == nil {
		return nil, nil
	}
	defs, err := fs.definitions(ctx)
	if err != nil {
		return nil, err
	}
	all, err := fs.o.Members.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	for _, def := range defs {
		at := def.of(all)
		if at != nil && at.Epoch == fs.o.Members.Self().Epoch && fs.has(def.Name) {
			continue
		}
		f := &feed{o: fs.o, def: def, orphan: at == nil}
		if err := f.load(ctx); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func (fs *Feeds) has(name string) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.feeds[name] != nil
}

// elsewhere returns the refusal of what only the feeding host can do.
func (f *feed) elsewhere() error {
	if f.orphan {
		return host.Refuse("unavailable",
			"no host feeds destination %s; start host %s, which did last, or remove the destination", f.def.Name, f.def.Host)
	}
	return host.Refuse("conflict", "destination %s is fed by host %s; ask it there", f.def.Name,
		f.def.Host).With("hostId", f.def.Host)
}

// over returns why a feed that has ended does nothing: the destination was removed, or another host feeds it.
func (f *feed) over() error {
	if f.o.Members == nil {
		return fmt.Errorf("destination: %w", store.ErrNotFound)
	}
	return host.Refuse("unavailable",
		"destination %s was removed, or another host is about to feed it; ask again in a moment", f.def.Name)
}
