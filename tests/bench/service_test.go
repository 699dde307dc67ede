//go:build unix

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// service opens the whole service over an empty store, with the connector that does
// what its settings say.
func service(b *testing.B, dir string) *served.Host {
	b.Helper()
	return serviceOn(b, dir, "badger:"+dir)
}

// serviceOn opens the whole service over a store, with dir for what else it keeps.
func serviceOn(b *testing.B, dir, address string) *served.Host {
	b.Helper()
	o, err := served.Options(dir)
	if err != nil {
		b.Fatal(err)
	}
	o.Host.Store = address
	o.Service = app.ServiceOptions{Runs: 64, Accepted: 512, Grace: time.Millisecond}
	o.Streams, o.Server.PerAddress, o.Server.Connections = everybody(), 2*crowdOf, 2*crowdOf
	h, err := served.Open(o, dir)
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func emptyService(b *testing.B) (h *served.Host, dir string) {
	b.Helper()
	dir, err := served.TempDir()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	h = service(b, dir)
	installSteps(b, h)
	return h, dir
}

func installSteps(b *testing.B, h *served.Host) {
	b.Helper()
	wasm, err := build.Connector("tests/e2e/guest")
	if err == nil {
		_, err = h.Install(b.Context(), wasm)
	}
	if err != nil {
		b.Fatal(err)
	}
}

type step map[string]any

func connect(b *testing.B, h *served.Host, id string, list ...step) {
	b.Helper()
	if err := h.Connect(b.Context(), "steps", store.ConnectionID(id), map[string]any{"steps": list}); err != nil {
		b.Fatal(err)
	}
}

func startRun(b *testing.B, h *served.Host, workflow string) store.RunID {
	b.Helper()
	id, err := h.Start(b.Context(), workflow, "")
	if err != nil {
		b.Fatal(err)
	}
	return id
}

func waitFor(b *testing.B, h *served.Host, id store.RunID, right func(timeline.Snapshot) bool) timeline.Snapshot {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	s, err := h.Wait(ctx, id, right)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// percentiles reports p50 and p99 in milliseconds.
func percentiles(b *testing.B, name string, all []time.Duration) {
	b.Helper()
	slices.Sort(all)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(all[min(len(all)*p/100, len(all)-1)].Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, p))
	}
}

// BenchmarkEvent measures the time from a guest's message in the host to the frame in a client
// of the event stream, while 20 runs send messages: five times a second each, then as fast as
// they can, one after the other. Goals for the first: p50 5 ms, p99 25 ms.
func BenchmarkEvent(b *testing.B) {
	for b.Loop() {
		h, _ := emptyService(b)
		b.Cleanup(func() { h.Close() })
		tcp, err := h.TCP(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		var mu sync.Mutex // guards all
		var all []time.Duration
		var clients sync.WaitGroup
		for i := range 20 {
			id := fmt.Sprintf("talker%d", i)
			connect(b, h, id, step{"do": "wait", "ms": 2000}, step{"do": "stamp", "n": 50, "ms": 200})
			run := startRun(b, h, id)
			clients.Go(func() {
				took := stamped(b, tcp, run)
				mu.Lock()
				all = append(all, took...)
				mu.Unlock()
			})
		}
		clients.Wait()
		if len(all) < 20*50 {
			b.Fatalf("%d stamps came", len(all))
		}
		percentiles(b, "event", all)
	}
}

// stamped follows a run to its end, and returns how long its stamps took to come. The time is the
// host's: the clock of a guest with a journal is its own.
func stamped(b *testing.B, c *served.Client, run store.RunID) (all []time.Duration) {
	f, err := c.Stream(b.Context(), run, "?streamMode=debug", "")
	if err != nil {
		b.Error(err)
		return nil
	}
	defer f.Close()
	for {
		e, err := f.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				b.Error(err)
			}
			return all
		}
		if e.Event != string(timeline.OutputChunk) {
			continue
		}
		var d timeline.Doc
		if err := json.Unmarshal(e.Data, &d); err != nil {
			b.Error(err)
		}
		if sent, err := time.Parse(time.RFC3339Nano, d.Timestamp); err != nil {
			b.Error(err)
		} else {
			all = append(all, time.Since(sent))
		}
	}
}

