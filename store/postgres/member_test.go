//go:build unix

package postgres_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// as are the options of a host that is named.
func as(id string, o postgres.Options) postgres.Options {
	o.Self.ID, o.Self.Epoch = id, "boot_"+id
	return o
}

func host(t *testing.T, url, id string) *postgres.Store {
	t.Helper()
	return opened(t, url, as(id, postgres.Options{})).(*postgres.Store)
}

func names(t *testing.T, s store.Members) string {
	t.Helper()
	all, err := s.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range all {
		id := m.ID
		if m.Draining {
			id += " drains"
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, ", ")
}

func leads(t *testing.T, s store.Members) bool {
	t.Helper()
	yes, err := s.Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

// TestMembers is about who is a member, and who leads.
func TestMembers(t *testing.T) {
	t.Parallel()
	url := server.New(t) + weak
	a, b := host(t, url, "a"), host(t, url, "b")
	if err := b.Announce(t.Context(), store.About{Version: "v2", Labels: []string{"browser"}, Capacity: 4}); err != nil {
		t.Fatal(err)
	}
	var busy *store.BusyError
	if _, err := postgres.OpenURL(url, as("a", postgres.Options{})); !errors.As(err, &busy) ||
		!strings.Contains(err.Error(), "data=DIR") {
		t.Errorf("two hosts with one id: %v", err)
	}
	if _, err := postgres.OpenURL(url, as("c", postgres.Options{Generation: 3})); err == nil ||
		!strings.Contains(err.Error(), "one version at a time") {
		t.Errorf("a host two generations ahead: %v", err)
	}
	if got := names(t, a); got != "a, b" {
		t.Errorf("members %s", got)
	}
	next := opened(t, url, as("c", postgres.Options{Generation: 2}))
	if err := a.Drain(t.Context(), "b", true); err != nil {
		t.Fatal(err)
	}
	if err := a.Drain(t.Context(), "x", true); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("drain of a host that is none: %v", err)
	}
	if got := names(t, a); got != "a, b drains, c" {
		t.Errorf("members %s", got)
	}
	all, err := a.Members(t.Context())
	if err != nil || all[1].Version != "v2" || all[1].Capacity != 4 || all[1].Labels[0] != "browser" || all[1].PID == 0 {
		t.Errorf("%+v %v", all, err)
	}
	if !leads(t, a) || leads(t, b) || !leads(t, a) {
		t.Error("who asks first leads, and nobody else")
	}
	if err := a.Yield(t.Context()); err != nil || !leads(t, b) || leads(t, a) {
		t.Errorf("who yields does not lead: %v", err)
	}
	_, _ = b.Close(), next.Close()
	if got := names(t, a); got != "a" || !leads(t, a) {
		t.Errorf("members %s; one that leads was closed", got)
	}
}

// TestRemoved stops a host in the middle of a transaction for longer than its lease. Another one
// takes over, and nothing that the first one does when it comes back is stored.
func TestRemoved(t *testing.T) {
	t.Parallel()
	pg := server.Shared(t)
	p, url := pg.Proxy(t), pg.Database(t)
	a := host(t, p.Through(t, url)+weak+"&lease=1s", "a")
	log := make(said, 100)
	o := log.options()
	b := opened(t, url+weak+"&lease=1s", as("b", o)).(*postgres.Store)
	l, err := a.Acquire(t.Context(), store.Run{ID: "run_1", ConnectionID: "c", Status: "active"}, "a",
		"boot_a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	all(t, a, l, []*store.Receipt{flush(t, a, l, 0)})
	thaw := p.Freeze()
	defer thaw()
	late := flush(t, a, l, 1)
	log.wait(t, "host_removed")
	if got := names(t, b); got != "b" {
		t.Errorf("members %s", got)
	}
	lost, err := b.Lost(t.Context())
	if err != nil || len(lost) != 1 || lost[0].ID != "a" || lost[0].Runs != 1 || lost[0].SeenAt.Before(lost[0].JoinedAt) {
		t.Errorf("lost: %+v %v", lost, err)
	}
	leases, err := b.Leases(t.Context())
	if err != nil || len(leases) != 1 || leases[0].BootEpoch != "boot_a" {
		t.Fatalf("%+v %v", leases, err)
	}
	end := &store.Commit{Lease: leases[0], End: true,
		Events: []store.Event{{ID: "evt_end", Type: "run.failed", RunID: l.RunID, Data: json.RawMessage(`{}`)}}}
	r, err := b.Submit(t.Context(), end)
	if err == nil {
		_, err = r.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
	thaw()
	if _, err := late.Result(); err == nil {
		t.Error("a commit of a host that was removed was acknowledged")
	}
	<-a.Removed()
	if _, err := a.Submit(t.Context(), &store.Commit{Lease: l}); !errors.Is(err, postgres.ErrRemoved) ||
		!errors.Is(a.Err(), postgres.ErrRemoved) {
		t.Errorf("a commit of a host that knows that it was removed: %v", err)
	}
	if err := a.Write(t.Context(), store.Write{Kind: store.Webhooks, ID: "x", Data: json.RawMessage(`1`)}); !errors.Is(err,
		postgres.ErrRemoved) {
		t.Errorf("a document of a host that was removed: %v", err)
	}
	events, err := b.Events(t.Context(), l.RunID, 0, 10)
	if err != nil || len(events) != 2 || events[1].Type != "run.failed" {
		t.Errorf("%+v %v", events, err)
	}
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	_ = a.Close() // it gives up the lock of its id
	host(t, url+weak+"&lease=1s", "a")
	if lost, err := b.Lost(t.Context()); err != nil || len(lost) != 0 {
		t.Errorf("lost after it came back: %+v %v", lost, err)
	}
}

// TestSilent: a host knows by itself when others may have removed it, and when it is heard of again.
func TestSilent(t *testing.T) {
	t.Parallel()
	pg := server.Shared(t)
	p, url := pg.Proxy(t), pg.Database(t)
	a := host(t, p.Through(t, url)+weak+"&lease=2s&connect_timeout=1", "a")
	b := host(t, url+weak+"&lease=2s", "b")
	thaw := p.Freeze()
	for names(t, b) != "b" {
		time.Sleep(time.Millisecond)
	}
	if err := a.Alive(); err == nil {
		t.Error("a host that was removed takes itself for a member")
	}
	thaw()
	<-a.Removed()
	if err := a.Alive(); err == nil {
		t.Error("a host that knows that it was removed takes itself for a member")
	}
	pg = server.Start(t, "fsync=off")
	alone := host(t, pg.Database(t)+weak+"&lease=1s", "alone")
	if err := alone.Alive(); err != nil {
		t.Error(err)
	}
	if err := pg.Crash(); err != nil {
		t.Fatal(err)
	}
	for late := time.After(time.Minute); !errors.Is(alone.Alive(), store.ErrSilent); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			t.Fatal("a host without a server is never silent")
		}
	}
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
	for late := time.After(time.Minute); alone.Alive() != nil; {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			t.Fatal("a host is heard of again and does not know it")
		}
	}
}

