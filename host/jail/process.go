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
	// Socket is the host's end of the channel. It supports deadlines. The owner of the Process closes it.
	Socket *os.File

	config   Config
	launcher *Launcher
	group    *group // nil if unavailable
	handle   *os.Process
	stderr   *tail
	done     chan struct{} // closed when exit and err are final
	inherits uint64        // the host's peak memory at the start; see settlePeak

	mu     sync.Mutex // guards the fields below; reaped is set before the pid can be reused
	killed bool
	reaped bool
	peak   uint64 // largest sample of memory
	exit   Exit
	err    error
}

// Config returns the worker's identity and walls with the given limits, to be completed and sent by the caller. It also
// applies the limits to the worker's control group, if there is one.
func (p *Process) Config(l Limits) (Config, error) {
	// A process that has ended has no group. The caller notices when it uses the socket.
	if err := p.group.bound(l); err != nil && !p.ended() {
		return Config{}, fmt.Errorf("bound control group of a worker: %w", err)
	}
	c := p.config
	c.Limits = l
	return c, nil
}

// PID returns the worker's pid as seen by the host. After the worker was reaped it may belong to another process, so it
// is only for diagnostics and never for signals.
func (p *Process) PID() int { return p.handle.Pid }

// Done returns a channel that is closed when the worker was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the worker has ended and returns how. It may be called concurrently and repeatedly.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit, p.err
}

// Kill ends the worker immediately, through a pidfd if the system supports them. It does not wait. Killing a worker
// that has ended is not an error.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	p.killed = true
	_, _, _ = p.sampleMemory() // last chance to sample; otherwise earlier samples count
	return ignoreDone(p.handle.Kill(), "kill")
}

// Close kills the worker, waits for it and closes the socket.
func (p *Process) Close() error {
	if err := p.Kill(); err != nil {
		return err
	}
	<-p.done
	_ = p.Socket.Close() // the owner may have closed it
	return nil
}

func (p *Process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped
}

// Own makes the worker's uid the owner of dir, which is the new output directory of a compile worker. It does nothing
// if the worker has the host's uid.
func (p *Process) Own(dir *os.File) error {
	id := p.config.Identity
	if id.UID < 0 {
		return nil
	}
	return dir.Chown(id.UID, id.GID)
}

// reap waits for the end of the worker and of its diagnostics, and releases its resources.
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
	_ = p.group.remove() // otherwise the next host sweeps it
	close(p.done)
	p.launcher.delist(p)
}

// CPU returns the CPU time that the worker has used so far or, if it has ended, in total. It takes one system call, so
// it is suitable for sampling.
func (p *Process) CPU() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return p.exit.CPU(), p.err
	}
	return processCPU(p.handle.Pid)
}

// Memory returns the resident set in bytes, 0 for a worker that has ended, and the peak so far. The peak of a worker
// that ends by itself is only exact if it exceeds the host's own peak or was sampled shortly before, so the caller
// should sample it.
func (p *Process) Memory() (resident, peak uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return 0, p.exit.PeakMemory, p.err
	}
	return p.sampleMemory()
}

// sampleMemory must be called with p.mu held, before the worker is reaped.
func (p *Process) sampleMemory() (resident, peak uint64, err error) {
	resident, peak, err = processMemory(p.handle.Pid)
	p.peak = max(p.peak, peak)
	return resident, p.peak, err
}

// settlePeak corrects the system's figure. Between fork and exec a child shares its parent's memory, which the system
// counts as the child's peak. So a figure that does not exceed the host's is meaningless, and the samples count.
func (p *Process) settlePeak() {
	if p.exit.PeakMemory <= p.inherits {
		p.exit.PeakMemory = p.peak
	}
	p.exit.PeakMemory = max(p.exit.PeakMemory, p.peak)
}

// descriptorEnds holds both ends of a worker's descriptors before it is started.
type descriptorEnds struct {
	socket, stderr *os.File   // the host's
	workers        []*os.File // the worker's, by descriptor number
	owned          []*os.File // files in workers to be closed after the start
}

// openEnds opens the null device, the pipe and the socket pair. The worker initially has the null device in place of
// module and directory, so that nothing else gets these numbers before the real ones arrive.
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
		_ = f.Close() // the worker has copies
	}
}

func (e *descriptorEnds) closeHosts() {
	for _, f := range []*os.File{e.socket, e.stderr} {
		if f != nil {
			_ = f.Close() // nothing was sent
		}
	}
}

// ignoreDone returns nil if the signaled process had already ended.
func ignoreDone(err error, verb string) error {
	if err == nil || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return fmt.Errorf("%s worker: %w", verb, err)
}
