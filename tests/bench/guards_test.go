//go:build unix

package bench

import (
	"context"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/jail"
)

// BenchmarkGuards measures what the checks of every record cost: the search for
// protected values, with eight secrets; an explicit scope with a time range or with
// fields; and all of them together. Each is off, then on, in turns; medians of three
// turns are reported. Goal: under 10 %.
func BenchmarkGuards(b *testing.B) {
	n := records()
	const (
		span   = `{"streams":[{"name":"items","time_range":{"since":"2000-01-01T00:00:00Z","until":"2100-01-01T00:00:00Z"}}]}`
		fields = `{"streams":[{"name":"items","fields":["name","email","city","amount","count","active","created_at","note"]}]}`
		both   = `{"streams":[{"name":"items","time_range":{"since":"2000-01-01T00:00:00Z","until":"2100-01-01T00:00:00Z"},"fields":["name","email","city","amount","count","active","created_at","note"]}]}`
	)
	secrets, names := map[string]string{}, []string(nil)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		secrets["secret_"+name] = "correct horse battery staple " + name
		names = append(names, "secret_"+name)
	}
	guards := []struct {
		name string
		on   func(*app.RunRequest)
	}{
		{"none", func(*app.RunRequest) {}},
		{"canary", func(q *app.RunRequest) { q.Secrets, q.Approved.Plain = secrets, names }},
		{"time-range", func(q *app.RunRequest) { q.Scope = []byte(span) }},
		{"fields", func(q *app.RunRequest) { q.Scope = []byte(fields) }},
		{"all", func(q *app.RunRequest) { q.Secrets, q.Approved.Plain, q.Scope = secrets, names, []byte(both) }},
	}
	for b.Loop() {
		seen := map[string][]float64{}
		for range 3 {
			for _, g := range guards {
				with(b, jail.Walls{}, func(h *app.Host) {
					q := app.RunRequest{Connector: loaded(b, h, "ingest"), Config: configOf("struct", n, 0)}
					g.on(&q)
					r, err := h.Start(context.Background(), q)
					if err != nil {
						b.Fatal(err)
					}
					before := cpuTime(b)
					took, _ := finish(b, r, int64(n))
					seen[g.name+"-rec/s"] = append(seen[g.name+"-rec/s"], rate(n, took))
					seen[g.name+"-host-cpu-us/rec"] = append(seen[g.name+"-host-cpu-us/rec"], perRecord(n, cpuTime(b)-before))
				})
			}
		}
		for name, figures := range seen {
			b.ReportMetric(median(figures), name)
		}
		for _, g := range guards[1:] {
			b.ReportMetric(median(seen[g.name+"-rec/s"])/median(seen["none-rec/s"]), g.name+"/none")
		}
	}
}
