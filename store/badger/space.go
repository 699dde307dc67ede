package badger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

// spaceEvery is how often free space is measured, in addition to each commit.
const spaceEvery = time.Second / 4

// A spaceLevel says how much free space is left.
type spaceLevel int

const (
	roomy    spaceLevel = iota
	noStart             // below store.free_start: new runs are refused
	noIngest            // below store.free_ingest: records wait
	halted              // below store.free_stop: the engine is closed
)

// A space monitors the free bytes of the data directory. The disk must never become full, because a write to a mapped
// file would then kill the process.
type space struct {
	s *disk

	mu      sync.Mutex // guards the fields below
	level   spaceLevel
	free    uint64        // bytes, as of the latest measurement
	changed chan struct{} // closed and replaced whenever level changes
}

func (sp *space) init(s *disk) { sp.s, sp.changed = s, make(chan struct{}) }

// measure updates the level. A failed measurement changes nothing.
func (sp *space) measure() spaceLevel {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.s.dir == "" {
		return sp.level
	}
	free, err := sp.s.opts.FreeSpace(sp.s.dir)
	if err != nil {
		sp.s.opts.Logger.Warn("free space unknown", "err", err)
		return sp.level
	}
	sp.free = free
	o, now := sp.s.opts, roomy
	switch {
	case free < o.FreeStop:
		now = halted
	case free < o.FreeIngest:
		now = noIngest
	case free < o.FreeStart:
		now = noStart
	}
	if now != sp.level {
		sp.s.opts.Logger.Warn("free disk space", "bytes", free, "level", int(now))
		sp.level = now
		close(sp.changed)
		sp.changed = make(chan struct{})
	}
	return now
}

// spacious returns store.ErrNoSpace if there is too little space to open the engine, which would otherwise kill the
// process through a mapped file at every start.
func spacious(dir string, o Options) error {
	free, err := o.FreeSpace(dir)
	if err != nil {
		o.Logger.Warn("free space unknown", "err", err)
		return nil
	}
	if free < o.FreeStop {
		return fmt.Errorf("open store: %w: %d MiB are free for %s, %d MiB are needed; free some disk space and start again",
			store.ErrNoSpace, free>>20, dir, o.FreeStop>>20)
	}
	return nil
}

func (sp *space) state() (spaceLevel, <-chan struct{}) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.level, sp.changed
}

// Stalled returns an error that wraps store.ErrNoSpace while commits with records wait for free space, otherwise nil.
// Below store.free_stop all commits wait.
func (s *disk) Stalled() error {
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	if s.space.level < noIngest {
		return nil
	}
	return fmt.Errorf("%w: %d MiB are free for %s, %d MiB are needed", store.ErrNoSpace, s.space.free>>20, s.dir,
		s.opts.FreeIngest>>20)
}

// watch measures free space until the store closes.
func (sp *space) watch() {
	if sp.s.dir == "" {
		return
	}
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			sp.measure()
			sp.s.queue.signal() // the committer halts and resumes the engine
		case <-sp.s.closing:
			return
		}
	}
}

// awaitIngest waits until records are accepted.
func (sp *space) awaitIngest(ctx context.Context) error {
	for {
		l, changed := sp.state()
		if l < noIngest {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", store.ErrNoSpace, ctx.Err())
		case <-sp.s.closing:
			return store.ErrClosed
		}
	}
}

// awaitSpace reports whether there is space for a commit. If not, it returns the current group to the queue, closes the
// engine, waits until free space is above store.free_ingest or the store closes, and opens the engine again. Only the
// committer calls it.
func (c *committer) awaitSpace() bool {
	if c.s.space.measure() < halted {
		return true
	}
	for len(c.inflight) > 0 {
		c.finishGroup(<-c.s.writer.written)
	}
	c.requeueCurrent()
	c.s.queue.halt(true)
	defer c.s.queue.halt(false)
	if err := c.suspend(); err != nil {
		c.giveUp(err)
		return false
	}
	for {
		l, changed := c.s.space.state()
		if l < noIngest {
			break
		}
		select {
		case <-changed:
		case <-c.s.closing:
			c.giveUp(store.ErrNoSpace)
			return false
		}
	}
	if err := c.resume(); err != nil {
		c.giveUp(err)
	}
	return false
}

// requeueCurrent undoes the current group and returns its items to the queue.
func (c *committer) requeueCurrent() {
	if g := c.cur; g != nil {
		c.cur = nil
		g.undoEffects()
		c.s.queue.requeue(append(g.items, g.refusedItems()...))
	}
}

// suspend closes the engine once nothing reads from it, and reopens it read-only, in which mode it has no writable
// mappings. If that fails, readers get store.ErrNoSpace.
func (c *committer) suspend() error {
	s := c.s
	s.opts.Logger.Error("store halted: no free disk space", "dir", s.dir)
	c.base.txn.Discard()
	s.gate.Lock()
	defer s.gate.Unlock()
	s.space.releaseBallast() // closing the engine writes its memory to disk
	err := s.db.Close()
	s.db = nil
	if err != nil {
		return err
	}
	if s.db, err = openEngine(engineDir(s.dir), s.opts, true); err != nil {
		s.opts.Logger.Error("store cannot be read while it is halted", "dir", s.dir, "err", err)
		s.db = nil
	}
	return nil
}

func (c *committer) resume() error {
	s := c.s
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			return err
		}
		s.db = nil
	}
	db, err := openEngine(engineDir(s.dir), s.opts, false)
	if err != nil {
		return err
	}
	s.db = db
	c.base = s.reader(c.next - 1)
	s.opts.Logger.Info("store resumed", "dir", s.dir)
	return s.space.reserveBallast()
}

// giveUp stops writing for good: everything queued now or later fails.
func (c *committer) giveUp(err error) {
	c.s.stop(err)
	c.broken = c.s.stopped()
}

func (sp *space) ballast() string { return filepath.Join(sp.s.dir, "ballast") }

// reserveBallast creates the file that is released when space runs out.
func (sp *space) reserveBallast() error {
	o := sp.s.opts
	if o.Ballast == 0 {
		return nil
	}
	if info, err := os.Stat(sp.ballast()); err == nil && info.Size() == o.Ballast {
		return nil
	}
	if free, err := o.FreeSpace(sp.s.dir); err != nil || free < uint64(o.Ballast)+o.FreeStart {
		return nil // not enough space for it at the moment
	}
	f, err := os.OpenFile(sp.ballast(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("make ballast: %w", err)
	}
	defer f.Close()
	return allocate(f, o.Ballast)
}

func (sp *space) releaseBallast() {
	if sp.s.dir == "" {
		return
	}
	if err := os.Remove(sp.ballast()); err != nil && !os.IsNotExist(err) {
		sp.s.opts.Logger.Error("release ballast", "err", err)
	}
}
