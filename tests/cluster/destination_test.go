//go:build unix

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// A hook is a server that is sent batches, or events. It has the newest version of each key by
// connection, and how often it was told of each kind of event, by run.
type hook struct {
	mu   sync.Mutex // guards all below
	keys map[string]map[string]uint64
	door func() // passed before the next answer; nil for none
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var b struct {
		ConnectionID string
		Records      []struct {
			Key     string
			Version uint64
		}
		Type string
		Data struct{ RunID string }
	}
	if json.NewDecoder(r.Body).Decode(&b) != nil {
		return // the host was killed
	}
	if b.Data.RunID != "" {
		h.take(b.Data.RunID, b.Type, 1)
	}
	for _, r := range b.Records {
		h.take(b.ConnectionID, r.Key, r.Version)
	}
	h.mu.Lock()
	door := h.door
	h.door = nil
	h.mu.Unlock()
	if door != nil {
		door()
	}
}

func (h *hook) take(of, key string, version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys == nil {
		h.keys = map[string]map[string]uint64{}
	}
	if h.keys[of] == nil {
		h.keys[of] = map[string]uint64{}
	}
	h.keys[of][key] = max(version, h.keys[of][key])
}

// hold keeps the next request, which is taken, without an answer until pass is called.
func (h *hook) hold() (reached <-chan struct{}, pass func()) {
	here, on := make(chan struct{}), make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.door = func() { close(here); <-on }
	return here, sync.OnceFunc(func() { close(on) })
}

func (h *hook) count(of string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.keys[of])
}

// outlets are destinations of several kinds, and what they have.
type outlets struct {
	t      *testing.T
	server *postgres.Server
	name   string // of the database
	lines  string // directory
	file   string
	hook   *hook
	urls   map[string]string // by the name of the destination
}

func newOutlets(t *testing.T, server *postgres.Server) *outlets {
	t.Helper()
	database := server.Database(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	o := &outlets{t: t, server: server, name: strings.TrimPrefix(u.Path, "/"), lines: t.TempDir(),
		file: filepath.Join(t.TempDir(), "file.db"), hook: &hook{}}
	target := httptest.NewServer(o.hook)
	t.Cleanup(target.Close)
	o.urls = map[string]string{"rows": database, "lines": "jsonl:" + o.lines, "file": "sqlite:" + o.file,
		"hook": "webhook:" + target.URL + "/#a-secret-of-some-length-0123456789"}
	return o
}

func (o *outlets) add(m *member) {
	o.t.Helper()
	for name, url := range o.urls {
		m.do("POST", "/v1/destinations", host.NewDestination{Name: name, URL: url}, nil)
	}
}

func destinationAt(m *member, name string) (d host.Destination) {
	m.t.Helper()
	m.do("GET", "/v1/destinations/"+name, nil, &d)
	return d
}

// begun waits until a host has brought something into each of them.
func (o *outlets) begun(m *member, feeder string) {
	o.t.Helper()
	until(o.t, "the destinations have something", func() bool {
		for name := range o.urls {
			if d := destinationAt(m, name); d.HostID != feeder {
				o.t.Fatalf("%s is fed by %q", name, d.HostID)
			} else if len(d.Tables) == 0 {
				return false
			}
		}
		return true
	})
}

// fed waits until a host has brought all n records of a connection into each of them, and looks whether they are there
// once.
func (o *outlets) fed(m *member, connection string, n int) {
	o.t.Helper()
	for name := range o.urls {
		until(o.t, name+" is fed by the other host", func() bool {
			d := destinationAt(m, name)
			return d.HostID == m.id && d.SyncedAt != nil && d.Behind == 0 && d.Error == ""
		})
	}
	if got := o.server.Exec(o.t, o.name, "select count(*), count(distinct _key) from sluice."+connection+
		"_items"); got != fmt.Sprintf("%d|%d", n, n) {
		o.t.Errorf("the table has %s rows and keys of %d", got, n)
	}
	if rows, keys := o.countFile(connection + "_items"); rows != n || keys != n {
		o.t.Errorf("the file has %d rows and %d keys of %d", rows, keys, n)
	}
	paths, err := filepath.Glob(filepath.Join(o.lines, connection+"_items", "part-*"))
	if err != nil {
		o.t.Fatal(err)
	}
	lines := map[string]int{}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			o.t.Fatal(err)
		}
		for l := range strings.Lines(string(text)) {
			var row struct {
				Key string `json:"_key"`
			}
			if err := json.Unmarshal([]byte(l), &row); err != nil {
				o.t.Fatal(err)
			}
			lines[row.Key]++
		}
	}
	for key, times := range lines {
		if times != 1 {
			o.t.Errorf("%s is in the files %d times", key, times)
		}
	}
	if len(lines) != n || o.hook.count(connection) != n {
		o.t.Errorf("the files have %d, and the server was sent %d, of %d", len(lines), o.hook.count(connection), n)
	}
}

func (o *outlets) countFile(table string) (rows, keys int) {
	o.t.Helper()
	db, err := sqlite3.Open("file:" + o.file + "?mode=ro")
	if err != nil {
		o.t.Fatal(err)
	}
	defer db.Close()
	st, _, err := db.Prepare("SELECT count(*), count(DISTINCT _key) FROM " + table)
	if err != nil {
		o.t.Fatal(err)
	}
	defer st.Close()
	if st.Step() {
		rows, keys = st.ColumnInt(0), st.ColumnInt(1)
	}
	return rows, keys
}

