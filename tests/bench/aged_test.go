//go:build unix

package bench

import (
	"path"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
	"github.com/sluicehost/sluice/tests/postgres"
)

// BenchmarkAged claims connections in a young store, and once it has lived through a million runs and a week
// of heartbeats of three hosts. Goal: the same p99.
func BenchmarkAged(b *testing.B) {
	const young, old, week, claims = 20_000, 1_000_000, 3 * 7 * 24 * 3600, 3000
	for b.Loop() {
		server := postgres.Start(b, "autovacuum_naptime=1s")
		url := server.Database(b)
		s, err := drivers.Open(url, drivers.Options{Self: store.Member{ID: "host", Epoch: "boot"}})
		if err != nil {
			b.Fatal(err)
		}
		name := path.Base(strings.SplitN(url, "?", 2)[0])
		postgres.Claims(b, s, "warm", 100)
		server.Age(b, name, 0, young, week*young/old)
		early := postgres.Claims(b, s, "early", claims)
		server.Age(b, name, young, old-young, week)
		late := postgres.Claims(b, s, "late", claims)
		for _, p := range []struct {
			name string
			at   int
		}{{"p50", claims / 2}, {"p99", claims * 99 / 100}} {
			b.ReportMetric(float64(early[p.at].Microseconds())/1000, "claim-young-"+p.name+"-ms")
			b.ReportMetric(float64(late[p.at].Microseconds())/1000, "claim-aged-"+p.name+"-ms")
			b.ReportMetric(float64(late[p.at])/float64(early[p.at]), "claim-aged/young-"+p.name)
		}
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}
}
