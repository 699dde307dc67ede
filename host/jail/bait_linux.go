package jail

import (
	"crypto/rand"
	"fmt"

	"golang.org/x/sys/unix"
)

// bait is a socket of the host that a canary tries to connect to.
type bait struct {
	fd   int
	name string
}

// openBait listens on a Unix socket without a path.
func openBait() (*bait, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open canary socket: %w", err)
	}
	b := &bait{fd: fd, name: "@sluice-canary-" + rand.Text()}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: b.name}); err != nil {
		closeFD(fd)
		return nil, fmt.Errorf("bind canary socket: %w", err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		closeFD(fd)
		return nil, fmt.Errorf("listen on canary socket: %w", err)
	}
	return b, nil
}

func (b *bait) close() { closeFD(b.fd) }
