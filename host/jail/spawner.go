package jail

import (
	"context"
	"runtime"
	"sync"
)

// A spawner runs functions on one OS thread, which exists until close. The kernel sends the parent-death signal when
// the thread that started a process ends, not when the whole parent does, so all workers are started from this thread.
type spawner struct {
	work chan func()
	quit chan struct{}
	wait sync.WaitGroup
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), quit: make(chan struct{})}
	s.wait.Go(s.run)
	return s
}

func (s *spawner) run() {
	runtime.LockOSThread() // never unlocked, because the thread has a lowered priority and bounded children
	yieldPriority()
	boundChildren()
	for {
		select {
		case job := <-s.work:
			job()
		case <-s.quit:
			return
		}
	}
}

// do runs job on the thread and waits for it. If ctx ends before the thread is free, it does not run job.
func (s *spawner) do(ctx context.Context, job func()) error {
	done := make(chan struct{})
	select {
	case s.work <- func() { defer close(done); job() }:
		<-done
		return nil
	case <-s.quit:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *spawner) close() {
	close(s.quit)
	s.wait.Wait()
}
