package filesystem

import (
	"io/fs"

	"github.com/sluicehost/sluice/abi"
)

// A ledger holds what a run added to one writable directory, per file, and
// refuses what goes over the quota. It counts growth: what was there
// before the run is neither charged nor, when it goes away, credited.
//
// Invariant: used is the sum of the charges.
type ledger struct {
	quota   Quota
	used    int64
	charges map[identity]*charge
	dirs    map[identity]struct{}
}

// A charge is one file that the run made or let grow. A file that lost its
// name while it is open still takes space: gone says so, and the last close
// ends it.
type charge struct {
	bytes int64
	gone  bool
}

func newLedger(q Quota) *ledger {
	return &ledger{quota: q, charges: map[identity]*charge{}, dirs: map[identity]struct{}{}}
}

// depth refuses an entry that would lie too deep.
func (l *ledger) depth(components int) error {
	if components > l.quota.Depth {
		return refuse(abi.ENOSPC)
	}
	return nil
}

// roomForFile refuses one file more.
func (l *ledger) roomForFile() error {
	if len(l.charges) >= l.quota.Files {
		return refuse(abi.ENOSPC)
	}
	return nil
}

// roomForDir refuses one directory more.
func (l *ledger) roomForDir() error {
	if len(l.dirs) >= l.quota.Dirs {
		return refuse(abi.ENOSPC)
	}
	return nil
}

// roomFor refuses to let a file grow to a size.
func (l *ledger) roomFor(fi fs.FileInfo, size int64) error {
	growth := size - weight(fi)
	if growth <= 0 {
		return nil
	}
	if growth > l.quota.Bytes-l.used {
		return refuse(abi.ENOSPC)
	}
	if id, _ := identify(fi); l.charges[id] == nil {
		return l.roomForFile()
	}
	return nil
}

// made enters a file that the run created.
func (l *ledger) made(fi fs.FileInfo) {
	id, _ := identify(fi)
	l.charges[id] = &charge{}
	l.grew(fi, weight(fi))
}

// grew enters the change of a file's weight, fi being what it is now. A file
// gives back at most what it was charged.
func (l *ledger) grew(fi fs.FileInfo, by int64) {
	id, _ := identify(fi)
	c := l.charges[id]
	if c == nil {
		if by <= 0 {
			return
		}
		c = &charge{}
		l.charges[id] = c
	}
	by = max(by, -c.bytes)
	c.bytes += by
	l.used += by
	c.gone = c.gone || links(fi) == 0
}

// removed enters that a name is gone. open says whether a handle still holds
// the file.
func (l *ledger) removed(fi fs.FileInfo, open bool) {
	id, _ := identify(fi)
	if fi.IsDir() {
		delete(l.dirs, id)
		return
	}
	c := l.charges[id]
	if c == nil || links(fi) > 1 {
		return
	}
	if open {
		c.gone = true
		return
	}
	l.release(id)
}

// closed enters that the last handle of a file is closed.
func (l *ledger) closed(id identity) {
	if c := l.charges[id]; c != nil && c.gone {
		l.release(id)
	}
}

func (l *ledger) release(id identity) {
	l.used -= l.charges[id].bytes
	delete(l.charges, id)
}