// parkedRuns is the number of runs that wait at once.
const parkedRuns = 200

// BenchmarkParked lets 200 runs of real guests wait for their owner, and measures what
// each costs, host and workers: resident memory, with shared pages divided among their
// users (goal: less than 40 MB). They are answered in random order, and the host
// restarts in between. None is lost: answered runs are done, the others say why not.
func BenchmarkParked(b *testing.B) {
	for b.Loop() {
		h, dir := emptyService(b)
		idle := memory(b)
		var ids []store.RunID
		for i := range parkedRuns {
			id := fmt.Sprintf("parked%d", i)
			connect(b, h, id, step{"do": "emit"}, step{"do": "otp", "text": "Code?"})
		}
		began := time.Now()
		for i := range parkedRuns {
			ids = append(ids, startRun(b, h, fmt.Sprintf("parked%d", i)))
		}
		asked := map[store.RunID]timeline.Snapshot{}
		for _, id := range ids {
			if asked[id] = waitFor(b, h, id, served.Asks); asked[id].Interrupt == nil {
				b.Fatalf("%+v", asked[id].Error)
			}
		}
		b.ReportMetric(time.Since(began).Seconds(), "all-asking-s")
		busy := memory(b)
		perRun := func(after, before int64) float64 { return float64(after-before) / parkedRuns / 1024 }
		b.ReportMetric(perRun(busy.rss, idle.rss), "rss-MB/run")
		b.ReportMetric(perRun(busy.pss, idle.pss), "pss-MB/run")
		b.ReportMetric(perRun(busy.host, idle.host), "host-rss-MB/run")
		rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		var took []time.Duration
		for _, id := range ids[:parkedRuns/2] {
			from := time.Now()
			if err := h.Answer(b.Context(), asked[id], map[string]any{"answers": map[string]any{"code": "1"}}); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(from))
		}
		percentiles(b, "answer", took)
		for _, id := range ids[:parkedRuns/2] {
			waitFor(b, h, id, served.Over)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
		h = service(b, dir)
		for i, id := range ids {
			answered := i < parkedRuns/2
			end := served.Asks
			if answered {
				end = served.Over
			}
			if s := waitFor(b, h, id, end); answered != (s.Status == timeline.Completed) {
				b.Errorf("run %s, answered %v, is %s %+v", id, answered, s.Status, s.Error)
			}
		}
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	}
}

// used is memory in KiB: of the host alone, and of the host with its workers.
type used struct{ host, rss, pss int64 }

// memory reads how much memory this process, which is the host, and its children use.
func memory(b *testing.B) (u used) {
	b.Helper()
	var walk func(pid string)
	walk = func(pid string) {
		text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		if errors.Is(err, os.ErrNotExist) {
			return // it has ended
		}
		if err != nil {
			b.Skipf("SKIPPED: memory of other processes cannot be read: %v", err)
		}
		u.rss += field(text, "Rss:")
		u.pss += field(text, "Pss:")
		if pid == "self" {
			u.host = u.rss
		}
		lists, err := filepath.Glob("/proc/" + pid + "/task/*/children")
		if err != nil {
			b.Fatal(err)
		}
		for _, list := range lists {
			children, err := os.ReadFile(list)
			if err != nil {
				continue // a thread that has ended
			}
			for _, child := range strings.Fields(string(children)) {
				walk(child)
			}
		}
	}
	walk("self")
	return u
}

