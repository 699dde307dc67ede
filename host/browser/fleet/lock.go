package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockEvery is how often a lock that somebody has is tried again.
const lockEvery = 50 * time.Millisecond

// lock takes the lock of a profile (B183), which the file that it returns holds
// until it is closed. It waits until ctx ends, and then refuses with
// profile_in_use; waiting is called once before it does.
func (f *folders) lock(ctx context.Context, connection, name string, waiting func()) (*os.File, error) {
	file, err := f.root.OpenFile(filepath.Join(connection, ".lock-"+name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of a profile: %w", err)
	}
	for {
		ok, err := tryLock(file)
		if err != nil {
			_ = file.Close() // nothing was written
			return nil, fmt.Errorf("lock a profile: %w", err)
		}
		if ok {
			return file, nil
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			_ = file.Close() // as above
			return nil, errInUse
		}
	}
}