// TestCutOff has every packet to and from the server vanish for ever: what waits fails once the host
// may have been removed and has waited for the server as long as it does, and other hosts go on.
func TestCutOff(t *testing.T) {
	t.Parallel()
	pg := server.Shared(t)
	p, url := pg.Proxy(t), pg.Database(t)
	const brief = weak + "&lease=3s&outage_wait=100ms&connect_timeout=1"
	a := host(t, p.Through(t, url)+brief, "a")
	log := make(said, 100)
	opened(t, url+brief, as("b", log.options())) // one of them removes it
	b := opened(t, url+brief, as("c", log.options()))
	l := start(t, a, "a")
	all(t, a, l, []*store.Receipt{flush(t, a, l, 0)})
	p.Freeze()
	late, reading := flush(t, a, l, 1), make(chan error, 1)
	go func() {
		_, err := a.Events(t.Context(), l.RunID, 0, 10)
		reading <- err
	}()
	if _, err := late.Result(); err == nil {
		t.Error("a commit that never reached the server was acknowledged")
	}
	if err := <-reading; err == nil {
		t.Error("a read without a server has an answer")
	}
	log.wait(t, "host_removed")
	if head, err := b.RunHead(t.Context(), l.RunID); err != nil || head.Next != 1 {
		t.Errorf("%d events: %v", head.Next, err)
	}
}

