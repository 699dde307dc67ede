//go:build !unix

package private

import (
	"io/fs"
	"os"
	"sync"
)

// Files carry access lists here, which this build does not read.
func foreign(fs.FileInfo) bool { return false }
func exposed(fs.FileInfo) bool { return false }

// syncDir does nothing where directories cannot be synced.
func syncDir(*os.File) error { return nil }

// locks keep those of this process apart, by the path of what they lock, where
// directories have no locks.
var locks sync.Map

// Lock waits until nobody else in this process has it.
func Lock(f *os.File, _ bool) (release func(), err error) {
	lock, _ := locks.LoadOrStore(f.Name(), &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock, nil
}
