//go:build unix

package resume

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// pagesOf is a server all of whose pages have so many bytes.
func pagesOf(b *testing.B, size int) *httptest.Server {
	body := bytes.Repeat([]byte("journal "), size/8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	b.Cleanup(s.Close)
	return s
}

// benched is a service in this process, with the clerk, with one whose manifest does not say that it
// asks, so that it keeps no journal, and with one that is resumable.
func benched(b *testing.B, awake time.Duration) (*service, map[string]store.Connector) {
	b.Helper()
	o := options("badger:" + b.TempDir())
	o.Journal.Awake, o.Prespawn = awake, 2
	o.RateLimit = egress.RateLimit{PerSecond: 1e6, Burst: 1e6, AtOnce: 64, LongestStop: time.Minute}
	h, err := app.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	s, err := h.Service(b.Context(), app.ServiceOptions{Grace: time.Millisecond, Accepted: 2000})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		s.Close(b.Context())
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	})
	x, all := &service{Service: s, host: h}, map[string]store.Connector{}
	manifest, err := os.ReadFile("clerk/manifest.json")
	if err != nil {
		b.Fatal(err)
	}
	wasm, err := build.Guest("tests/resume/clerk")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"clerk", "plain", "resumable"} {
		m := strings.Replace(string(manifest), `"connector_id": "clerk"`, `"connector_id": "`+name+`"`, 1)
		if name == "plain" {
			m = strings.Replace(m, `"human_interaction": ["otp", "clarification"]`, `"human_interaction": []`, 1)
		}
		if name == "resumable" {
			m = strings.Replace(m, `"sluice": {`, `"sluice": {"resumable": true,`, 1)
		}
		module, err := sandbox.EmbedManifest(wasm, []byte(m))
		if err != nil {
			b.Fatal(err)
		}
		file := b.TempDir() + "/" + name + ".wasm"
		if err := os.WriteFile(file, module, 0o600); err != nil {
			b.Fatal(err)
		}
		if err := x.install(b.Context(), file); err != nil {
			b.Fatal(err)
		}
		all[name] = x.last
	}
	return x, all
}

func (s *service) connect(b *testing.B, c store.Connector, id string, server *httptest.Server, pages int) {
	b.Helper()
	s.last = c
	config := fmt.Sprintf(`{"server": %q, "pages": %d}`, server.URL, pages)
	if _, err := s.do(b.Context(), command{Connect: id, Config: config, Host: server.URL}); err != nil {
		b.Fatal(err)
	}
}

func (s *service) begin(b *testing.B, id string) store.RunID {
	b.Helper()
	rec, err := s.StartRun(host.As(b.Context(), host.Principal{ID: "owner", Transport: "ui"}),
		host.StartRun{WorkflowID: id})
	if err != nil {
		b.Fatal(err)
	}
	return rec.ID
}

func (s *service) reaches(b *testing.B, id store.RunID, not string) state {
	b.Helper()
	st, err := s.await(b.Context(), id, not)
	if err != nil {
		b.Fatal(err)
	}
	return st
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkJournal is what a journal costs a run, beside the same run without, and what it costs a
// request of a connector that is resumable, before each of which is a commit.
func BenchmarkJournal(b *testing.B) {
	const pages = 400
	server := pagesOf(b, 20_000)
	s, connectors := benched(b, -1)
	for name, c := range connectors {
		s.connect(b, c, name, server, pages)
	}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for range 15 {
			for name := range connectors {
				from := time.Now()
				if st := s.reaches(b, s.begin(b, name), ""); st.Run.Status != "succeeded" {
					b.Fatalf("%s: %s", name, st.Run.Result)
				}
				took[name] = append(took[name], time.Since(from))
			}
		}
	}
	with, without := median(took["clerk"]), median(took["plain"])
	b.ReportMetric(float64(with.Milliseconds()), "ms/with")
	b.ReportMetric(float64(without.Milliseconds()), "ms/without")
	b.ReportMetric(100*(float64(with)/float64(without)-1), "%/more")
	b.ReportMetric(float64((median(took["resumable"])-without).Microseconds())/pages, "µs/request-resumable")
}

// BenchmarkAwake is how long an answer takes that wakes a run with 1 MB of journal, beside a
// start of the same module up to its first question.
func BenchmarkAwake(b *testing.B) {
	server := pagesOf(b, 260_000)
	s, connectors := benched(b, time.Millisecond)
	var woken, started []time.Duration
	for b.Loop() {
		for i := range 21 {
			id := fmt.Sprintf("c%d-%d", len(woken), i)
			s.connect(b, connectors["clerk"], id, server, 0)
			from := time.Now()
			run := s.begin(b, id)
			st := s.reaches(b, run, "")
			started = append(started, time.Since(from))
			for s.RunStats().Accepted > 0 {
				<-time.After(10 * time.Millisecond)
			}
			from = time.Now()
			if _, err := s.do(host.As(b.Context(), host.Principal{ID: "owner", Transport: "ui"}),
				command{Answer: run, Value: json.RawMessage(`{"answer": "x"}`)}); err != nil {
				b.Fatal(err)
			}
			woken = append(woken, time.Since(from))
			s.reaches(b, run, st.Open.Interrupt)
		}
	}
	b.ReportMetric(float64(median(woken).Milliseconds()), "ms/awake-p50")
	b.ReportMetric(float64(median(started).Milliseconds()), "ms/start-p50")
}

// BenchmarkAsleep is the memory of a host with a thousand runs that sleep, beside that with none and with as many that
// were cancelled since: what is left then is the store's and grows with what is written, up to its bounds.
func BenchmarkAsleep(b *testing.B) {
	const runs = 1000
	server := pagesOf(b, 1000)
	s, connectors := benched(b, time.Millisecond)
	memory := func() float64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse+m.StackInuse) / (1 << 20)
	}
	for b.Loop() {
		before, ids := memory(), make([]store.RunID, runs)
		for i := range runs {
			id := fmt.Sprintf("c%d", i)
			s.connect(b, connectors["clerk"], id, server, 0)
			ids[i] = s.begin(b, id)
			s.reaches(b, ids[i], "")
		}
		for s.RunStats().Accepted > 0 {
			<-time.After(10 * time.Millisecond)
		}
		b.ReportMetric(before, "MiB/none")
		b.ReportMetric(memory(), "MiB/asleep")
		for _, id := range ids {
			open := s.reaches(b, id, "").Open.Interrupt
			if _, err := s.do(b.Context(), command{Cancel: id}); err != nil {
				b.Fatal(err)
			}
			s.reaches(b, id, open)
		}
		b.ReportMetric(memory(), "MiB/cancelled")
	}
}
