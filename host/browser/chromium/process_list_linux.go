package chromium

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An osProcess is a running process, as /proc shows it. Its command line is its own
// to write, its numbers are not.
type osProcess struct {
	pid, parent, group int
	uid                int // real
	zombie             bool
	// line is the command line, its arguments parted by blanks: a process that
	// renames itself, as the browser's do, leaves no other mark between them.
	line string
}

// processes are those of this machine that can be seen now.
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

// look reads one process; false is none.
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

// says reports whether the command line has an argument, or one of a path that is
// below it.
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

// below are the processes that descend from one, itself not among them.
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
