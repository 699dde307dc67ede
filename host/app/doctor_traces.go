package app

import (
	"errors"
	"io/fs"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/store"
)

// manyTraces is how much of the disk traces take before that is worth a word.
const manyTraces = 1 << 30

// traces reports how many pictures of the owner's pages are kept, since when, and how
// large they are (B165): whoever turned tracing on may have forgotten it.
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
