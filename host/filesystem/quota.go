package filesystem

import (
	"io/fs"

	"github.com/sluicehost/sluice/abi"
)

// A ledger accounts for what a run adds to one writable directory, per file, and refuses
// growth beyond the quota. Files that existed before the run are neither charged nor
// credited when removed.
//
// Invariant: used is the sum of the charges.
type ledger struct {
	quota   Quota
	used    int64
	charges map[identity]*charge
	dirs    map[identity]struct{}
}

// A charge is a file that the run created or extended. A file that is removed while open
// still takes space; it is gone, and its last close releases the charge.
type charge struct {
	bytes int64
	gone  bool
}

func newLedger(q Quota) *ledger {
	return &ledger{quota: q, charges: map[identity]*charge{}, dirs: map[identity]struct{}{}}
}

// depth refuses an entry that is too deep.
func (l *ledger) depth(components int) error {
	if components > l.quota.Depth {
		return refuse(abi.ENOSPC)
	}
	return nil
}

// roomForFile refuses a file beyond the quota.
func (l *ledger) roomForFile() error {
	if len(l.charges) >= l.quota.Files {
		return refuse(abi.ENOSPC)
	}
	return nil
}

// roomForDir refuses a directory beyond the quota.
func (l *ledger) roomForDir() error {
	if len(l.dirs) >= l.quota.Dirs {
		return refuse(abi.ENOSPC)
	}
	return nil
}

// roomFor refuses the growth of a file to size beyond the quota.
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

// made records a file that the run created.
func (l *ledger) made(fi fs.FileInfo) {
	id, _ := identify(fi)
	l.charges[id] = &charge{}
	l.grew(fi, weight(fi))
}

// grew records a change of a file's weight; fi is its current state. A file is never
// credited more than it was charged.
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

// removed records that a name was removed. open says whether a handle of the file is open.
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

// closed records that the last handle of a file was closed.
func (l *ledger) closed(id identity) {
	if c := l.charges[id]; c != nil && c.gone {
		l.release(id)
	}
}

func (l *ledger) release(id identity) {
	l.used -= l.charges[id].bytes
	delete(l.charges, id)
}
