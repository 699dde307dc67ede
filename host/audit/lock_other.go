//go:build !unix

package audit

import (
	"io/fs"
	"os"
	"sync"
)

// one keeps the logs of this process apart, where directories have no locks.
var one sync.Mutex

func lock(*os.File) (release func(), err error) {
	one.Lock()
	return one.Unlock, nil
}

// Files carry access lists here, which this build does not read.
func foreign(fs.FileInfo) bool { return false }
func exposed(fs.FileInfo) bool { return false }

// syncDir does nothing where directories cannot be synced.
func syncDir(*os.File) error { return nil }
