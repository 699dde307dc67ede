package app

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/store"
)

// manyTraces is how much of the disk traces take before that is worth a word.
const manyTraces = 1 << 30

// staleBackup is the age at which the last verified backup is old.
const staleBackup = 30 * 24 * time.Hour

// backup reports the age of the last verified backup.
func (c *checkup) backup(dir string) {
	if dir == "" {
		return
	}
	all, err := backup.List(dir)
	if err != nil {
		c.add("backup", StateWeak, "see the message", "%v", err)
		return
	}
	var last *backup.Entry
	for i, e := range all {
		if e.Verified && !e.Gone() {
			last = &all[i]
		}
	}
	const remedy = "run sluice backup, and keep the file on another disk"
	switch {
	case last == nil && len(all) > 0:
		c.add("backup", StateWeak, remedy, "no verified backup is where it was written")
	case last == nil:
		c.add("backup", StateWeak, remedy, "there is none")
	case time.Since(last.Created) > staleBackup:
		c.add("backup", StateWeak, remedy, "the last verified one is of %s: %s", store.Time(last.Created), last.File)
	case strings.HasPrefix(last.File, dir+string(filepath.Separator)):
		c.add("backup", StateOK, "", "the last verified one is of %s, on the same disk: %s", store.Time(last.Created), last.File)
	default:
		c.add("backup", StateOK, "", "the last verified one is of %s: %s", store.Time(last.Created), last.File)
	}
}

// traces reports how many pictures of the owner's pages are kept, since when, and how large
// they are: whoever turned tracing on may have forgotten it.
func (c *checkup) traces(data string) {
	if data == "" {
		return
	}
	dir := browser.Traces(data)
	var count int
	var bytes int64
	var oldest time.Time
	for run, err := range browser.TracedRuns(dir) {
		var fi fs.FileInfo
		if err == nil {
			fi, err = browser.StatTrace(dir, run)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went meanwhile
			continue
		case err != nil:
			c.add("traces", StateWeak, "make "+dir+" readable", "%v", err)
			return
		}
		count++
		bytes += fi.Size()
		if at := fi.ModTime(); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	if count == 0 {
		return
	}
	state, remedy := StateOK, ""
	if bytes > manyTraces {
		state, remedy = StateWeak, "remove those that nobody looks at any more, and trace only runs that are looked into"
	}
	c.add("traces", state, remedy, "%d browser traces, %d MiB, the oldest of %s, in %s", count, (bytes+abi.MiB-1)/abi.MiB, store.Time(oldest), dir)
}
