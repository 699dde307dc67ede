package app

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/store"
)

// staleBackup is the age at which the last verified backup is old.
const staleBackup = 30 * 24 * time.Hour

// backup reports the age of the last verified backup (S135).
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
