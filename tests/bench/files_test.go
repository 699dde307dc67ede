//go:build unix

package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/store"
)

// BenchmarkFiles has an answer of 200 MB kept as a file, beside a copy of it to a synced file
// by net/http and io.Copy; and records that hold a file of 200 bytes each, beside records
// with as much text. All take turns, and medians of three are reported, a second and a second
// of the host's CPU time. Goals: 0.7 times the copy; as many records of a second of CPU time
// into a store with many small files as into an empty one.
func BenchmarkFiles(b *testing.B) {
	const size = 200 << 20
	small := records() / 20
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, 1<<20)
		for i := range size / len(piece) {
			copy(piece, r.URL.Path+fmt.Sprint(i)) // no two are one content
			_, _ = w.Write(piece)
		}
	}))
	b.Cleanup(s.Close)
	for b.Loop() {
		h, err := app.Open(context.Background(), app.Options{
			Store: "badger:" + b.TempDir(), CacheDir: os.Getenv("SLUICE_CACHE"),
			RateLimit: egress.RateLimit{PerSecond: 1e6, Burst: 1e6, AtOnce: 16, LongestStop: time.Minute},
		})
		if err != nil {
			b.Fatal(err)
		}
		l := loaded(b, h, "fetch")
		collect := func(n int64, config string, args ...any) time.Duration {
			r, err := h.Start(context.Background(),
				app.RunRequest{Connector: l, Approved: store.Approved{Hosts: []string{s.URL}},
					Config: fmt.Appendf(nil, config, args...)})
			if err != nil {
				b.Fatal(err)
			}
			took, _ := finish(b, r, n)
			return took
		}
		large := func(url string) time.Duration {
			return collect(1, `{"url":%q,"attach":true,"max_bytes":%d}`, url, size)
		}
		collect(1, `{"small":1}`) // warm
		seen := map[string][]float64{}
		note := func(name string, figure float64) { seen[name] = append(seen[name], figure) }
		first := 1
		several := func(config string) func() time.Duration {
			return func() time.Duration {
				defer func() { first += small }()
				return collect(int64(small), config, small, first)
			}
		}
		for turn := range 3 {
			took, cpu := timed(b, func() time.Duration { return copied(b, s.URL+fmt.Sprint("/copy", turn)) })
			note("copy-MB/s", size/1e6/took.Seconds())
			note("copy-MB/cpu-s", size/1e6/cpu.Seconds())
			start := collect(1, `{"small":1,"first":%d}`, first)
			first++
			took, cpu = timed(b, func() time.Duration { return large(s.URL + fmt.Sprint("/", turn)) })
			note("attached-MB/s", size/1e6/(took-start).Seconds())
			note("attached-MB/cpu-s", size/1e6/cpu.Seconds())
			took, cpu = timed(b, several(`{"small":%d,"first":%d,"inline":true}`))
			note("text-rec/s", rate(small, took))
			note("text-rec/cpu-s", rate(small, cpu))
			took, cpu = timed(b, several(`{"small":%d,"first":%d}`))
			note("files-rec/s", rate(small, took))
			note("files-rec/cpu-s", rate(small, cpu))
		}
		note("files-last/first", seen["files-rec/cpu-s"][2]/seen["files-rec/cpu-s"][0])
		for name, figures := range seen {
			b.ReportMetric(median(figures), name)
		}
		b.ReportMetric(median(seen["attached-MB/s"])/median(seen["copy-MB/s"]), "attached/copy")
		b.ReportMetric(float64(peakRSS(b))/1e6, "host-peak-MB")
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	}
}

// timed returns what f says that it took, and the CPU time of the host meanwhile.
func timed(b *testing.B, f func() time.Duration) (took, cpu time.Duration) {
	before := cpuTime(b)
	took = f()
	return took, cpuTime(b) - before
}

// copied fetches a URL into a file, and has it synced.
func copied(b *testing.B, url string) time.Duration {
	b.Helper()
	began := time.Now()
	resp, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	f, err := os.Create(filepath.Join(b.TempDir(), "copy"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, resp.Body); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}
