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

// A holder describes the process that holds the lock, in the lock file.
type holder struct {
	PID       int       `json:"pid"`
	Host      string    `json:"host"`
	StartedAt time.Time `json:"started_at"`
}

// acquireLock takes DATA/lock or returns *store.BusyError naming the holder. The lock ends with releaseLock or the
// process.
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
		_ = json.Unmarshal(text, &h) // while the holder is writing, its pid is unknown
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

// releaseLock releases the lock at once. Closing the file is not enough: a child process being started has a copy of it
// until it executes its program.
func releaseLock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// private restricts files that this process creates to its user. Otherwise the engine would create its own with mode
// 0644.
func private() { syscall.Umask(0o077) }

func freeSpace(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("measure free space: %w", err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
