package badger

import (
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

// A Store is the embedded store, made by Open, OpenMemory or OpenURL. Each view of store.Store is implemented by one of
// the embedded types.
type Store struct {
	*disk
	connectors
	connections
	documents
	leases
	timelines
	states
	records
	files
}

type (
	connectors  struct{ *disk }
	connections struct{ *disk }
	documents   struct{ *disk }
	leases      struct{ *disk }
	timelines   struct{ *disk }
	states      struct{ *disk }
	records     struct{ *disk }
	files       struct{ *disk }
)

// A disk is an open data directory: the engine, the bulk files and those that write to them. A store in memory has no
// directory.
type disk struct {
	dir  string // "" in memory
	opts Options

	lock    *os.File
	unclean bool
	damage  *store.DamageError

	queue     *queue
	writer    *writer
	failure   atomic.Pointer[error] // why the store stopped writing
	done      chan struct{}         // closed when the committer and the writer have ended
	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
	jobs      sync.WaitGroup // background maintenance
	eraser    *eraser

	bulk         *bulk.Dir
	contentFiles *contentFiles
	space        space

	gate sync.RWMutex // read-locked while db is used outside the committer
	db   *engine.DB

	visible visible

	watchers  store.Watchers
	walking   chan struct{} // capacity 1: held while a window is being filled
	loading   chan struct{} // capacity 1: held while an idle stream is being loaded
	windows   windows
	questions store.Sealer
}

func newStore(dir string, opts Options) *Store {
	d := newDisk(dir, opts)
	return &Store{
		disk: d, connectors: connectors{d}, connections: connections{d}, documents: documents{d}, leases: leases{d},
		timelines: timelines{d}, states: states{d}, records: records{d}, files: files{d},
	}
}

func newDisk(dir string, opts Options) *disk {
	s := &disk{
		dir: dir, opts: opts,
		done:    make(chan struct{}),
		closing: make(chan struct{}),
		walking: make(chan struct{}, 1),
		loading: make(chan struct{}, 1),
		windows: windows{most: maxWindows},
		visible: visible{pinned: make(map[uint64]int), streams: make(map[streamKey]*stream),
			idle: idleStreams{most: opts.memory / 12, all: make(map[streamKey]*stream)}},

		questions: store.NewSealer(),
	}
	s.queue = newQueue(opts.QueueBytes, s.writable)
	s.writer = newWriter(s)
	s.contentFiles = newContentFiles(dir)
	s.space.init(s)
	s.eraser = &eraser{s: s, connectionLock: make(chan struct{}, 1)}
	return s
}

func (s *disk) start(t bulk.Tail) {
	s.discardBefore(s.visible.commit)
	go s.writer.spill()
	go s.writer.write()
	c := newCommitter(s, s.visible.commit, t)
	go func() {
		c.run()
		for range s.writer.written { // closed when the writer has ended
		}
		close(s.done)
	}()
	go s.space.watch()
	if s.damage == nil {
		s.jobs.Go(s.eraser.resume)
	}
}

// Damage returns the damage found by Open, or nil. A damaged store is read-only.
func (s *disk) Damage() *store.DamageError { return s.damage }

// PerStream reports whether runs should submit one commit per stream at their end.
func (s *disk) PerStream() bool { return s.opts.PerStream }

// stop makes the store refuse all writes from now on, because it is unknown whether a step took effect.
func (s *disk) stop(err error) {
	err = fmt.Errorf("%w: %w", store.ErrStopped, err)
	s.failure.CompareAndSwap(nil, &err)
	s.opts.Logger.Error(err.Error())
}

func (s *disk) stopped() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *disk) writable() error {
	if s.damage != nil {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, s.damage)
	}
	return s.stopped()
}

// Close waits for what was submitted, then closes the engine. It is idempotent. Later calls to the store return
// store.ErrClosed.
func (s *disk) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *disk) close() error {
	s.queue.close()
	close(s.closing)
	<-s.done
	s.jobs.Wait()
	s.gate.Lock()
	defer s.gate.Unlock()
	var errs []error
	if s.db != nil {
		s.space.releaseBallast() // only an open store needs it
		errs = append(errs, s.db.Close())
		s.db = nil
	}
	errs = append(errs, s.bulk.Close())
	if s.writer.witness.f != nil {
		errs = append(errs, s.writer.witness.f.Close())
	}
	if s.dir != "" && s.stopped() == nil {
		errs = append(errs, os.Remove(filepath.Join(s.dir, "unclean")))
	}
	if s.lock != nil {
		errs = append(errs, releaseLock(s.lock))
	}
	return errors.Join(errs...)
}
