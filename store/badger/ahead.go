package badger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Working out the orders of a million records takes half a second, which nobody
// should wait for. So a stream that got many records has it done once it rests:
// while records come, that would cost the run that brings them.
const (
	aheadOf    = 50_000 // records that came; fewer are taken in while somebody waits
	aheadAfter = time.Second
)

// lookAhead ends with the store.
func (s *Store) lookAhead() {
	if err := s.sweepOrders(); err != nil {
		s.opts.Logger.Warn("sweep orders", "err", err)
	}
	tick := time.NewTicker(s.opts.aheadAfter)
	defer tick.Stop()
	before, done := map[streamKey]uint64{}, map[streamKey]uint64{}
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		now := s.newest()
		for key, last := range now {
			if last != before[key] || last < done[key]+s.opts.aheadOf {
				continue
			}
			if s.workOut(key) != nil {
				break // at the next tick, if there is one
			}
			done[key] = last
		}
		before = now
	}
}

// newest is the newest version of every stream in memory, where those are that are
// written to.
func (s *Store) newest() map[streamKey]uint64 {
	s.view.RLock()
	defer s.view.RUnlock()
	now := make(map[streamKey]uint64, len(s.streams))
	for key, st := range s.streams {
		now[key] = st.shown
	}
	return now
}

// workOut brings the orders of a stream up to date.
func (s *Store) workOut(key streamKey) error {
	for _, by := range []store.Order{store.ByKey, store.ByEmitted} {
		if l, _ := s.space.state(); l != roomy {
			return store.ErrNoSpace
		}
		q := store.RecordQuery{Connection: key.connection, Stream: key.stream, Order: by, Limit: 1}
		if _, err := s.ordered(context.Background(), q); err != nil {
			if !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrNoSpace) {
				s.opts.Logger.Warn("work out order", "stream", key.stream, "by", by, "err", err)
			}
			return err
		}
	}
	return nil
}

// orderDir is "" in memory.
func (s *Store) orderDir() string {
	if s.dir == "" {
		return ""
	}
	return orderDir(s.dir)
}

// sweepOrders removes what was left by a process that was killed while it erased
// a stream.
func (s *Store) sweepOrders() error {
	if s.dir == "" {
		return nil
	}
	names, err := s.orderFiles() // before the streams: none of them is younger
	if err != nil {
		return err
	}
	r, err := s.snapshot(context.Background(), nil)
	if err != nil {
		return err
	}
	defer r.close()
	known := map[string]bool{}
	err = r.scan([]byte{kindCounters}, nil, false, func(_, payload []byte) (bool, error) {
		n, err := decodeCounters(payload)
		for _, by := range []store.Order{store.ByKey, store.ByEmitted} {
			known[orderID{n.number, by}.fileName()] = true
		}
		return true, err
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		if err := os.Remove(filepath.Join(s.orderDir(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove order: %w", err)
		}
	}
	return nil
}

func (s *Store) orderFiles() (names []string, err error) {
	files, err := os.ReadDir(s.orderDir())
	if err != nil {
		return nil, fmt.Errorf("list orders: %w", err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) == orderSuffix {
			names = append(names, f.Name())
		}
	}
	return names, nil
}

// dropOrders removes the files of all orders.
func (s *Store) dropOrders() error {
	names, err := s.orderFiles()
	for _, name := range names {
		err = errors.Join(err, os.Remove(filepath.Join(s.orderDir(), name)))
	}
	return err
}
