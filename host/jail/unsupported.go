//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd

package jail

import (
	"os"
	"syscall"
	"time"
)

// These systems have no channel yet for passing descriptors to a worker. So no worker starts, because what cannot be
// confined at all is refused. The rest of the host works.

// MaxDescriptors is the maximum number of descriptors in one message.
const MaxDescriptors = 4

// Inside would be a worker in its jail, which does not exist on this system.
type Inside struct {
	// Dir is the path at which the worker finds its directory.
	Dir string
}

// Isolation returns the isolation of a worker without any layer.
func (*Inside) Isolation() Isolation { return none() }

// Seal fails with [ErrUnsupported].
func (*Inside) Seal() (Isolation, error) { return none(), ErrUnsupported }

// Prepare does nothing on this system.
func Prepare() {}

// Enter fails with [ErrUnsupported].
func Enter(Config, int) (*Inside, error) { return nil, ErrUnsupported }

// Conceal does nothing on this system.
func Conceal() error { return nil }

// SendFDs fails with [ErrUnsupported].
func SendFDs(*os.File, []byte, ...*os.File) error { return ErrUnsupported }

// ReceiveFDs fails with [ErrUnsupported].
func ReceiveFDs(*os.File, []byte) (int, []*os.File, error) { return 0, nil, ErrUnsupported }

// Place fails with [ErrUnsupported].
func Place(*os.File, int) error { return ErrUnsupported }

// Suspend fails with [ErrUnsupported].
func (*Process) Suspend() error { return ErrUnsupported }

// Resume fails with [ErrUnsupported].
func (*Process) Resume() error { return ErrUnsupported }

type namespaceSet struct{}

func (namespaceSet) names() []string { return []string{} }

func ownUIDs(first, last, gid int) bool { return false }

func (l *Launcher) negotiate() (namespaceSet, error) { return namespaceSet{}, ErrUnsupported }

type executable struct{}

func openExecutable(string) (*executable, error) { return nil, ErrUnsupported }

func (*executable) close() error { return nil }

func (*executable) start([]string, []string, []*os.File, namespaceSet) (*os.Process, error) {
	return nil, ErrUnsupported
}

func socketPair() (host, worker *os.File, err error) { return nil, nil, ErrUnsupported }

const (
	signalViolation = syscall.Signal(0)
	signalCPU       = syscall.Signal(0)
)

func (p *Process) await() (*os.ProcessState, error) { return p.handle.Wait() }

func exitOf(state *os.ProcessState) Exit { return Exit{Code: state.ExitCode()} }

func ownPeak() uint64 { return 0 }

func processCPU(int) (time.Duration, error) { return 0, ErrUnsupported }

func processMemory(int) (resident, peak uint64, err error) { return 0, 0, ErrUnsupported }

// yieldPriority does nothing on this system.
func yieldPriority() {}
