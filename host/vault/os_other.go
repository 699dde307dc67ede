//go:build !unix

package vault

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

// one keeps the vaults of this process apart, where directories have no locks.
var one sync.Mutex

func lock(*os.File, lockKind) (release func(), err error) {
	one.Lock()
	return one.Unlock, nil
}
