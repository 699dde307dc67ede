//go:build darwin || freebsd || netbsd || openbsd

package jail

import (
	"os"
	"syscall"
	"time"
)

const signalViolation = syscall.SIGSYS

// await waits for the end of the worker and reaps it.
func (p *Process) await() (*os.ProcessState, error) {
	state, err := p.handle.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	return state, err
}

// processCPU needs cgo here; the worker's own CPU limit is the backstop (S23).
func processCPU(int) (time.Duration, error) { return 0, ErrUnsupported }

func processPeak(int) (uint64, error) { return 0, ErrUnsupported }
