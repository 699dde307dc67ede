//go:build linux

package jail_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/jail"
)

// grouped returns a launcher whose workers have groups, and one of them.
func grouped(t *testing.T, o jail.Options) *worker {
	t.Helper()
	l := launcher(t, o)
	w := start(t, l)
	if !l.Grouped() {
		t.Skip("SKIPPED: this host may make no control groups")
	}
	return w
}

// Memory that the limits of a process leave out counts against the worker's group, and
// the kernel's word makes it the memory limit.
func TestGroupBoundsMemory(t *testing.T) {
	w := grouped(t, jail.Options{Walls: jail.Walls{NoSeccomp: true}})
	limits := jail.RunLimits(16<<20, 0, time.Minute)
	w.send(t, order{Config: jail.Config{Limits: limits}, Do: "hide memory"}, nil)
	exit, err := w.Wait()
	if err != nil || !exit.OutOfMemory || exit.Cause(limits) != jail.CauseMemory {
		t.Errorf("%+v, %v: %s", exit, err, exit.Cause(limits))
	}
	if most := limits.DataBytes + 128<<20; exit.PeakMemory > most {
		t.Errorf("it held %d bytes, %d over its limit", exit.PeakMemory, exit.PeakMemory-limits.DataBytes)
	}
}

// A group goes with its worker, and one that a dead host left goes with the next host.
func TestGroupGoes(t *testing.T) {
	w := grouped(t, jail.Options{})
	own := groupDirs(t, w.PID())
	if len(own) == 0 {
		t.Fatal("the worker is in no group of its own")
	}
	const nobody = 1 << 30 // no pid
	left := filepath.Join(filepath.Dir(own[0]), fmt.Sprintf("sluice-%d-1", nobody))
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_ = grouped(t, jail.Options{})
	for _, dir := range append(own, left) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// groupDirs finds the groups that a process is in and that are of this host's making.
func groupDirs(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		name := filepath.Base(strings.TrimSpace(line))
		if !strings.HasPrefix(name, "sluice-") {
			continue
		}
		_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == name {
				found = append(found, path)
			}
			return nil
		})
		return found
	}
	return nil
}
