package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Acquire implements store.Store.
func (s *leases) Acquire(ctx context.Context, r store.Run, hostID, bootEpoch string, ttl time.Duration,
	with ...store.Write) (store.Lease, error) {
	if l := s.space.measure(); l >= noStart {
		return store.Lease{}, fmt.Errorf("start run: %w", store.ErrNoSpace)
	}
	var lease store.Lease
	err := s.queue.do(ctx, false, func(g *group) error {
		var err error
		now := s.opts.Now().UTC().Truncate(time.Microsecond) // as it is in an image
		if lease, err = acquire(g, r, hostID, bootEpoch, now, ttl); err != nil {
			return err
		}
		return writeDocuments(g, now, with)
	})
	if err != nil {
		return store.Lease{}, err
	}
	return lease, nil
}

func acquire(g *group, r store.Run, hostID, bootEpoch string, now time.Time, ttl time.Duration) (store.Lease, error) {
	conn := string(r.ConnectionID)
	var held store.Lease
	if err := idle(g, r.ConnectionID); err != nil {
		return held, err
	}
	if _, erased, err := g.get(eraseNote(erasedConnection, conn)); err != nil || erased {
		return held, missing(err, "connection %s", conn)
	}
	if _, exists, err := getHead(g.get, r.ID); err != nil || exists {
		if err == nil {
			err = fmt.Errorf("run %s exists already", r.ID) // ids are never reused
		}
		return held, err
	}
	fence, err := nextNumber(g, key(kindFence, conn))
	if err != nil {
		return held, err
	}
	lease := store.Lease{
		ConnectionID: r.ConnectionID, RunID: r.ID, TraceID: r.TraceID, Fence: fence,
		HostID: hostID, BootEpoch: bootEpoch, TriggerKind: r.TriggerKind,
		StartedAt: r.StartedAt, ExpiresAt: now.Add(ttl),
	}
	if err := g.putJSON(key(kindRun, string(r.ID)), r); err != nil {
		return held, err
	}
	putHead(g, r.ID, store.RunHead{})
	g.put(key(kindRunOf, conn, string(r.ID)), newValue(0))
	return lease, g.putJSON(key(kindLease, conn), lease)
}

// idle returns *store.ActiveError while a run of the connection is active.
func idle(g *group, id store.ConnectionID) error {
	var held store.Lease
	active, err := g.getJSON(key(kindLease, string(id)), &held)
	if err == nil && active {
		err = &store.ActiveError{RunID: held.RunID}
	}
	return err
}

// nextNumber increments the number stored under k and returns it. The first is 1.
func nextNumber(g *group, k []byte) (uint64, error) {
	b, ok, err := g.get(k)
	if err != nil {
		return 0, err
	}
	n := uint64(1)
	if ok {
		if len(b) != 8 {
			return 0, store.Corrupt("number %.40q has %d bytes", k, len(b))
		}
		n = binary.LittleEndian.Uint64(b) + 1
	}
	g.put(k, binary.LittleEndian.AppendUint64(newValue(8), n))
	return n, nil
}

// currentLease returns the stored form of l, or store.ErrFenced if l is not current.
func currentLease(g *group, l store.Lease) (store.Lease, error) {
	var held store.Lease
	ok, err := g.getJSON(key(kindLease, string(l.ConnectionID)), &held)
	if err != nil {
		return held, err
	}
	if !ok || held.RunID != l.RunID || held.Fence != l.Fence {
		return held, store.ErrFenced
	}
	return held, nil
}

// Renew implements store.Store.
func (s *leases) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	var renewed store.Lease
	err := s.queue.do(ctx, false, func(g *group) error {
		held, err := currentLease(g, l)
		if err != nil {
			return err
		}
		held.ExpiresAt = s.opts.Now().UTC().Add(ttl)
		renewed = held
		return g.putJSON(key(kindLease, string(l.ConnectionID)), held)
	})
	if err != nil {
		return store.Lease{}, err
	}
	return renewed, nil
}

// TakeOver implements store.Store.
func (s *leases) TakeOver(ctx context.Context, l store.Lease, hostID, bootEpoch string,
	ttl time.Duration) (store.Lease, error) {
	var taken store.Lease
	err := s.queue.do(ctx, false, func(g *group) error {
		held, err := currentLease(g, l)
		if err != nil {
			return err
		}
		conn := string(l.ConnectionID)
		if held.Fence, err = nextNumber(g, key(kindFence, conn)); err != nil {
			return err
		}
		held.HostID, held.BootEpoch, held.ExpiresAt = hostID, bootEpoch, s.opts.Now().UTC().Add(ttl)
		taken = held
		return g.putJSON(key(kindLease, conn), held)
	})
	if err != nil {
		return store.Lease{}, err
	}
	return taken, nil
}

// Journal implements store.Store.
func (s *leases) Journal(ctx context.Context, id store.RunID, n uint64) ([]byte, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	b, ok, err := r.get(journalKey(id, n))
	if err != nil || !ok {
		return nil, missing(err, "piece %d of the journal of run %s", n, id)
	}
	return bytes.Clone(b), nil
}

// Leases implements store.Store.
func (s *leases) Leases(ctx context.Context) ([]store.Lease, error) {
	return listJSON[store.Lease](ctx, s.disk, key(kindLease, ""))
}
