package badger

import (
	"context"
	"testing"

	"github.com/sluicehost/sluice/store"
)

// What the committer does of its own accord was never pushed, so its end gives no
// bytes back: otherwise the queue is never empty again, and a commit that is
// larger than its limit, which passes only alone, waits for ever.
func TestChoresClaimNothing(t *testing.T) {
	q := newQueue(10, nil)
	settle := func(store.Ack, error) {}
	q.finish(&item{bytes: 1024, settle: settle}, nil)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	large := &item{bytes: 20, settle: settle}
	if err := q.push(now, large); err != nil {
		t.Fatalf("a large commit does not pass alone: %v", err)
	}
	if err := q.push(now, &item{bytes: 1, settle: settle}); err == nil {
		t.Error("a second one passes beside it")
	}
	q.finish(large, nil)
	if err := q.push(now, &item{bytes: 20, settle: settle}); err != nil {
		t.Errorf("the queue is not empty again: %v", err)
	}
}
