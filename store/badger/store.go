package badger

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	engine "github.com/dgraph-io/badger/v4"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

var _ store.Store = (*Store)(nil)

// A Store is the embedded store. Make one with Open, OpenMemory or OpenURL.
type Store struct {
	dir  string // "" in memory
	opts Options

	lock    *os.File
	unclean bool
	damage  *store.DamageError

	queue   *queue
	writes  chan *group // committer to writer, bulk first
	spilled chan *group // then the transaction
	written chan *group // and back
	// writerBroken: a group failed, and the writer refuses the ones behind it
	// until the committer has taken them back.
	writerBroken atomic.Bool
	failure      atomic.Pointer[error] // why the store stopped writing
	done         chan struct{}         // the committer and the writer have ended
	closing      chan struct{}
	closeOnce    sync.Once
	closeErr     error
	jobs         sync.WaitGroup // maintenance beside the committer
	erasing      chan struct{}  // capacity 1: held while a connection is erased
	whole        sync.RWMutex   // held for reading while something is half erased; an image is opened when nothing is

	chain   chain   // writer only
	witness witness // writer only
	bulk    *bulk.Dir
	space   space

	gate sync.RWMutex // held for reading while db is in use outside the committer
	db   *engine.DB

	view      sync.RWMutex          // guards published, readers and what is shown to readers
	published uint64                // newest commit that readers see
	readers   map[uint64]int        // open snapshots by commit
	streams   map[streamKey]*stream // those in memory

	watchers  watchers
	windows   windows
	questions cipher.AEAD
}

func newStore(dir string, opts Options) *Store {
	s := &Store{
		dir: dir, opts: opts,
		queue:   newQueue(opts.QueueBytes),
		writes:  make(chan *group, groupInflight),
		spilled: make(chan *group, groupInflight),
		written: make(chan *group, groupInflight),
		done:    make(chan struct{}),
		closing: make(chan struct{}),
		erasing: make(chan struct{}, 1),
		readers: make(map[uint64]int),
		streams: make(map[streamKey]*stream),

		questions: newQuestionKey(),
	}
	s.space.init(s)
	return s
}

func (s *Store) engineDir() string {
	if s.dir == "" {
		return ""
	}
	return filepath.Join(s.dir, "db")
}

func (s *Store) start(t bulk.Tail) {
	s.discardBefore(s.published)
	go s.spill()
	go s.write()
	c := newCommitter(s, s.published, t)
	go func() {
		c.run()
		for range s.written { // closed when the writer has ended
		}
		close(s.done)
	}()
	go s.space.watch()
	if s.damage == nil {
		s.jobs.Go(s.tidy)
	}
}

// Damage says what was found wrong at open, nil when nothing was. A damaged
// store is read-only.
func (s *Store) Damage() *store.DamageError { return s.damage }

// Unclean says that the process before this one did not close the store (S126).
func (s *Store) Unclean() bool { return s.unclean }

// PerStream says that runs should submit one commit per stream at their end
// (R92, R95).
func (s *Store) PerStream() bool { return s.opts.PerStream }

// stop makes the store refuse writes: the outcome of a step is unknown.
func (s *Store) stop(err error) {
	err = fmt.Errorf("store stopped writing: %w", err)
	s.failure.CompareAndSwap(nil, &err)
	s.opts.Logger.Error(err.Error())
}

func (s *Store) stopped() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *Store) writable() error {
	if s.damage != nil {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, s.damage)
	}
	return s.stopped()
}

// do runs op in the committer and waits until what it wrote is durable.
func (s *Store) do(ctx context.Context, barrier bool, op func(*group) error) error {
	return s.await(ctx, &item{op: op, barrier: barrier, bytes: 4096})
}

// doJob is do for an op that writes about so many bytes, on behalf of a job that
// holds a snapshot; store.ErrNoSpace when the engine is about to close.
func (s *Store) doJob(ctx context.Context, bytes int64, op func(*group) error) error {
	return s.await(ctx, &item{op: op, job: true, bytes: bytes})
}

func (s *Store) await(ctx context.Context, it *item) error {
	if err := s.writable(); err != nil {
		return err
	}
	receipt, settle := store.NewReceipt()
	it.settle = settle
	if err := s.queue.push(ctx, it); err != nil {
		return err
	}
	select {
	case <-receipt.Done():
		_, err := receipt.Result()
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// show makes a durable group visible and wakes those who wait for it.
func (s *Store) show(g *group) {
	s.view.Lock()
	for _, publish := range g.publish {
		publish()
	}
	s.published = g.seq
	s.view.Unlock()
	s.watchers.wake(g.wake)
}

// discardBefore lets the engine drop what no open snapshot can see.
func (s *Store) discardBefore(seq uint64) {
	s.view.RLock()
	for ts := range s.readers {
		seq = min(seq, ts)
	}
	s.view.RUnlock()
	s.db.SetDiscardTs(seq)
}

// Close waits for what was submitted, then closes the engine. It is idempotent;
// calls after it return store.ErrClosed.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	s.queue.close()
	close(s.closing)
	<-s.done
	s.jobs.Wait()
	s.gate.Lock()
	defer s.gate.Unlock()
	var errs []error
	if s.db != nil {
		s.releaseBallast() // it is for a store that is open
		errs = append(errs, s.db.Close())
		s.db = nil
	}
	errs = append(errs, s.bulk.Close())
	if s.witness.f != nil {
		errs = append(errs, s.witness.f.Close())
	}
	if s.dir != "" && s.stopped() == nil {
		errs = append(errs, os.Remove(filepath.Join(s.dir, "unclean")))
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// A snapshot is a reader that outlives no Close and no suspension.
type snapshot struct {
	reader
	s *Store
}

// pin keeps what the newest commit that readers see needs, until unpin.
func (s *Store) pin(also func()) (ts uint64) {
	s.view.Lock()
	defer s.view.Unlock()
	s.readers[s.published]++
	if also != nil {
		also()
	}
	return s.published
}

// repin pins a commit that is pinned already.
func (s *Store) repin(ts uint64) uint64 {
	s.view.Lock()
	defer s.view.Unlock()
	s.readers[ts]++
	return ts
}

func (s *Store) unpin(ts uint64) {
	s.view.Lock()
	defer s.view.Unlock()
	if s.readers[ts]--; s.readers[ts] == 0 {
		delete(s.readers, ts)
	}
}

// snapshot opens a view of the newest commit that readers see; also, when it is
// given, runs with that commit pinned and nothing newer shown yet.
func (s *Store) snapshot(ctx context.Context, also func()) (*snapshot, error) {
	return s.snapshotOf(ctx, func() uint64 { return s.pin(also) })
}

// snapshotOf opens a view of the commit that pin pins.
func (s *Store) snapshotOf(ctx context.Context, pin func() uint64) (*snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.gate.RLock()
	if s.db == nil {
		s.gate.RUnlock()
		return nil, s.absent()
	}
	return &snapshot{s.reader(pin()), s}, nil
}

// absent says why there is no engine.
func (s *Store) absent() error {
	select {
	case <-s.closing:
		return store.ErrClosed
	default:
		return store.ErrNoSpace
	}
}

func (r *snapshot) close() {
	r.txn.Discard()
	r.s.unpin(r.ts)
	r.s.gate.RUnlock()
}
