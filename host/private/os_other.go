//go:build !unix

package private

import (
	"context"
	"io/fs"
	"os"
	"sync"
)

// Files have access lists on this system, which are not checked.
func foreign(fs.FileInfo) bool { return false }
func exposed(fs.FileInfo) bool { return false }

// syncDir does nothing where directories cannot be synced.
func syncDir(*os.File) error { return nil }

// locks holds the locks within this process by path, for systems where directories cannot be
// locked.
var locks sync.Map

// Lock waits until nobody else in this process holds the lock.
func Lock(f *os.File, _ bool) (release func(), err error) {
	lock, _ := locks.LoadOrStore(f.Name(), &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock, nil
}

// LockFile does nothing on systems without locks of whole files.
func LockFile(context.Context, *os.File) error { return nil }