// TestWakeups has one host hear of what another one commits.
func TestWakeups(t *testing.T) {
	t.Parallel()
	url := server.New(t) + weak
	a, b := host(t, url, "a"), host(t, url, "b")
	run, stopRun := b.Watch("run_a")
	defer stopRun()
	kind, stopKind := b.Changed(store.Schedules)
	defer stopKind()
	members, stopMembers := b.Changed("")
	defer stopMembers()
	l := start(t, a, "a")
	i := 0
	heard := func(wake <-chan struct{}, do func()) {
		t.Helper()
		for late := time.After(time.Minute); ; { // one is lost while b does not listen yet
			do()
			select {
			case <-wake:
				return
			case <-time.After(100 * time.Millisecond):
			case <-late:
				t.Fatal("nothing is heard")
			}
		}
	}
	for range 2 { // the first may be because b begins to listen
		heard(run, func() { _, _ = flush(t, a, l, i).Result(); i++ })
		heard(kind, func() {
			if err := a.Write(t.Context(), store.Write{Kind: store.Schedules, ID: "x", Data: json.RawMessage(`1`)}); err != nil {
				t.Fatal(err)
			}
		})
		heard(members, func() {
			if err := a.Announce(t.Context(), store.About{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestTurns: hosts take the turns of an origin one after the other, whoever asks.
func TestTurns(t *testing.T) {
	t.Parallel()
	url := server.New(t)
	a, b := host(t, url+weak, "a"), host(t, url+weak, "b")
	pace := store.RateLimit{Every: time.Hour, Burst: 3}
	take := func(s store.SharedRateLimiter, origin string, n int, first, closed time.Duration) {
		t.Helper()
		at, shut, err := s.TakeTurns(t.Context(), origin, n, pace)
		if err != nil || at.Round(time.Hour) != first || shut.Round(time.Hour) != closed {
			t.Errorf("%d turns with %s begin in %s, closed for %s, %v; want %s and %s", n, origin, at, shut, err, first, closed)
		}
	}
	take(a, "one", 1, -2*time.Hour, 0)
	take(b, "one", 2, -time.Hour, 0)
	take(a, "one", 2, time.Hour, 0)
	take(b, "two", 1, -2*time.Hour, 0)
	take(b, "one", 1, 3*time.Hour, 0)
	if err := a.CloseOrigin(t.Context(), "one", 9*time.Hour, pace); err != nil {
		t.Fatal(err)
	}
	take(b, "one", 1, 9*time.Hour, 9*time.Hour) // and no burst behind it
	take(a, "one", 1, 10*time.Hour, 9*time.Hour)
	if err := b.CloseOrigin(t.Context(), "one", time.Hour, pace); err != nil {
		t.Fatal(err)
	}
	take(a, "one", 1, 11*time.Hour, 9*time.Hour)
	if err := a.CloseOrigin(t.Context(), "new", time.Hour, pace); err != nil {
		t.Fatal(err)
	}
	take(b, "new", 1, time.Hour, time.Hour)
	if err := a.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	take(b, "one", 1, 12*time.Hour, 9*time.Hour)
	c := connect(t, url)
	run(t, c, "update sluice_store.pace set used = clock_timestamp() - interval '1 second' where origin = 'two'")
	if err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := c.QueryRow(t.Context(),
		"select string_agg(origin, ' ' order by origin) from sluice_store.pace").Scan(&left); err != nil ||
		left != "new one" {
		t.Errorf("origins %s are left, %v", left, err)
	}
}
