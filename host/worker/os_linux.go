package worker

import (
	"errors"
	"syscall"
	"time"
	"unsafe"
)

// writeBoth writes head and body with one system call if possible, so that the host wakes up once. It does not copy
// body.
func writeBoth(fd int, head, body []byte) error {
	for len(head) > 0 {
		n, err := writev(fd, head, body)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		h := min(n, len(head))
		head, body = head[h:], body[n-h:]
	}
	return writeAll(fd, body)
}

func writev(fd int, head, body []byte) (int, error) {
	if len(body) == 0 {
		return syscall.Write(fd, head)
	}
	vec := [2]syscall.Iovec{
		{Base: unsafe.SliceData(head), Len: uint64(len(head))},
		{Base: unsafe.SliceData(body), Len: uint64(len(body))},
	}
	n, _, errno := syscall.Syscall(syscall.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&vec)), uintptr(len(vec)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

const epollRDHUP = 0x2000

// awaitHangup returns when the other end of the socket is closed. It reads nothing and blocks a thread.
func awaitHangup(fd int) error {
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(ep) }()
	event := syscall.EpollEvent{Events: epollRDHUP, Fd: int32(fd)} // hang-up and error are always reported
	if err := syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		return err
	}
	for {
		var got syscall.EpollEvent
		n, _, errno := syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(&got)),
			1, ^uintptr(0), 0, 0)
		if errno != 0 && errno != syscall.EINTR {
			return errno
		}
		if errno == 0 && n > 0 {
			return nil
		}
	}
}

// descriptors is the directory of descriptors as paths.
const descriptors = "/proc/self/fd"

// processCPU returns the CPU time that this process has used, with a system call that the jail allows.
func processCPU() time.Duration {
	const clockProcessCPU = 2
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPU, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
