package chromium

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Address of the gate inside a namespace.
const (
	insidePort = 3128
	insideURL  = "http://127.0.0.1:3128"
)

// elsewhere runs do on a thread that is discarded afterwards, since it does not return from the
// namespace that do enters.
func elsewhere(do func() error) error {
	done := make(chan error, 1)
	go onOwnThread(func() { done <- do() })
	return <-done
}

// canUnshare tries to make a network namespace.
func canUnshare() error {
	return elsewhere(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
}

// ownNetwork makes the command start in a network namespace of its own.
func ownNetwork(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
}

// listenInside enters the network namespace of a process, brings its loopback interface up and
// listens there. The socket stays in that namespace wherever it is accepted on, so nothing of the
// host runs inside.
func listenInside(pid int) (net.Listener, error) {
	space, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	defer space.Close()
	if same, err := isOurs(space); err != nil || same {
		return nil, errors.Join(ErrNamespace, err)
	}
	var socket *os.File
	err = elsewhere(func() error {
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("bring loopback up: %w", err)
		}
		socket, err = listeningSocket()
		return err
	})
	if err != nil {
		return nil, err
	}
	defer socket.Close() // the listener has a copy
	return net.FileListener(socket)
}

// isOurs reports whether a namespace is that of this process.
func isOurs(space *os.File) (bool, error) {
	var theirs, ours unix.Stat_t
	if err := unix.Fstat(int(space.Fd()), &theirs); err != nil {
		return false, err
	}
	if err := unix.Stat("/proc/thread-self/ns/net", &ours); err != nil {
		return false, err
	}
	return theirs.Dev == ours.Dev && theirs.Ino == ours.Ino, nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// listeningSocket makes the socket by hand, since package net probes the network's capabilities
// once per process and must not do so inside the namespace.
func listeningSocket() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "egress")
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: insidePort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), file.Close())
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return nil, errors.Join(os.NewSyscallError("listen", err), file.Close())
	}
	return file, nil
}
