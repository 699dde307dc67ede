package chromium

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sweepLimit = 2 * time.Second
	sweepPause = 5 * time.Millisecond
)

// Leftovers ends the browsers that an earlier host left behind: every process whose
// command line names a directory of its data below root and that does not descend from this
// process (B178). The caller holds the host's data directory, so that no other live
// host owns them. It reports how many it ended, and how many withstood.
func Leftovers(root string) (ended, left int) {
	return sweep(func(p osProcess, all []osProcess) bool {
		return p.keeps(root) && !descends(all, p, os.Getpid())
	})
}

// strays ends what a browser left when its main process was gone: processes of its
// uid, if it had one of its own, or with its directories on their command line.
func strays(profile, home string, uid int) (left int) {
	own := uid != 0 && uid != os.Geteuid()
	_, left = sweep(func(p osProcess, _ []osProcess) bool {
		return own && p.uid == uid || p.keeps(profile) || p.keeps(home)
	})
	return left
}

// sweep kills what is meant until nothing is, in three looks of which the last two
// may not find anything: a process may fork as it is killed.
func sweep(meant func(osProcess, []osProcess) bool) (ended, left int) {
	seen := map[int]bool{}
	deadline := time.Now().Add(sweepLimit)
	for quiet := 0; ; time.Sleep(sweepPause) {
		left = 0
		all := processes()
		for _, p := range all {
			if p.pid == os.Getpid() || !seen[p.pid] && !meant(p, all) {
				continue
			}
			if p.zombie {
				reap(p)
				continue
			}
			left++ // also what was killed and is not gone yet
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

// keeps reports whether a process keeps its data at or below a directory: a browser
// its profile, its crash handler what it has to tell.
func (p osProcess) keeps(dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return dir != "" && (p.says("--user-data-dir="+dir) || p.says("--database="+dir))
}

func descends(all []osProcess, p osProcess, ancestor int) bool {
	parents := make(map[int]int, len(all))
	for _, q := range all {
		parents[q.pid] = q.parent
	}
	for pid, steps := p.parent, 0; pid > 1 && steps < len(all); steps++ {
		if pid == ancestor {
			return true
		}
		pid = parents[pid]
	}
	return p.parent == ancestor
}

// end kills a process, and not another one that has got its number since.
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

// reap waits for an orphan that fell to this process, as happens to the first
// process of a container.
func reap(p osProcess) {
	if p.parent == os.Getpid() {
		_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
	}
}
