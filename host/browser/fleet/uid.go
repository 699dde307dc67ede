package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// uids assigns each connection its own uid. The assignment is stored beside the connection's
// profiles, whose files have that owner, and is removed with them. Pool uids, for processes without
// a connection, are taken from the other end of the range.
type uids struct {
	first, last int // 0, 0: browsers run as the host's user

	mu      sync.Mutex // guards what follows
	pool    map[int]bool
	claimed claims
}

var errNoUID = errors.New("every uid of browser.uid_range is taken")

// of returns the uid of a connection. It assigns a new one if there is none or another host has
// claimed it meanwhile.
func (u *uids) of(f *folders, connection string) (int, error) {
	if u.first == 0 {
		return 0, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	uid, err := readUID(f, connection)
	if err != nil {
		return 0, err
	}
	if uid >= u.first && uid <= u.last {
		if mine, err := u.claimed.take(uid); mine || err != nil {
			return uid, err
		}
	}
	if uid, err = u.free(f, u.first, 1); err != nil {
		return 0, err
	}
	return uid, f.root.WriteFile(filepath.Join(connection, ".uid"), []byte(strconv.Itoa(uid)+"\n"), 0o600)
}

// borrow returns a uid that no connection has. give returns it to the pool.
func (u *uids) borrow(f *folders) (int, error) {
	if u.first == 0 {
		return 0, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	uid, err := u.free(f, u.last, -1)
	if err != nil {
		return 0, err
	}
	u.pool[uid] = true
	return uid, nil
}

// free claims the first unused uid of the range, starting at from. The caller holds mu.
func (u *uids) free(f *folders, from, step int) (int, error) {
	taken, err := u.taken(f)
	if err != nil {
		return 0, err
	}
	for uid := from; uid >= u.first && uid <= u.last; uid += step {
		if taken[uid] {
			continue
		}
		if mine, err := u.claimed.take(uid); mine || err != nil {
			return uid, err
		}
	}
	return 0, errNoUID
}

// close releases all claims.
func (u *uids) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.claimed.drop()
}

// give returns a borrowed uid to the pool, once its process and directory are gone.
func (u *uids) give(uid int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pool, uid)
}

// taken returns the uids in use. The caller holds mu.
func (u *uids) taken(f *folders) (map[int]bool, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("look for uids: %w", err)
	}
	taken := map[int]bool{}
	for uid := range u.pool {
		taken[uid] = true
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name() == temporary {
			continue
		}
		uid, err := readUID(f, e.Name())
		if err != nil {
			return nil, err
		}
		taken[uid] = true
	}
	return taken, nil
}

// readUID returns the uid of a connection, or 0 if it has none.
func readUID(f *folders, connection string) (int, error) {
	text, err := f.root.ReadFile(filepath.Join(connection, ".uid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the uid of a connection: %w", err)
	}
	uid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the uid of a connection: %w", err)
	}
	return uid, nil
}
