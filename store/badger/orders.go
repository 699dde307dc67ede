package badger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/sluicehost/sluice/store"
)

// orders are the orders of some streams.
type orders struct {
	kept bool // in files with names, for the next process

	mu  sync.Mutex // guards the rest, and users, used, dropped and erased of all
	all map[orderID]*streamOrder
	use uint64
}

type orderID struct {
	number uint64
	by     store.Order
}

func (id orderID) fileName() string { return fmt.Sprintf("%016x-%s%s", id.number, id.by, orderSuffix) }

const orderSuffix = ".order"

// A streamOrder is one stream in one order. Whoever has it keeps its file, also
// when it was dropped meanwhile.
type streamOrder struct {
	users   int
	used    uint64 // when it was asked for last
	dropped bool
	erased  bool // with its stream

	busy    chan struct{} // capacity 1: held while the rest is in use
	loaded  bool          // the file was looked for
	past    bool          // some of it is of the process before
	through uint64        // newest version taken in
	rows    uint64        // taken in
	sorted  sorted
}

// hold returns an order and makes it the caller's until release.
func (o *orders) hold(ctx context.Context, s *Store, id orderID) (*streamOrder, error) {
	o.mu.Lock()
	if o.all == nil {
		o.all = make(map[orderID]*streamOrder)
	}
	so := o.all[id]
	if so == nil {
		name := ""
		if o.kept {
			name = id.fileName()
		}
		so = &streamOrder{busy: make(chan struct{}, 1), sorted: newSorted(s, name)}
		o.all[id] = so
	}
	o.use++
	so.used, so.users = o.use, so.users+1
	for len(o.all) > ordersMost {
		idle, ok := o.oldest()
		if !ok {
			break
		}
		o.drop(idle)
	}
	o.mu.Unlock()
	select {
	case so.busy <- struct{}{}:
		return so, nil
	case <-ctx.Done():
		o.leave(so)
		return nil, ctx.Err()
	}
}

func (o *orders) release(so *streamOrder) {
	<-so.busy
	o.leave(so)
}

func (o *orders) leave(so *streamOrder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if so.users--; so.users == 0 && so.dropped {
		so.end()
	}
}

// end closes the file of an order that nobody has any more.
func (so *streamOrder) end() {
	if so.erased {
		so.sorted.remove()
	}
	so.sorted.close()
}

// oldest is the order asked for longest ago of those that nobody has: a file with
// a name is written to by one at a time. Callers hold mu.
func (o *orders) oldest() (oldest orderID, ok bool) {
	for id, so := range o.all {
		if so.users == 0 && (!ok || so.used < o.all[oldest].used) {
			oldest, ok = id, true
		}
	}
	return oldest, ok
}

// drop forgets an order. Callers hold mu.
func (o *orders) drop(id orderID) {
	so := o.all[id]
	delete(o.all, id)
	if so.dropped = true; so.users == 0 {
		so.end()
	}
}

// forget drops the orders of a stream that is no more, and their files in dir.
func (o *orders) forget(dir string, number uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, so := range o.all {
		if id.number == number {
			so.erased = true
			o.drop(id)
		}
	}
	if dir == "" {
		return nil
	}
	for _, by := range []store.Order{store.ByKey, store.ByEmitted} {
		err := os.Remove(filepath.Join(dir, orderID{number, by}.fileName()))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove order: %w", err)
		}
	}
	return nil
}

func (o *orders) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.all {
		o.drop(id)
	}
}
