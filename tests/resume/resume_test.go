//go:build unix

// Package resume kills and stops hosts whose runs wait for their owner, or are being resumed, and
// looks from outside: at the server that the connectors talk to, at what is stored, and at every
// byte on the disk.
package resume

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/postgres"
)

// What is nowhere on the disk.
const (
	plantedCookie = "zebra-cookie-41f7a0"
	plantedCode   = "quagga-code-77b1e2"
	plantedBody   = "okapi-body-90c3d5" // in an answer that the guest keeps to itself
)

// A witness is the server that connectors talk to: it counts.
type witness struct {
	*httptest.Server
	slow bool // so that hosts end while they wait for its answers
	mu   sync.Mutex
	seen map[string][]string // nonces by run and path
	n    int
}

func newWitness(t *testing.T) *witness {
	w := &witness{seen: map[string][]string{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if w.slow {
		<-time.After(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[r.URL.Path] = append(w.seen[r.URL.Path], r.URL.Query().Get("nonce"))
	w.n++
	c, err := r.Cookie("sid")
	switch last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; {
	case last == "login":
		http.SetCookie(out, &http.Cookie{Name: "sid", Value: plantedCookie, Path: "/", MaxAge: 3600})
	case err != nil || c.Value != plantedCookie:
		http.Error(out, "no session", http.StatusForbidden)
		return
	case last == "code" && r.Header.Get("X-Word") != plantedCode:
		http.Error(out, "wrong code", http.StatusForbidden)
		return
	}
	out.Header().Set("X-Private", plantedBody)
	fmt.Fprintf(out, "answer %d", w.n)
}

// check compares what a run stored with what was asked of the server: everything once, and all of it if the run
// succeeded. Of what the connector was told that the answer was lost of, the server may have got the request.
func (w *witness) check(t *testing.T, st store.Store, connection string, paths []string, whole bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, seen := range w.seen {
		if strings.HasPrefix(path, "/"+connection+"/") && len(seen) > 1 {
			t.Errorf("%s was asked for %d times", path, len(seen))
		}
	}
	page, err := st.Records(t.Context(),
		store.RecordQuery{Connection: store.ConnectionID(connection), Stream: "items", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for _, r := range page.Records {
		var item struct{ ID, Nonce, Text string }
		if err := json.Unmarshal(r.Data, &item); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(item.ID, "/login") {
			stored++
		}
		seen := w.seen["/"+connection+"/"+item.ID]
		if item.Text == "lost" {
			if len(seen) > 1 || len(seen) == 1 && seen[0] != item.Nonce {
				t.Errorf("%s: %s was lost with %s, and was asked for with %v", connection, item.ID, item.Nonce, seen)
			}
			continue
		}
		if len(seen) != 1 || seen[0] != item.Nonce {
			t.Errorf("%s: %s is stored with %s, and was asked for with %v", connection, item.ID, item.Nonce, seen)
		}
	}
	if stored > len(paths) || whole && stored != len(paths) {
		t.Errorf("%s: %d records, want %d", connection, stored, len(paths))
	}
	if page.Version != uint64(len(page.Records)) {
		t.Errorf("%s: %d records, stored %d times", connection, len(page.Records), page.Version)
	}
}

var paths = map[string][]string{
	"clerk":   {"login", "a/0", "a/1", "a/2", "season", "b/0", "b/1", "code", "c/0", "c/1"},
	"teller":  {"login", "a/0", "season", "b/0", "code", "c/0"},
	"cashier": {"login", "a/0", "season", "b/0", "code", "c/0"},
}

// guests are the connectors of this package, by what they are made from.
var guests = map[string][]string{"Go": {"clerk", "teller"}, "C": {"cashier"}}

// TestStopped stops a host while a run waits, whose connector is at its input by then: it is asked on
// under the next one, and goes on.
func TestStopped(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	url, w := "badger:"+dir, newWitness(t)
	p := begin(t, url)
	p.must(command{Install: resumable(t, "teller")})
	config, _ := json.Marshal(map[string]string{"server": w.URL + "/one"})
	p.must(command{Connect: "one", Config: string(config), Host: w.URL})
	id := p.must(command{Start: "one"}).Run.ID
	asked := ""
	for _, answer := range []string{`{"answer": "autumn"}`, `{"code": "` + plantedCode + `"}`} {
		open := p.must(command{Await: id, Not: asked}).Open
		p.stop()
		p = begin(t, url)
		p.must(command{Answer: id, Value: json.RawMessage(answer)})
		asked = open.Interrupt
	}
	if r := p.must(command{Await: id, Not: asked}).Run; r.Status != "succeeded" {
		t.Errorf("it ended %s: %s", r.Status, r.Result)
	}
	p.stop()
}

// TestLostTwice kills a host while a request is on its way, and the next ones just behind: the
// connector is told once that its answer is lost, and its run goes on from that.
func TestLostTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, w := "badger:"+dir, newWitness(t)
	asked := make(chan struct{}, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/a/0") {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.ServeHTTP(out, r)
	}))
	t.Cleanup(slow.Close)
	p := begin(t, url)
	p.must(command{Install: resumable(t, "clerk")})
	config, _ := json.Marshal(map[string]string{"server": slow.URL + "/one"})
	p.must(command{Connect: "one", Config: string(config), Host: slow.URL})
	id := p.must(command{Start: "one"}).Run.ID
	<-asked
	question := ""
	for _, answer := range []string{`{"answer": "autumn"}`, `{"code": "` + plantedCode + `"}`} {
		p.kill()
		p = begin(t, url)
		first := p.must(command{Await: id, Not: question})
		p.kill()
		p = begin(t, url)
		if first.Open == nil {
			t.Fatalf("it ended %s: %s", first.Run.Status, first.Run.Result)
		}
		question = first.Open.Interrupt
		p.must(command{Answer: id, Value: json.RawMessage(answer)})
	}
	if r := p.must(command{Await: id, Not: question}).Run; r.Status != "succeeded" {
		t.Errorf("it ended %s: %s", r.Status, r.Result)
	}
	p.stop()
	if len(asked) > 0 {
		t.Error("it was asked for again")
	}
}

// computing begins a host, and a run of a resumable connector that makes no more calls.
func computing(t *testing.T, url string) (*process, store.RunID) {
	t.Helper()
	p, w := begin(t, url), newWitness(t)
	p.must(command{Install: resumable(t, "clerk")})
	p.must(command{Connect: "one", Config: fmt.Sprintf(`{"server": %q, "pages": 1, "computes": true}`, w.URL+"/one"),
		Host: w.URL})
	id := p.must(command{Start: "one"}).Run.ID
	p.must(command{Until: id, Event: "run.state_staged"})
	return p, id
}

// TestPausedEnds kills a host while a run is paused that is resumable else: it ends, and its result
// says why.
func TestPausedEnds(t *testing.T) {
	t.Parallel()
	url := "badger:" + t.TempDir()
	p, id := computing(t, url)
	p.must(command{Pause: id})
	p.must(command{Until: id, Event: "run.paused"})
	p.kill()
	p = begin(t, url)
	r := p.must(command{Await: id}).Run
	if reasonOf(r) != "controller_restarted" || r.HostBound != "it is paused" ||
		!strings.Contains(string(r.Result), r.HostBound) {
		t.Errorf("it ended %s, %q: %s", r.Status, r.HostBound, r.Result)
	}
	p.stop()
}

// TestJournalLength looks how long journals are: they have what servers answered once, little for
// every call beside, and nothing is left of them at the end.
func TestJournalLength(t *testing.T) {
	t.Parallel()
	const body = 100 << 10
	w := newWitness(t)
	var requests atomic.Int64
	long := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.ServeHTTP(out, r)
		_, _ = out.Write(bytes.Repeat([]byte{'x'}, body))
	}))
	t.Cleanup(long.Close)
	p := begin(t, "badger:"+t.TempDir())
	for name, module := range map[string]string{"waits": connector(t, "clerk"), "resumable": resumable(t, "clerk")} {
		requests.Store(0)
		p.must(command{Install: module})
		config, _ := json.Marshal(map[string]string{"server": long.URL + "/" + name})
		p.must(command{Connect: name, Config: string(config), Host: long.URL})
		id := p.must(command{Start: name}).Run.ID
		question := ""
		for _, answer := range []string{`{"answer": "autumn"}`, `{"code": "` + plantedCode + `"}`} {
			st := p.must(command{Await: id, Not: question})
			total, asked := 0, int(requests.Load())
			for _, n := range st.Pieces {
				total += n
			}
			if least, most := asked*body, asked*body*102/100+asked*4096+16<<10; total < least || total > most {
				t.Errorf("%s: %d bytes after %d requests, want %d to %d", name, total, asked, least, most)
			}
			question = st.Open.Interrupt
			p.must(command{Answer: id, Value: json.RawMessage(answer)})
		}
		if st := p.must(command{Await: id, Not: question}); st.Run.Status != "succeeded" || len(st.Pieces) > 0 {
			t.Errorf("%s ended %s with %d pieces: %s", name, st.Run.Status, len(st.Pieces), st.Run.Result)
		}
	}
	p.stop()
}

// TestCancelsComputing kills a host while a guest computes that makes no more calls: under the next
// one it is resumed all the same, and hears that it is cancelled.
func TestCancelsComputing(t *testing.T) {
	t.Parallel()
	url := "badger:" + t.TempDir()
	p, id := computing(t, url)
	p.kill()
	p = begin(t, url)
	p.must(command{Until: id, Event: "run.resumed"})
	p.must(command{Cancel: id})
	if r := p.must(command{Await: id}).Run; r.Status != "cancelled" {
		t.Errorf("it ended %s: %s", r.Status, r.Result)
	}
	p.stop()
}

var stores = map[string]func(t *testing.T, dir string) string{
	"badger":   func(_ *testing.T, dir string) string { return "badger:" + dir },
	"postgres": func(t *testing.T, dir string) string { return withData(postgres.New(t), dir) },
}

func withData(url, dir string) string {
	if strings.Contains(url, "?") {
		return url + "&durability=weak&data=" + dir
	}
	return url + "?durability=weak&data=" + dir
}
