//go:build linux || darwin || freebsd || netbsd || openbsd

package jail

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Suspend stops the worker, for a paused run. It uses no CPU until [Process.Resume]. A suspended worker can be killed.
func (p *Process) Suspend() error { return p.signal(syscall.SIGSTOP, "suspend") }

// Resume continues a suspended worker.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT, "resume") }

func (p *Process) signal(s os.Signal, verb string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return ignoreDone(p.handle.Signal(s), verb)
}

const signalCPU = syscall.SIGXCPU

// exitOf converts the system's information about a reaped process.
func exitOf(state *os.ProcessState) Exit {
	e := Exit{Code: state.ExitCode(), User: state.UserTime(), System: state.SystemTime()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		e.PeakMemory = residentBytes(usage.Maxrss)
	}
	return e
}

// ownPeak returns the peak resident set of this process, in bytes.
func ownPeak() uint64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return residentBytes(usage.Maxrss)
}

// MaxDescriptors is the maximum number of descriptors in one message.
const MaxDescriptors = 4

// SendFDs writes data, at least one byte, to a worker's socket, with files attached to the first byte. The receiver
// gets copies of the descriptors; files stay open. The socket may be blocking or not, and its deadlines apply.
func SendFDs(socket *os.File, data []byte, files ...*os.File) error {
	if len(data) == 0 || len(files) > MaxDescriptors {
		return fmt.Errorf("send descriptors: %d bytes, %d files", len(data), len(files))
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var sent int
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		for {
			sent, sendErr = unix.SendmsgN(int(fd), data, rights, nil, noSignal)
			if sendErr != unix.EINTR {
				return sendErr != unix.EAGAIN
			}
		}
	})
	if err = errors.Join(err, sendErr); err != nil {
		return fmt.Errorf("send descriptors: %w", err)
	}
	if sent == len(data) { // the receiver may already be gone
		return nil
	}
	if _, err = socket.Write(data[sent:]); err != nil {
		return fmt.Errorf("send descriptors: %w", err)
	}
	return nil
}

// ReceiveFDs reads at most len(data) bytes from the socket, and the descriptors that came with them, which are set
// close-on-exec. More than [MaxDescriptors] is an error. At the end of the stream it returns [io.EOF]. The caller
// closes the files.
func ReceiveFDs(socket *os.File, data []byte) (int, []*os.File, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	space := make([]byte, unix.CmsgSpace(4*MaxDescriptors))
	var n, control, flags int
	var recvErr error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, control, flags, _, recvErr = unix.Recvmsg(int(fd), data, space, closeOnExec)
			if recvErr != unix.EINTR {
				return recvErr != unix.EAGAIN
			}
		}
	})
	if err = errors.Join(err, recvErr); err != nil {
		return 0, nil, fmt.Errorf("receive descriptors: %w", err)
	}
	files, err := descriptorsIn(space[:control])
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		err = fmt.Errorf("receive descriptors: more than %d", MaxDescriptors)
	}
	if err != nil {
		for _, f := range files {
			_ = f.Close() // refused unread
		}
		return 0, nil, err
	}
	if n == 0 && len(files) == 0 && len(data) > 0 {
		return 0, nil, io.EOF
	}
	return n, files, nil
}

func descriptorsIn(control []byte) ([]*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("receive descriptors: %w", err)
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, fmt.Errorf("receive descriptors: %w", err)
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// Place moves file to descriptor fd and closes what was there. A worker uses it for [ModuleFD] and [DirFD].
func Place(file *os.File, fd int) error {
	if int(file.Fd()) == fd {
		return fmt.Errorf("place descriptor %d: it is there already", fd)
	}
	if err := duplicateTo(int(file.Fd()), fd); err != nil {
		return fmt.Errorf("place descriptor %d: %w", fd, err)
	}
	return file.Close()
}

// residentBytes converts a resident set from getrusage to bytes: macOS reports bytes, the other systems kibibytes.
func residentBytes[T int32 | int64](maxrss T) uint64 {
	if runtime.GOOS == "darwin" {
		return uint64(maxrss)
	}
	return uint64(maxrss) * 1024
}
