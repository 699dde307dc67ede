package chromium

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nobody is the uid under which candidates are asked for their version.
const nobody = 65534

func harmless(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
}

// confine makes a command an unprivileged process group that ends with this process. uid 0 leaves
// the user unchanged, which Start permits only to hosts that are not root.
func confine(cmd *exec.Cmd, uid, gid int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} // #nosec G115 -- Start checked the range
	}
}

// live starts the command and stays with it. If directories are hidden from it, it gets a view in
// which it can reach them.
func (g *group) live(cmd *exec.Cmd, hidden map[string][]string, started chan<- error) {
	if len(hidden) == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		g.stay(cmd, started)
		return
	}
	onOwnThread(func() {
		if err := view(hidden); err != nil {
			started <- err
			return
		}
		g.stay(cmd, started)
	})
}

// stay keeps one thread for as long as the process lives.
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

// kill ends the whole group at once, if its pid has not been released.
func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !gone(g.reaped) {
		_ = unix.Kill(-g.pid, unix.SIGKILL)
	}
}

// An osProcess is a running process as /proc shows it. A process controls its command line, but not
// its ids.
type osProcess struct {
	pid, parent, group int
	uid                int // real
	zombie             bool
	// line is the command line with arguments separated by blanks, since a process that renames
	// itself, as the browser's do, leaves no other separators.
	line string
}

// processes returns the visible processes of this machine.
func processes() []osProcess {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []osProcess
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := look(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// look reads one process. It reports false if there is none.
func look(pid int) (osProcess, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return osProcess{}, false
	}
	p := osProcess{pid: pid, uid: -1}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		switch name {
		case "State":
			p.zombie = fields[0] == "Z" || fields[0] == "X"
		case "PPid":
			p.parent = number(fields[0])
		case "Uid":
			p.uid = number(fields[0])
		}
	}
	p.group, _ = unix.Getpgid(pid)
	if line, err := os.ReadFile(dir + "/cmdline"); err == nil {
		p.line = " " + string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})) + " "
	}
	return p, true
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// says reports whether the command line has an argument, or the argument followed by a slash.
func (p osProcess) says(arg string) bool {
	for rest := p.line; ; {
		_, after, found := strings.Cut(rest, " "+arg)
		if !found {
			return false
		}
		if after[0] == ' ' || after[0] == '/' {
			return true
		}
		rest = after
	}
}

// below returns the descendants of a process, without itself.
func below(all []osProcess, ancestor int) []osProcess {
	under := map[int]bool{ancestor: true}
	var out []osProcess
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if under[p.parent] && !under[p.pid] {
				under[p.pid], grew = true, true
				out = append(out, p)
			}
		}
	}
	return out
}

const (
	sweepLimit = 2 * time.Second
	sweepPause = 5 * time.Millisecond
)

// Leftovers kills the browsers that an earlier host left behind: every process whose command line
// names a data directory below root. The caller holds the lock of the host's data directory and has
// started no browser, so no live host owns them. Their parents say nothing, since the first process
// of a container inherits every orphan. It returns how many ended and how many are left.
func Leftovers(root string) (ended, left int) {
	return sweep(func(p osProcess) bool { return p.usesDirectory(root) })
}

// endLeftProcesses kills what a browser left behind when its main process ended: processes of its
// own uid, if it had one, or with its directories on their command line. It returns how many are
// left.
func endLeftProcesses(profile, home string, uid int) (left int) {
	own := uid != 0 && uid != os.Geteuid()
	_, left = sweep(func(p osProcess) bool {
		return own && p.uid == uid || p.usesDirectory(profile) || p.usesDirectory(home)
	})
	return left
}

// sweep kills matching processes until two looks in a row find none, since a process may fork while
// it is killed.
func sweep(meant func(osProcess) bool) (ended, left int) {
	seen := map[int]bool{}
	deadline := time.Now().Add(sweepLimit)
	for quiet := 0; ; time.Sleep(sweepPause) {
		left = 0
		for _, p := range processes() {
			if p.pid == os.Getpid() || !seen[p.pid] && !meant(p) {
				continue
			}
			if p.zombie {
				reap(p)
				continue
			}
			left++ // includes killed processes that are not gone yet
			if !seen[p.pid] && end(p) {
				seen[p.pid] = true
			}
		}
		if left == 0 {
			quiet++
		} else {
			quiet = 0
		}
		if quiet == 2 || !time.Now().Before(deadline) {
			return len(seen), left
		}
	}
}

// usesDirectory reports whether a process keeps its data at or below a directory: a browser its
// profile, its crash handler its reports.
func (p osProcess) usesDirectory(dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return dir != "" && (p.says("--user-data-dir="+dir) || p.says("--database="+dir))
}

// end kills a process, but not another one that has taken over its pid.
func end(p osProcess) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	if now, ok := look(p.pid); !ok || now.uid != p.uid || now.line != p.line {
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// reap waits for an orphan that became a child of this process, as in the first process of a
// container.
func reap(p osProcess) {
	if p.parent == os.Getpid() {
		_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
	}
}

func ownedBy(info os.FileInfo, uid, gid int) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == uid && int(s.Gid) == gid
}

// sharedMemoryEnough is how large /dev/shm must be for a browser to use it.
const sharedMemoryEnough = 512 << 20

func smallSharedMemory() bool {
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err != nil {
		return true
	}
	return int64(fs.Blocks)*fs.Bsize < sharedMemoryEnough // #nosec G115 -- a size
}
