package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
)

// listen serves run over loopback as the dashboard does; left gets a value for
// every stream that has ended.
func listen(tb testing.TB, h *stream.Hub, left chan<- struct{}) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	srv := &fasthttp.Server{
		ReadTimeout: 60 * time.Second, IdleTimeout: 60 * time.Second, ReadBufferSize: 16 << 10, StreamRequestBody: true,
		Concurrency: 20_000, // its default is plenty, but it allocates with it
		Handler: func(ctx *fasthttp.RequestCtx) {
			s, err := h.Subscribe(ctx, stream.Client{}, stream.Query{Run: run, Modes: timeline.Debug})
			if err != nil {
				ctx.Error(err.Error(), fasthttp.StatusTooManyRequests)
				return
			}
			conn := ctx.Conn()
			ctx.SetContentType(stream.ContentType)
			ctx.SetConnectionClose()
			ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
				s.Serve(w, conn)
				left <- struct{}{}
			})
		},
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	tb.Cleanup(func() {
		h.Close() // first, or shutting down would wait for every stream
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := srv.ShutdownWithContext(ctx); err != nil {
			tb.Error("shutdown:", err)
		}
		<-served
	})
	return l.Addr().String()
}

func many(m *memory) *stream.Hub {
	return stream.New(m, stream.Options{PerRun: 1 << 20, PerKey: 1 << 20, Total: 1 << 20})
}

// TestCrowd, over a real server: one event to all, and clients that are gone are
// noticed without anything being written to them.
func TestCrowd(t *testing.T) {
	const n = 300
	m := newMemory(run)
	h := many(m)
	left := make(chan struct{}, n)
	c := gather(t, listen(t, h, left), n)
	from := time.Now()
	m.commit(run, ev{"run.started", ""})
	t.Logf("one event to %d clients in %v", n, c.all(t).Sub(from))
	c.leave()
	from = time.Now()
	late := time.After(time.Minute)
	for i := range n {
		select {
		case <-left:
		case <-late:
			t.Fatalf("%d of %d clients were not missed", n-i, n)
		}
	}
	t.Logf("%d clients missed in %v", n, time.Since(from))
	if h.Clients() != 0 {
		t.Errorf("%d clients are left", h.Clients())
	}
}

// resident is what the process holds of the system's memory.
func resident() uint64 {
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Sys - s.HeapReleased
}

// BenchmarkIdleClients measures memory of a client that waits, with everything
// the server holds for it, and how fast it is missed.
func BenchmarkIdleClients(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				h := many(newMemory(run))
				left := make(chan struct{}, n)
				addr := listen(b, h, left)
				before := resident()
				c := gather(b, addr, n)
				used := resident() - before
				c.leave()
				from := time.Now()
				for range n {
					<-left
				}
				b.ReportMetric(float64(used)/float64(n), "bytes/client")
				b.ReportMetric(float64(used)/(1<<20), "MiB")
				b.ReportMetric(float64(time.Since(from).Microseconds())/1000, "ms-to-miss")
			}
		})
	}
}

// BenchmarkFanOut measures the time from a commit to the last of all clients of
// a run having its frame.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := newMemory(run)
			c := gather(b, listen(b, many(m), make(chan struct{}, n)), n)
			var sum, worst time.Duration
			rounds := 0
			for b.Loop() {
				from := time.Now()
				m.commit(run, ev{"log.appended", `{"level":"info","message":"hello"}`})
				took := c.all(b).Sub(from)
				sum, worst, rounds = sum+took, max(worst, took), rounds+1
			}
			b.ReportMetric(float64(sum.Microseconds())/1000/float64(rounds), "ms/event")
			b.ReportMetric(float64(worst.Microseconds())/1000, "ms-worst")
		})
	}
}
