//go:build unix

package server

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// ordinary chooses the user for the server, because postgres refuses to run as root. The server has its own process
// group, so that an interrupt at the terminal only reaches this process.
func (s *Server) ordinary() error {
	s.as = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return err
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	s.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return err
}

// own gives a file to the server's user.
func (s *Server) own(path string) error {
	if c := s.as.Credential; c != nil {
		return os.Chown(path, int(c.Uid), int(c.Gid))
	}
	return nil
}
