package chromium

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is whom a candidate is asked for its version as.
const nobody = 65534

func harmless(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
}

// confine makes a command an unprivileged process group that ends with this
// process. uid 0 stays who it is, which Start allows to hosts only that are not root.
func confine(cmd *exec.Cmd, uid, gid int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} // #nosec G115 -- Start checked the range
	}
}

// live starts the command, in a view where something is hidden from it, and stays
// with it.
func (g *group) live(cmd *exec.Cmd, hidden map[string][]string, started chan<- error) {
	if len(hidden) == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		g.stay(cmd, started)
		return
	}
	aside(func() {
		if err := view(hidden); err != nil {
			started <- err
			return
		}
		g.stay(cmd, started)
	})
}

// stay is on one thread as long as the process lives.
func (g *group) stay(cmd *exec.Cmd, started chan<- error) {
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	g.pid = cmd.Process.Pid
	started <- nil
	for errors.Is(unix.Waitid(unix.P_PID, g.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	close(g.exited)
	g.kill()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state, _ = cmd.Process.Wait()
	close(g.reaped)
}

// kill ends the whole group at once, if its number is still its own.
func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !gone(g.reaped) {
		_ = unix.Kill(-g.pid, unix.SIGKILL)
	}
}
