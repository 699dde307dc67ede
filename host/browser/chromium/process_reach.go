package chromium

import (
	"fmt"
	"os"
	"path/filepath"
)

// Reach reports whether a browser with a uid of its own can be given a directory: it
// can pass all that lies above, or this process can make it a view of the file system
// in which it can (B175). The error names the directory that is closed, and what to do.
func Reach(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	closed := closedAbove(dir)
	if closed == "" {
		return nil
	}
	if err = canView(); err != nil {
		return fmt.Errorf("%w: browsers have uids of their own and cannot pass %s: move the data directory, for example to /var/lib/sluice, or chmod o+x %s (%v)", ErrUnsafe, closed, closed, err)
	}
	return nil
}

// closedAbove is the topmost directory above a path that others than its owner
// cannot pass, "" for none.
func closedAbove(path string) (closed string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.Mode().Perm()&0o001 == 0 {
			closed = dir
		}
		if dir == filepath.Dir(dir) {
			return closed
		}
	}
}

// hidden are the directories of a browser that lie in a closed one, by that one. A
// browser that runs as the host does passes what the host passes.
func (o *Options) hidden() map[string][]string {
	if o.UID == 0 {
		return nil
	}
	out := map[string][]string{}
	for _, dir := range []string{o.Profile, o.Home, o.scratch} {
		if closed := closedAbove(dir); closed != "" {
			out[closed] = append(out[closed], dir)
		}
	}
	return out
}
