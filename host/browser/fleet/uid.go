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

// uids gives each connection a uid of its own. The assignment lies beside the
// connection's profiles, whose files have that owner, and goes with them. Uids of the
// pool, for processes that belong to nobody yet, come from the other end of the range.
type uids struct {
	first, last int // 0, 0: browsers run as the host itself

	mu      sync.Mutex // guards what follows
	pool    map[int]bool
	claimed claims
}

var errNoUID = errors.New("every uid of browser.uid_range is taken")

// of is the uid of a connection: the one it has, unless another host took it in the
// meantime.
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

// borrow is a uid that no connection has; give returns it.
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

// free claims the first uid that nothing of this host has, from one end of the range to the
// other. The caller holds mu.
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

// close gives all claims back.
func (u *uids) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.claimed.drop()
}

// give takes a borrowed uid back, once its process and directory are gone.
func (u *uids) give(uid int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pool, uid)
}

// taken are the uids in use. The caller holds mu.
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

// readUID is the uid that a connection has, 0 for none.
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
