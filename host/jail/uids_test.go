package jail

import (
	"errors"
	"sync"
	"testing"
)

// No two live workers have one uid, and an exhausted range is an error.
func TestUIDsAreUnique(t *testing.T) {
	const first, last = 1000, 1099
	u, err := newUIDs(first, last)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for range last - first + 1 {
		uid, err := u.take()
		if err != nil || uid < first || uid > last || seen[uid] {
			t.Fatalf("took %d, %v, seen %v", uid, err, seen[uid])
		}
		seen[uid] = true
	}
	if _, err := u.take(); !errors.Is(err, ErrNoUID) {
		t.Errorf("beyond the range: %v", err)
	}
	u.free(1050)
	if uid, err := u.take(); uid != 1050 || err != nil {
		t.Errorf("after one was freed: %d %v", uid, err)
	}
}

func TestUIDsHammer(t *testing.T) {
	u, err := newUIDs(1000, 1007)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards live
	live := map[int]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				uid, err := u.take()
				mu.Lock()
				if err != nil || live[uid] {
					t.Errorf("took %d, %v, live %v", uid, err, live[uid])
				}
				live[uid] = true
				mu.Unlock()
				mu.Lock()
				delete(live, uid)
				mu.Unlock()
				u.free(uid)
			}
		})
	}
	wg.Wait()
}

// A range with root in it, or none, is refused.
func TestUIDRangeIsChecked(t *testing.T) {
	for _, r := range [][2]int{{0, 10}, {-1, 5}, {10, 9}} {
		if _, err := newUIDs(r[0], r[1]); err == nil {
			t.Errorf("range %v accepted", r)
		}
	}
}
