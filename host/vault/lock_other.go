//go:build !unix

package vault

import (
	"os"
	"sync"
)

// one keeps the vaults of this process apart, where directories have no locks.
var one sync.Mutex

func lock(*os.File, lockKind) (release func(), err error) {
	one.Lock()
	return one.Unlock, nil
}
