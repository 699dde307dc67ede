package jail

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// groups makes one control group per worker, which limits its threads and all of its memory, including what process
// limits do not count. They are available if the host may create groups below or beside its own: as root, and in a
// session or service to which systemd delegates; see cgroups(7).
type groups struct {
	parents []string // one for version 2; before, one for memory and one for processes
	unified bool     // version 2
}

// groupsMade counts the groups that this process has made.
var groupsMade atomic.Uint64

// group is the control group of one worker. Its methods do nothing on nil.
type group struct {
	dirs    []string
	unified bool
}

const (
	groupPrefix = "sluice-"
	// groupSlack covers memory that the kernel counts and process limits do not: page tables, kernel stacks, socket
	// buffers, the first pages of a program.
	groupSlack = 64 * mebibyte
	// groupTasks exceeds what makeThreads makes on any machine, since a worker has two processors.
	groupTasks = 64
)

// findGroups returns nil if groups are unavailable.
func findGroups() *groups {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for _, g := range groupsOf(string(own), string(mounts)) {
		if g.usable() {
			g.sweep()
			return g
		}
	}
	return nil
}

// groupsOf lists where control groups might be made, according to the kernel's description of this process and its
// mounts: version 2 first, and nearest first.
func groupsOf(own, mounts string) []*groups {
	paths := map[string]string{} // by controller, "" for version 2
	for line := range strings.Lines(own) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			for controller := range strings.SplitSeq(f[1], ",") {
				paths[controller] = f[2]
			}
		}
	}
	places := map[string]string{} // directory of this process by controller
	tops := map[string]string{}
	for line := range strings.Lines(mounts) {
		kind, root, point, options := mountOf(line)
		switch kind {
		case "cgroup2":
			options = ""
		case "cgroup":
		default:
			continue
		}
		for controller := range strings.SplitSeq(options, ",") {
			path, in := paths[controller]
			below, err := filepath.Rel(root, path)
			if in && !strings.HasPrefix(path, "/..") && err == nil && filepath.IsLocal(below) {
				places[controller], tops[controller] = filepath.Join(point, below), point
			}
		}
	}
	var found []*groups
	if dir, ok := places[""]; ok {
		for ; strings.HasPrefix(dir, tops[""]); dir = filepath.Dir(dir) {
			found = append(found, &groups{parents: []string{dir}, unified: true})
		}
	}
	if memory, pids := places["memory"], places["pids"]; memory != "" && pids != "" {
		found = append(found, &groups{parents: []string{memory, pids}})
	}
	return found
}

// mountOf parses one line of mountinfo; see proc_pid_mountinfo(5).
func mountOf(line string) (kind, root, point, options string) {
	before, after, ok := strings.Cut(line, " - ")
	b, a := strings.Fields(before), strings.Fields(after)
	if !ok || len(b) < 5 || len(a) < 3 {
		return "", "", "", ""
	}
	return a[0], b[3], b[4], a[2]
}

// usable tries to make, limit and remove a group. With version 2 the parent must delegate both controllers, which
// requires that it has no processes itself. A service that is alone in its group moves into a child group.
func (g *groups) usable() bool {
	if g.unified && !delegates(g.parents[0]) && !moveIntoChildGroup(g.parents[0]) {
		return false
	}
	probe, err := g.make()
	if err != nil {
		return false
	}
	return errors.Join(probe.bound(Limits{DataBytes: mebibyte}), probe.remove()) == nil
}

func delegates(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	given := strings.Fields(string(text))
	return err == nil && slices.Contains(given, "memory") && slices.Contains(given, "pids")
}

// moveIntoChildGroup moves this process into a group below dir, if it is the only process in dir, and makes dir
// delegate its controllers.
func moveIntoChildGroup(dir string) bool {
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(os.Getpid()) {
		return false
	}
	aside := filepath.Join(dir, "host")
	if err := os.Mkdir(aside, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // #nosec G301: the kernel's own, read by monitors
		return false
	}
	if put(aside, "cgroup.procs", os.Getpid()) != nil {
		return false
	}
	if put(dir, "cgroup.subtree_control", "+memory +pids") != nil {
		_ = put(dir, "cgroup.procs", os.Getpid()) // restore
		return false
	}
	return true
}

// make makes the group for one worker. It returns nil if g is nil.
func (g *groups) make() (*group, error) {
	if g == nil {
		return nil, nil
	}
	name := fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), groupsMade.Add(1))
	made := &group{unified: g.unified}
	for _, parent := range g.parents {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil { // #nosec G301: as above
			return nil, errors.Join(err, made.remove())
		}
		made.dirs = append(made.dirs, dir)
	}
	return made, nil
}

// sweep removes groups of hosts that no longer exist.
func (g *groups) sweep() {
	for _, parent := range g.parents {
		left, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*-*")) // the pattern is valid
		for _, dir := range left {
			host, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
			if pid, err := strconv.Atoi(host); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				_ = unix.Rmdir(dir) // fails if the group is in use
			}
		}
	}
}

// enter moves a process with all its threads into the group.
func (g *group) enter(pid int) error {
	if g == nil {
		return nil
	}
	for _, dir := range g.dirs {
		if err := put(dir, "cgroup.procs", pid); err != nil {
			return err
		}
	}
	return nil
}

// bound limits what the processes of the group may use together.
func (g *group) bound(l Limits) error {
	if g == nil {
		return nil
	}
	memory, processes := g.dirs[0], g.dirs[len(g.dirs)-1]
	most := l.DataBytes + l.FileBytes + groupSlack
	limit, swap := "memory.max", "memory.swap.max"
	swapMost := uint64(0)
	if !g.unified {
		limit, swap, swapMost = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", most // memory and swap together
	}
	if err := put(memory, limit, most); err != nil {
		return err
	}
	// The file is missing if the kernel does not count swap.
	if err := put(memory, swap, swapMost); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return put(processes, "pids.max", groupTasks)
}

// ranOut reports whether the kernel killed a process of the group for lack of memory.
func (g *group) ranOut() bool {
	if g == nil {
		return false
	}
	name := "memory.oom_control"
	if g.unified {
		name = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(g.dirs[0], name))
	_, after, found := bytes.Cut(text, []byte("oom_kill "))
	return err == nil && found && !bytes.HasPrefix(after, []byte("0"))
}

// remove removes the group. Its processes must have ended.
func (g *group) remove() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, dir := range g.dirs {
		err := unix.Rmdir(dir)
		// The group is busy until the kernel has released its last process.
		for wait := time.Millisecond; errors.Is(err, unix.EBUSY) && wait < time.Second; wait *= 2 {
			time.Sleep(wait)
			err = unix.Rmdir(dir)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// put writes a value to a control file of the kernel.
func put(dir, file string, value any) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(f, value)
	return errors.Join(err, f.Close())
}
