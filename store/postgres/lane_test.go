//go:build unix

package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// taken is the lease of a run that a store takes over.
func taken(t *testing.T, s store.Store, l store.Lease, boot string) store.Lease {
	t.Helper()
	l, err := s.TakeOver(t.Context(), l, "host", boot, time.Minute)
	must(t, err)
	return l
}

// TestHandedBack: a run goes to another host, which commits, and comes back: it goes on, and what either host wrote
// counts.
func TestHandedBack(t *testing.T) {
	url := server.New(t)
	a, b := opened(t, url+weak, postgres.Options{}), opened(t, url+weak, postgres.Options{})
	l := start(t, a, "a")
	receipts := []*store.Receipt{flush(t, a, l, 0)}
	_, err := receipts[0].Result()
	must(t, err)
	l = taken(t, b, l, "other")
	for range 2 { // it asks, is resumed and asks again
		receipts = append(receipts, flush(t, b, l, len(receipts)))
		_, err := receipts[len(receipts)-1].Result()
		must(t, err)
		l = taken(t, b, l, "other")
	}
	l = taken(t, a, l, "boot")
	receipts = append(receipts, flush(t, a, l, len(receipts)))
	all(t, a, l, receipts)
}

// TestSleptThrough: a run that the same host resumes learns that the server has lost its last commit meanwhile.
func TestSleptThrough(t *testing.T) {
	url := server.New(t)
	s, admin := opened(t, url+weak, postgres.Options{}), connect(t, url)
	l := start(t, s, "a")
	all(t, s, l, []*store.Receipt{flush(t, s, l, 0), flush(t, s, l, 1)})
	run(t, admin, "update sluice_store.lease set commits = commits - 1, next = next - 1")
	if _, err := flush(t, s, taken(t, s, l, "boot"), 2).Result(); !errors.Is(err, postgres.ErrRolledBack) {
		t.Fatalf("a commit behind one that is lost: %v", err)
	}
}

// TestLanes: a store forgets runs that are over, that it lost and that another host has.
func TestLanes(t *testing.T) {
	url := server.New(t)
	s, other := opened(t, url+weak, postgres.Options{}), opened(t, url+weak, postgres.Options{})
	lanes := func(want int) {
		t.Helper()
		got := -1
		for late := time.Now().Add(time.Minute); got != want && time.Now().Before(late); time.Sleep(time.Millisecond) {
			got = s.(*postgres.Store).Lanes()
		}
		if got != want {
			t.Fatalf("%d lanes, want %d", got, want)
		}
	}
	list := func() {
		t.Helper()
		_, err := s.Leases(t.Context())
		must(t, err)
	}
	over := func(s store.Store, l store.Lease) {
		t.Helper()
		r, err := s.Submit(t.Context(),
			&store.Commit{Lease: l, Run: &store.Run{ID: l.RunID, ConnectionID: l.ConnectionID, Status: "failed"}, End: true})
		must(t, err)
		_, err = r.Result()
		must(t, err)
	}
	var leases []store.Lease
	for _, c := range []string{"ends", "handed", "handed-over", "lost", "stays"} {
		l := start(t, s, c)
		_, err := flush(t, s, l, 0).Result()
		must(t, err)
		leases = append(leases, l)
	}
	list()
	lanes(5)
	over(s, leases[0])
	lanes(4)
	taken(t, other, leases[1], "other")
	list()
	lanes(3)
	over(other, taken(t, other, leases[2], "other"))
	list()
	lanes(2)
	taken(t, other, leases[3], "other")
	if _, err := flush(t, s, leases[3], 1).Result(); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("a commit of the former holder: %v", err)
	}
	lanes(1)
	_, err := flush(t, s, leases[4], 1).Result()
	must(t, err)
	lanes(1)
}