// The host that feeds destinations is stopped in the middle of it, until another one has taken them over, and goes on:
// nothing is lost, there twice, or written by two.
func TestStoppedFeeder(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	c := start(t, server)
	c.lease, c.flags = 3*time.Second, []string{"--webhook-loopback"}
	c.add("a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	var steps []step
	const parts, each = 24, 400
	for range parts {
		steps = append(steps, step{"do": "emit", "n": each}, step{"do": "wait", "ms": 250})
	}
	a.connect("fed", steps...)
	o := newOutlets(t, server)
	o.add(a)
	id := b.begin("fed") // which goes on while a is stopped
	o.begun(b, a.id)
	a.signal(syscall.SIGSTOP)
	for name := range o.urls {
		until(t, name+" is taken over", func() bool { return destinationAt(b, name).HostID == b.id })
	}
	a.signal(syscall.SIGCONT)
	<-a.over
	if s := b.wait(id, served.Over); s.Status != timeline.Completed {
		t.Fatalf("the run is %s", s.Status)
	}
	o.fed(b, "fed", parts*each)
}

// The host that feeds destinations is killed in the middle of it: the other one goes on, and no row
// is lost or there twice. A host that is drained hands them over while it is there. Files are fed
// only where they are.
func TestDestinations(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	c := start(t, server)
	a, b := c.join("a", "--webhook-loopback"), c.join("b", "--webhook-loopback")
	a.install()
	var installed struct{ Data []host.Connector }
	a.do("GET", "/v1/connectors", nil, &installed)
	var seen host.Inspection
	// which b has not run
	b.do("POST", "/v1/connectors:inspect",
		map[string]any{"source": map[string]any{"type": "digest", "digest": installed.Data[0].ModuleDigest}}, &seen)
	if seen.Digest != installed.Data[0].ModuleDigest {
		t.Errorf("what another host installed is seen as %q", seen.Digest)
	}
	var steps []step
	const parts, each = 20, 400
	for range parts {
		steps = append(steps, step{"do": "emit", "n": each}, step{"do": "wait", "ms": 250})
	}
	a.connect("fed", steps...)
	o, other, at := newOutlets(t, server), filepath.Join(t.TempDir(), "gone"), destinationAt
	o.urls["lost"] = "csv:" + other
	o.add(a)
	id := b.begin("fed") // which outlives a
	o.begun(b, a.id)
	a.kill()
	if err := os.Rename(other, other+".elsewhere"); err != nil { // as a disk of the machine that is gone
		t.Fatal(err)
	}
	delete(o.urls, "lost")
	if s := b.wait(id, served.Over); s.Status != timeline.Completed {
		t.Fatalf("the run is %s", s.Status)
	}
	o.fed(b, "fed", parts*each)
	if d := at(b, "lost"); d.HostID != "" || !strings.Contains(d.Error, a.id) {
		t.Errorf("files that are elsewhere: %+v", d)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("another host made files of its own in the place of those that it does not see")
	}

	a = c.open("a", "--webhook-loopback")
	until(t, "the files are fed where they are", func() bool { return at(b, "lost").HostID == a.id })
	if d := at(a, "rows"); d.HostID != b.id {
		t.Errorf("a destination went back by itself to %q", d.HostID)
	}
	asked := func(name, verb string, body any) (d host.Destination) {
		t.Helper()
		a.do("POST", "/v1/destinations/"+name+":"+verb, body, &d)
		if d.HostID != b.id {
			t.Errorf("%s, asked of a host that does not feed it: it is fed by %q", verb, d.HostID)
		}
		return d
	}
	if d := asked("rows", "pause", map[string]any{}); !d.Paused || at(b, "rows").State != "paused" {
		t.Errorf("paused at another host: %+v", d)
	}
	if d := asked("rows", "resume", map[string]any{}); d.Paused {
		t.Errorf("resumed at another host: %+v", d)
	}
	asked("rows", "rebuild", map[string]any{})
	if d := asked("rows", "sync", map[string]any{}); d.Behind != 0 || d.Error != "" {
		t.Errorf("brought up to date at another host: %+v", d)
	}
	if d := asked("hook", "rotate",
		map[string]any{"secret": "another-of-some-length-0123456789"}); d.PreviousSecretUntil == nil {
		t.Errorf("another secret set at another host: %+v", d)
	}
	b.do("POST", "/v1/destinations", host.NewDestination{Name: "spare", URL: "csv:" + t.TempDir()}, nil)
	a.do("DELETE", "/v1/destinations/spare", nil, nil)
	if _, err := b.Do(soon(t), "GET", "/v1/destinations/spare", nil, nil); err == nil ||
		!strings.Contains(err.Error(), "not_found") {
		t.Errorf("removed at another host: %v", err)
	}
	if _, err := a.Do(soon(t), "POST", "/v1/destinations/lines:rotate", map[string]any{"secret": "x"}, nil); err == nil ||
		!strings.Contains(err.Error(), "nothing is signed") {
		t.Errorf("what its feeder refuses, asked of another host: %v", err)
	}
	a.do("POST", "/v1/hosts/"+b.id+"/drain", map[string]any{}, nil)
	a.connect("more", step{"do": "emit", "n": 7})
	a.wait(a.begin("more"), served.Over)
	o.fed(a, "more", 7)
	o.fed(a, "fed", parts*each)
}
