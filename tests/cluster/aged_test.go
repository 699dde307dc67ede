//go:build unix

package cluster

import (
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/postgres"
)

// TestAgedStore has a store live through a million runs and a week of heartbeats of three hosts, in the
// time that the server takes for them: its queue tables stay as small as they were, and so does a host.
// How long claims take then tells BenchmarkAged.
func TestAgedStore(t *testing.T) {
	if !campaign.Soak() {
		t.Skip("make soak runs it, for autovacuum has nothing to do in a shorter time; here storetest stands for it")
	}
	c := campaign.New(t, "a million runs, a week of heartbeats")
	server := postgres.Start(t, "fsync=off", "full_page_writes=off", "autovacuum_naptime=1s")
	url := server.Database(t)
	s, err := drivers.Open(url+"&durability=weak", drivers.Options{Self: store.Member{ID: "host", Epoch: "boot"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const young, old, week = 20_000, 1_000_000, 3 * 7 * 24 * 3600
	postgres.Claims(t, s, "warm", 100)
	server.Age(t, postgres.NameOf(url), 0, young, week*young/old)
	was := server.Queues(t, postgres.NameOf(url))
	early, heap := postgres.Claims(t, s, "early", 5000), heapBytes()
	server.Age(t, postgres.NameOf(url), young, old-young, week)
	is := server.Queues(t, postgres.NameOf(url))
	late := postgres.Claims(t, s, "late", 5000)
	c.Cycle()
	for _, name := range slices.Sorted(maps.Keys(is)) {
		t.Logf("%s: %d KiB, and %d KiB", name, was[name]>>10, is[name]>>10)
		c.Checked(1)
		if is[name] > 3*was[name]+4<<20 {
			c.Torn("%s grew from %d to %d bytes", name, was[name], is[name])
		}
	}
	if grown := heapBytes() - heap; grown > 1<<20 {
		c.Torn("5000 runs left %d bytes in the host", grown)
	}
	p99 := func(all []time.Duration) time.Duration { return all[len(all)*99/100] }
	t.Logf("claims took %s at p99, and take %s", p99(early), p99(late))
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
