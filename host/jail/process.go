package jail

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Process is the host's side of one worker. It is safe for concurrent use.
type Process struct {
	// Socket is the host's end of the channel. It supports deadlines; whoever has
	// the Process closes it.
	Socket *os.File

	config   Config
	launcher *Launcher
	group    *group // nil where there are none
	handle   *os.Process
	stderr   *tail
	done     chan struct{} // closed when exit and err are final
	inherits uint64        // the host's own peak at the start; see settlePeak

	mu     sync.Mutex // guards what follows; reaped is set before the pid can be another's
	killed bool
	reaped bool
	peak   uint64 // largest sample of memory
	exit   Exit
	err    error
}

// Config is the worker's identity and walls under the given limits, for the caller to
// complete and send. From its return on, the worker's control group, if it has one, is
// bounded by them as well.
func (p *Process) Config(l Limits) (Config, error) {
	// A process that has ended has no group any more; whoever talks to it finds out.
	if err := p.group.bound(l); err != nil && !p.ended() {
		return Config{}, fmt.Errorf("bound control group of a worker: %w", err)
	}
	c := p.config
	c.Limits = l
	return c, nil
}

// PID is the worker's pid as the host sees it. It names another process once the
// worker was reaped: for diagnostics only, never for a signal.
func (p *Process) PID() int { return p.handle.Pid }

// Done is closed when the worker was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the worker's end and returns how it ended. Any number of
// goroutines may call it, any number of times.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit, p.err
}

// Kill ends the worker at once, whatever it is doing; the signal goes
// through a pidfd where the system has them. It does not wait. Killing a worker
// that has ended is no error.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	p.killed = true
	_, _, _ = p.sampleMemory() // the last chance; without it earlier samples count
	return ignoreDone(p.handle.Kill(), "kill")
}

// Close kills the worker, waits for it and closes the socket.
func (p *Process) Close() error {
	if err := p.Kill(); err != nil {
		return err
	}
	<-p.done
	_ = p.Socket.Close() // may have been closed by the owner
	return nil
}

func (p *Process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped
}

// Own gives dir to the worker's uid, for the fresh output directory of a compile
// worker. It does nothing if the worker has the host's uid.
func (p *Process) Own(dir *os.File) error {
	id := p.config.Identity
	if id.UID < 0 {
		return nil
	}
	return dir.Chown(id.UID, id.GID)
}

// reap waits for the end of the worker and of its diagnostics, and lets go of it.
func (p *Process) reap() {
	state, err := p.await()
	<-p.stderr.done
	p.mu.Lock()
	p.err = err
	if err == nil {
		p.exit = exitOf(state)
		p.settlePeak()
	}
	p.exit.Killed, p.exit.OutOfMemory = p.killed, p.group.ranOut()
	p.exit.Stderr, p.exit.head = p.stderr.bytes(), p.stderr.start()
	p.mu.Unlock()
	_ = p.group.remove() // what is left is swept by the next host
	close(p.done)
	p.launcher.delist(p)
}

// CPU is the CPU time the worker has used so far, or in all. It is one
// system call, made to be sampled.
func (p *Process) CPU() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return p.exit.CPU(), p.err
	}
	return processCPU(p.handle.Pid)
}

// Memory is the resident set, 0 for a worker that is gone, and the largest so far, or in
// all, in bytes. What a worker that ends by itself used is exact only if it was more than
// the host ever had, or was sampled shortly before; so sample it.
func (p *Process) Memory() (resident, peak uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return 0, p.exit.PeakMemory, p.err
	}
	return p.sampleMemory()
}

// sampleMemory is called with the lock held, before the worker was reaped.
func (p *Process) sampleMemory() (resident, peak uint64, err error) {
	resident, peak, err = processMemory(p.handle.Pid)
	p.peak = max(p.peak, peak)
	return resident, p.peak, err
}

// settlePeak corrects the system's figure. Between fork and exec a child has its
// parent's memory, and the system counts that as the child's own peak: a figure
// that does not exceed the host's says nothing, and the samples count.
func (p *Process) settlePeak() {
	if p.exit.PeakMemory <= p.inherits {
		p.exit.PeakMemory = p.peak
	}
	p.exit.PeakMemory = max(p.exit.PeakMemory, p.peak)
}

// descriptorEnds are the two sides of a worker's descriptors before it is started.
type descriptorEnds struct {
	socket, stderr *os.File   // the host's
	workers        []*os.File // the worker's, by number
	owned          []*os.File // those of workers to close after the start
}

// openEnds opens the null device, the pipe and the socket pair. Where the module and the
// directory will be the worker has the null device, so that nothing else takes the
// numbers before the real ones arrive.
func openEnds() (_ *descriptorEnds, err error) {
	e := &descriptorEnds{}
	defer func() {
		if err != nil {
			e.closeHosts()
			e.closeWorkers()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	e.owned = append(e.owned, null)
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	e.stderr, e.owned = read, append(e.owned, write)
	host, worker, err := socketPair()
	if err != nil {
		return nil, err
	}
	e.socket, e.owned = host, append(e.owned, worker)
	e.workers = []*os.File{null, null, write, worker, null, null}
	return e, nil
}

func (e *descriptorEnds) closeWorkers() {
	for _, f := range e.owned {
		_ = f.Close() // the worker has its own
	}
}

func (e *descriptorEnds) closeHosts() {
	for _, f := range []*os.File{e.socket, e.stderr} {
		if f != nil {
			_ = f.Close() // nothing was sent
		}
	}
}

// ignoreDone makes a signal to a process that has ended a success.
func ignoreDone(err error, verb string) error {
	if err == nil || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return fmt.Errorf("%s worker: %w", verb, err)
}
