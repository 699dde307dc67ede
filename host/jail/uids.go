package jail

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"sync"
)

// uids assigns worker uids, one per live worker. It starts at a random one and goes round, so that a uid is reused as
// late as possible and two hosts on one machine rarely use the same.
type uids struct {
	first, count int

	mu   sync.Mutex // guards the fields below
	next int        // offset from first
	live map[int]struct{}
}

func newUIDs(first, last int) (*uids, error) {
	if first < 1 || last < first {
		return nil, fmt.Errorf("worker uids: range %d-%d is empty or has root in it", first, last)
	}
	count := last - first + 1
	start, err := rand.Int(rand.Reader, big.NewInt(int64(count)))
	if err != nil {
		return nil, fmt.Errorf("worker uids: %w", err)
	}
	return &uids{first: first, count: count, next: int(start.Int64()), live: map[int]struct{}{}}, nil
}

// take returns a uid that no live worker has, or [ErrNoUID].
func (u *uids) take() (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.live) >= u.count {
		return 0, ErrNoUID
	}
	for {
		uid := u.first + u.next
		u.next = (u.next + 1) % u.count
		if _, taken := u.live[uid]; !taken {
			u.live[uid] = struct{}{}
			return uid, nil
		}
	}
}

// free releases the uid of a worker that has ended.
func (u *uids) free(uid int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.live, uid)
}
