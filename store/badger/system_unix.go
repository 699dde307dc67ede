//go:build unix

package badger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A holder is what the lock file says about the process that holds it.
type holder struct {
	PID       int       `json:"pid"`
	Host      string    `json:"host"`
	StartedAt time.Time `json:"started_at"`
}

// acquireLock takes DATA/lock or returns *store.BusyError naming the holder.
// releaseLock gives the lock back; so does the end of the process.
func acquireLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock data directory: %w", err)
		}
		var h holder
		text, _ := io.ReadAll(io.LimitReader(f, 4096))
		_ = json.Unmarshal(text, &h) // a holder that is just writing is reported without its pid
		return nil, &store.BusyError{Dir: dir, PID: h.PID, Host: h.Host}
	}
	host, _ := os.Hostname()
	text, err := json.Marshal(holder{PID: os.Getpid(), Host: host, StartedAt: time.Now().UTC()})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(append(text, '\n'), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return f, nil
}

// releaseLock gives the lock back at once. To close the file is not enough: a child
// that this process is just starting has a copy of it until it has become a program.
func releaseLock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// private keeps the files that this process makes to its user: the engine makes its own
// 0644 otherwise.
func private() { syscall.Umask(0o077) }

func freeSpace(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("measure free space: %w", err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
