package badger

import (
	"context"
	"encoding/binary"
	"encoding/json"

	"github.com/sluicehost/sluice/store"
)

// Number of entries that a limit of 0 means, and the greatest limit.
const (
	defaultLimit = 100
	maxLimit     = 5000
)

func bounded(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return min(limit, maxLimit)
}

// Run implements store.Store.
func (s *timelines) Run(ctx context.Context, id store.RunID) (store.Run, error) {
	return oneJSON[store.Run](ctx, s.disk, key(kindRun, string(id)), "run %s", id)
}

// Runs implements store.Store. A limit of 0 means 100; the maximum is 5000.
func (s *timelines) Runs(ctx context.Context, connection store.ConnectionID, before store.RunID,
	limit int) ([]store.Run, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	prefix := []byte{kindRun}
	if connection != "" {
		prefix = key(kindRunOf, string(connection), "")
	}
	var seek []byte
	if before != "" {
		seek = append(append(seek, prefix...), before...)
	}
	var runs []store.Run
	err = r.scan(prefix, seek, true, func(k, payload []byte) (bool, error) {
		id := string(k[len(prefix):])
		if before != "" && id >= string(before) {
			return true, nil
		}
		if connection != "" {
			var ok bool
			if payload, ok, err = r.get(key(kindRun, id)); err != nil || !ok {
				return false, missing(err, "run %s", id)
			}
		}
		var run store.Run
		if err := json.Unmarshal(payload, &run); err != nil {
			return false, store.Corrupt("run %s: %v", id, err)
		}
		runs = append(runs, run)
		return len(runs) < bounded(limit), ctx.Err()
	})
	return runs, err
}

// Events implements store.Store. A limit of 0 means 100; the maximum is 5000.
func (s *timelines) Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.events(ctx, id, from, bounded(limit))
}

// EventsBefore implements store.Store. A limit of 0 means 100; the maximum is 5000.
func (s *timelines) EventsBefore(ctx context.Context, id store.RunID, before uint64, limit int) ([]store.Event, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	head, ok, err := getHead(r.get, id)
	if err != nil || !ok {
		return nil, err
	}
	if before == 0 || before > head.Next {
		before = head.Next
	}
	n := min(before, uint64(bounded(limit)))
	if n == 0 {
		return nil, nil
	}
	return r.events(ctx, id, before-n, int(n))
}

// RunHead implements store.Store.
func (s *timelines) RunHead(ctx context.Context, id store.RunID) (store.RunHead, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return store.RunHead{}, err
	}
	defer r.close()
	head, ok, err := getHead(r.get, id)
	if err != nil || !ok {
		return store.RunHead{}, missing(err, "run %s", id)
	}
	return head, nil
}

// events reads up to limit events from a sequence number on. It returns none for a run whose timeline is being deleted.
func (r reader) events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error) {
	if _, erased, err := r.get(eraseNote(erasedRun, string(id))); err != nil || erased {
		return nil, err
	}
	prefix := key(kindEvent, string(id), "")
	var events []store.Event
	err := r.scan(prefix, eventKey(id, from), false, func(k, payload []byte) (bool, error) {
		var e store.Event
		if err := json.Unmarshal(payload, &e); err != nil {
			return false, store.Corrupt("event of run %s: %v", id, err)
		}
		want := from + uint64(len(events))
		if got := binary.BigEndian.Uint64(k[len(prefix):]); got != want || e.Sequence != want {
			return false, store.Corrupt("run %s has event %d where %d belongs", id, got, want)
		}
		events = append(events, e)
		return len(events) < limit, ctx.Err()
	})
	return events, err
}

// Watch implements store.Store.
func (s *disk) Watch(id store.RunID) (<-chan struct{}, func()) { return s.watchers.Watch(id) }