func field(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// BenchmarkRunPage measures the page of a run with 10,000 events, in the server and
// until Chromium has loaded it. Goal: 300 ms.
func BenchmarkRunPage(b *testing.B) {
	h, _ := emptyService(b)
	b.Cleanup(func() { h.Close() })
	connect(b, h, "long", step{"do": "stamp", "n": 10_000})
	id := startRun(b, h, "long")
	waitFor(b, h, id, served.Over)
	link, err := h.Server.LoginLink(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	base, token, _ := strings.Cut(link.PlainURL, "/ui/login#")
	pageOf := base + "/ui/runs/" + string(id)
	for b.Loop() {
		server, size := fromServer(b, base, token, pageOf)
		percentiles(b, "server", server)
		b.ReportMetric(float64(size)/1024, "page-KiB")
		link, err := h.Server.LoginLink(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		percentiles(b, "chromium", inChromium(b, link.PlainURL, pageOf))
	}
}

const looks = 20

func fromServer(b *testing.B, base, token, page string) (all []time.Duration, size int) {
	b.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	c := http.Client{Jar: jar}
	login, err := http.NewRequestWithContext(b.Context(), "POST", base+"/ui/session",
		strings.NewReader(fmt.Sprintf(`{"token":%q}`, token)))
	if err != nil {
		b.Fatal(err)
	}
	login.Header = http.Header{"Origin": {base}, "Content-Type": {"application/json"}}
	res, err := c.Do(login)
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	if u, err := url.Parse(base); err != nil || len(jar.Cookies(u)) == 0 {
		b.Fatalf("login: %s", res.Status)
	}
	for range looks {
		from := time.Now()
		res, err := c.Get(page)
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || !bytes.Contains(text, []byte("Timeline")) {
			b.Fatalf("%s %v", res.Status, err)
		}
		all, size = append(all, time.Since(from)), len(text)
	}
	return all, size
}

func inChromium(b *testing.B, login, page string) (all []time.Duration) {
	b.Helper()
	options := chromedp.DefaultExecAllocatorOptions[:]
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	alloc, stop := chromedp.NewExecAllocator(b.Context(), options...)
	defer stop()
	ctx, cancel := chromedp.NewContext(alloc)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(login), chromedp.WaitReady(chromedp.CSS("nav"))); err != nil {
		b.Fatal(err)
	}
	for range looks {
		if err := chromedp.Do(ctx, chromedp.Navigate(page), chromedp.WaitReady(chromedp.CSS("#events li"))); err != nil {
			b.Fatal(err)
		}
		ms, err := chromedp.Run(ctx,
			chromedp.Evaluate[float64](`performance.getEntriesByType("navigation")[0].loadEventEnd || performance.now()`))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, time.Duration(ms*float64(time.Millisecond)))
	}
	return all
}

// BenchmarkRecordPages reads pages of 100 out of a million records through the API, in
// order of version, of key, and by time. Goal: 50 ms. The first pages are reported
// separately, after the run and after a restart of the service: for any order but that
// of versions the store then walks the whole stream.
func BenchmarkRecordPages(b *testing.B) {
	n := records()
	h, dir := emptyService(b)
	connect(b, h, "many", step{"do": "emit", "n": n, "text": "a record of some length, as they are"})
	if s := waitFor(b, h, startRun(b, h, "many"), served.Over); s.Status != timeline.Completed {
		b.Fatalf("%+v", s.Error)
	}
	for b.Loop() {
		for _, order := range recordOrders {
			all := pagesOf(b, h, order, 100)
			b.ReportMetric(float64(all[0].Microseconds())/1000, "order="+order+"-first-ms")
			percentiles(b, "order="+order, all[1:])
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
		h = service(b, dir)
		pagesOf(b, h, "version", 1) // loads the connection
		for _, order := range recordOrders {
			all := pagesOf(b, h, order, 1)
			b.ReportMetric(float64(all[0].Microseconds())/1000, "order="+order+"-restarted-ms")
		}
	}
	if err := h.Close(); err != nil {
		b.Error(err)
	}
}

var recordOrders = []string{"version", "-version", "key", "-key", "time", "-time"}

// pagesOf reads pages one after the other and returns how long each took.
func pagesOf(b *testing.B, h *served.Host, order string, pages int) (all []time.Duration) {
	b.Helper()
	cursor := ""
	for range pages {
		var page struct {
			Data       []struct{ Key string }
			NextCursor *string
		}
		from := time.Now()
		if _, err := h.Do(b.Context(), "GET", "/v1/connections/many/streams/items/records?limit=100&order="+order+cursor, nil,
			&page); err != nil {
			b.Fatalf("%s: %v", order, err)
		}
		all = append(all, time.Since(from))
		if len(page.Data) != 100 || page.NextCursor == nil {
			b.Fatalf("%s: a page of %d", order, len(page.Data))
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
	return all
}
