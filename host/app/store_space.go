package app

import (
	"io/fs"
	"path/filepath"
)

// StoreSpace returns how many bytes the store in a data directory takes and how many are free for it. It reports
// false for a store in memory and where free space is not known.
func StoreSpace(dataDir string) (used, free uint64, known bool) {
	if dataDir == "" {
		return 0, 0, false
	}
	free, known = freeSpace(dataDir)
	_ = filepath.WalkDir(filepath.Join(dataDir, "db"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // files come and go while the store is in use
		}
		if fi, err := d.Info(); err == nil {
			used += uint64(fi.Size()) // #nosec G115 -- sizes are not negative
		}
		return nil
	})
	return used, free, known
}
