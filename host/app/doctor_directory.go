package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// manyTraces is the total size in bytes above which traces are reported as weak.
const manyTraces = 1 << 30

// staleBackup is the age above which the last verified backup is reported as weak.
const staleBackup = 30 * 24 * time.Hour

// backup reports the age of the last verified backup.
func (c *checkup) backup(d *directory) {
	dir := d.DataDir
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
		c.add("backup", StateOK, "", "the last verified one is of %s, on the same disk: %s",
			store.Time(last.Created), last.File)
	default:
		c.add("backup", StateOK, "", "the last verified one is of %s: %s", store.Time(last.Created), last.File)
	}
}

// traces reports the number, age and size of browser traces, which show the owner's pages: tracing may have been
// left on by mistake.
func (c *checkup) traces(data string) {
	if data == "" {
		return
	}
	u, err := traceUsageOf(data)
	if err != nil {
		c.add("traces", StateWeak, "make "+u.dir+" readable", "%v", err)
		return
	}
	if u.count == 0 {
		return
	}
	state, remedy := StateOK, ""
	if u.bytes > manyTraces {
		state, remedy = StateWeak, "remove those that nobody looks at any more, and trace only runs that are looked into"
	}
	c.add("traces", state, remedy, "%d browser traces, %d MiB, the oldest of %s, in %s", u.count,
		(u.bytes+abi.MiB-1)/abi.MiB, store.Time(u.oldest), u.dir)
}

// directory reports on the data directory, and returns whether a store can be opened in it.
func (c *checkup) directory(dir string) bool {
	if dir == "" {
		return true // memory:
	}
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.add("data", StateOK, "", "nothing is stored in %s yet", dir)
		return false
	case err != nil:
		c.add("data", StateBad, "make "+dir+" readable", "%v", err)
		return false
	case !fi.IsDir():
		c.add("data", StateBad, "name a directory with --store badger:DIR", "%s is not a directory", dir)
		return false
	}
	c.add("data", StateOK, "", "%s", dir)
	c.space(dir)
	return true
}

// space compares the free disk space with what runs and the store need.
func (c *checkup) space(dir string) {
	free, ok := freeSpace(dir)
	state, remedy := StateOK, ""
	switch {
	case !ok:
		return
	case free < spaceStop:
		state, remedy = StateBad, "free some disk space; the store stays closed until then"
	case free < spaceStart:
		state, remedy = StateBad, "free some disk space; runs are refused until then"
	case free < 4*spaceStart:
		state, remedy = StateWeak, "free some disk space before long"
	}
	c.add("space", state, remedy, "%d MiB free", free/abi.MiB)
}

// privateDirs are directories in the data directory with the permissions that others must not have. The cache is
// readable for the group of the workers, and browsers with other uids traverse the data directory to reach their
// profiles.
var privateDirs = map[string]fs.FileMode{".": 0o066, "vault": 0o077, "keys": 0o077, "modules": 0o077,
	"audit": 0o077, "db": 0o077,
	"witness": 0o077, "backups": 0o077, "revocations": 0o077, "traces": 0o077, "cache": 0o027}

// vault reports where the key of the stored secrets is kept.
func (c *checkup) vault(dir string) {
	if dir == "" {
		return
	}
	v, err := vault.Open(dir)
	var place vault.Place
	if err == nil {
		place, err = v.Place()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		c.add("vault", StateBad, "repair what it names, or bring back a copy", "%v", err)
	case place == vault.InKeyring:
		c.add("vault", StateOK, "", "the key of the stored secrets is sealed by the OS keyring")
	default:
		c.add("vault", StateOK, "",
			"the key of the stored secrets is beside them: whoever copies the whole data directory can open them; sluice secret rotate --keyring moves it")
	}
}

// modes reports directories that others could read or change.
func (c *checkup) modes(dir string) {
	if dir == "" {
		return
	}
	var open []string
	for name, forbidden := range privateDirs {
		path := filepath.Join(dir, name)
		fi, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || fi.Mode().Perm()&forbidden != 0 || !ownedByUs(fi) {
			open = append(open, path)
		}
	}
	if len(open) > 0 {
		c.add("modes", StateBad, "chown and chmod go-rwx: "+strings.Join(open, " "),
			"others can reach %d directories, or own them", len(open))
		return
	}
	c.add("modes", StateOK, "", "nobody else can read or change the data")
}
