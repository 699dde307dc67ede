//go:build unix

package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A population counts what a run could leave behind in the host.
type population struct {
	workers     int // child processes, zombies included
	descriptors int
	goroutines  int
}

func (p population) String() string {
	return fmt.Sprintf("%d workers, %d descriptors, %d goroutines", p.workers, p.descriptors, p.goroutines)
}

// exceeds reports whether p has more of anything than q.
func (p population) exceeds(q population) bool {
	return p.workers > q.workers || p.descriptors > q.descriptors || p.goroutines > q.goroutines
}

// census counts everything except descriptors of files in dir, the store's. The result
// is meaningful only while nothing runs.
func census(t *testing.T, dir string) population {
	t.Helper()
	p := population{workers: len(children(t)), goroutines: runtime.NumGoroutine()}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if path, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && !strings.HasPrefix(path, dir) {
			p.descriptors++
		}
	}
	return p
}

// rested waits until the workers that a host starts in advance are there and
// nothing has changed for a second, and counts: a process is a child before
// the goroutines that serve it have begun.
func (c *siege) rested(t *testing.T) population {
	t.Helper()
	look := time.NewTicker(2 * sampleEvery)
	defer look.Stop()
	var last population
	var since time.Time
	for deadline := time.Now().Add(3 * time.Minute); ; <-look.C {
		now := census(t, c.host.DataDir)
		if now != last {
			last, since = now, time.Now()
		}
		if now.workers == waiting && time.Since(since) >= time.Second {
			return now
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v; want %d workers that wait", now, waiting)
		}
	}
}

// settled waits until nothing exceeds what want allows: the last closing of a
// descriptor and the end of a goroutine may come a moment after the end of a run.
func (c *siege) settled(t *testing.T, want population) population {
	t.Helper()
	look := time.NewTicker(2 * sampleEvery)
	defer look.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-look.C {
		now := census(t, c.host.DataDir)
		if !now.exceeds(want) || time.Now().After(deadline) {
			return now
		}
	}
}

// children returns the pids of this process's children, of all its threads. A
// zombie is one too.
func children(t *testing.T) []string {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Skipf("SKIPPED: no list of children in /proc: %v", err)
	}
	var found []string
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread ended meanwhile; its children are another's now
		}
		found = append(found, strings.Fields(string(b))...)
	}
	return found
}
