package browsing_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// floods are requests that a guest can make as fast as it likes, and how each is
// refused.
var floods = []struct{ request, refusal string }{
	{`{`, "invalid_request"}, {`{"verb":"x"}`, "unknown_verb"},
	{`{"verb":"click","target":{"selector":{}}}`, "INVALID_SELECTOR"}, {`{"verb":"open"}`, "surface_already_open"},
	{`{"verb":"click","action_type":"local_state"}`, "invalid_request"},
	{`{"verb":"fill","target":{"selector":{"id":"b"}},"value":{"sealed":"sluice-sealed-v1-none"}}`, "rate_limited"},
	{`{"verb":"mark","phase":"again"}`, ""}, {`{"verb":"snapshot"}`, ""},
	{`{"verb":"extract","items":[{"name":"l","take":"links"}]}`, ""},
	{`{"verb":"cookies","to":"network","hosts":["` + strings.Repeat(`a.test","`, 60) + `b.test"]}`, ""},
	{`{"verb":"hover","target":{"selector":{"id":"b"}}}`, "rate_limited"},
	{`{"verb":"snapshot","query":"` + strings.Repeat("x", 300<<10) + `"}`, "invalid_request"},
}

// A guest that calls as fast as it can, several thousand times and several
// at once, gets an answer to each, acts no more often than it may, and leaves the host
// as it was: no memory, no goroutines, and a browser that works.
func TestCallFlood(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "<!doctype html><button id=b>x</button>")
	}))
	defer site.Close()
	const most = 20 // actions in a minute
	h := browsing.Host(t, browser.Options{ActionsPerMinute: most})
	s := browsing.Begin(t, h, browser.SessionOptions{}, site.URL)
	s.Must(browsing.M{"verb": "open", "url": site.URL})
	for range most { // the rate is used up
		s.Call(browsing.M{"verb": "hover", "target": browsing.Selector("id", "b")})
	}
	heap, goroutines := settledHeap(), runtime.NumGoroutine()
	begun, calls := time.Now(), 0
	for time.Since(begun) < 3*time.Second || calls < 4000 && time.Since(begun) < time.Minute {
		f := floods[calls%len(floods)]
		if calls%50 == 49 {
			together(t, s, f.request)
		}
		raw, errno := s.Handle(t.Context(), abi.CallBrowser, []byte(f.request))
		var r struct{ Code string }
		decode(t, raw, &r)
		if r.Code != f.refusal || (errno == abi.OK) != (f.refusal == "") {
			t.Fatalf("call %d: %.80s: %s %.200s", calls, f.request, errno, raw)
		}
		calls++
	}
	t.Logf("%d calls, %.0f a second", calls, float64(calls)/time.Since(begun).Seconds())
	for end := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > goroutines+2 && time.Now().Before(end); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > goroutines+2 {
		t.Errorf("%d goroutines before, %d after", goroutines, n)
	}
	events := len(s.Run.Events("")) // which the run bounds, and this test keeps
	if grown := settledHeap() - heap - int64(events)*1024; grown > 16<<20 {
		t.Errorf("the host keeps %d MiB of it", grown>>20)
	}
	if r := s.Must(browsing.M{"verb": "extract",
		"items": []browsing.M{{"name": "b", "take": "text",
			"target": browsing.Selector("id", "b")}}}); string(r.Items["b"]) != `"x"` {
		t.Errorf("afterwards: %s", r.Raw)
	}
}

// together makes one call several times at once; one of them is served at a time.
func together(t *testing.T, s *browsing.Session, request string) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			raw, errno := s.Handle(ctx, abi.CallBrowser, []byte(request))
			if ctx.Err() != nil || len(raw) == 0 {
				t.Errorf("%.80s: %s %.200s", request, errno, raw)
			}
		})
	}
	all.Wait()
}

func settledHeap() int64 {
	runtime.GC()
	runtime.GC() // what was pooled goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) // #nosec G115 -- of a test
}
