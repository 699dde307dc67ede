// Package corpus_test acts on pages that move, cover, lie, hang and re-render, in a
// real browser and through the binding as a run does, and compares each verdict with
// the truth that the page reported to its server.
package corpus_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// Most of the time is spent waiting for pages, so more pages run at once than there are
// processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "4")
	}
	os.Exit(m.Run())
}

// A hazard is a page, what to do on it, and what must come of that.
type hazard struct {
	name string
	body string
	// do are the requests, one on each line; all but the last succeed. "" is save.
	do string
	// want is "verified", or the failure's code and its detail.
	want  string
	truth truth
}

// The requests that most hazards are about. SAVE can have more members.
const (
	status = `{"selector":{"test_id":"status"}}`
	saved  = `"expect":{"kind":"text","target":` + status + `,"op":"equals","value":"Saved"}`
	save   = `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},` + saved + `}`
)

// also is the request save with further members.
func also(more string) string { return strings.TrimSuffix(save, "}") + "," + more + "}" }

// A bench is a session on the site.
type bench struct {
	*browsing.Session
	site *site
	name string // of the bench, in its keys
	n    int
}

func newHost(tb testing.TB) *browser.Host {
	tb.Helper()
	return browsing.Host(tb, browser.Options{ActionsPerMinute: 1e6, MaxSurfaces: 4})
}

func open(tb testing.TB, s *site, h *browser.Host, change func(*browser.SessionOptions)) *browsing.Session {
	tb.Helper()
	o := browser.SessionOptions{Request: abi.BrowserRequest{Downloads: true, Uploads: true}}
	if change != nil {
		change(&o)
	}
	session := browsing.Begin(tb, h, o, s.url, s.other)
	session.Must(browsing.M{"verb": "open"})
	return session
}

// request fills the addresses and the key of a visit into JSON.
func (b *bench) request(tb testing.TB, text, key string) browsing.M {
	tb.Helper()
	var m browsing.M
	if err := json.Unmarshal([]byte(strings.NewReplacer("SITE", b.site.url, "OTHER", b.site.other, "KEY",
		key).Replace(text)), &m); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return m
}

// visit loads a page for itself.
func (b *bench) visit(tb testing.TB, body string) (key string) {
	tb.Helper()
	b.n++
	key = fmt.Sprintf("%s%d", b.name, b.n)
	url := b.site.visit(key, strings.NewReplacer("SITE", b.site.url, "OTHER", b.site.other, "KEY", key).Replace(body))
	if r := b.Call(browsing.M{"verb": "navigate", "url": url}); r.State != "verified" {
		tb.Fatalf("navigate: %s", r.Raw)
	}
	return key
}

// try does what a hazard says and returns the last reply.
func (b *bench) try(tb testing.TB, h hazard) (browsing.Reply, string) {
	tb.Helper()
	key := b.visit(tb, h.body)
	do := h.do
	if do == "" {
		do = save
	}
	lines := strings.Split(strings.TrimSpace(do), "\n")
	for _, l := range lines[:len(lines)-1] {
		if r := b.Call(b.request(tb, l, key)); r.Errno != abi.OK || r.State == "failed" {
			tb.Fatalf("%s: %s", l, r.Raw)
		}
	}
	return b.Call(b.request(tb, lines[len(lines)-1], key)), key
}

// verdict returns a reply's result in the form that hazards use.
func verdict(r browsing.Reply) string {
	switch detail, _ := r.Detail.(string); {
	case r.Errno != abi.OK:
		return r.Refusal
	case r.State == "failed":
		return strings.TrimSpace(r.Code + " " + detail)
	default:
		return r.State
	}
}

// judged checks what every reply has: a failure its class and terminal object,
// a success its proof, and the order of states.
func judged(tb testing.TB, r browsing.Reply) {
	tb.Helper()
	if r.Errno != abi.OK {
		return
	}
	if r.State == "failed" &&
		(r.Terminal["failure_class"] == "" || r.Terminal["final_state"] != "failed" || r.Reason == "") {
		tb.Errorf("a failure without class or terminal object: %s", r.Raw)
	}
	if r.Success != (r.State == "verified") {
		tb.Errorf("success %v in state %s", r.Success, r.State)
	}
	if n := len(r.Transitions); n == 0 || r.Transitions[n-1].State != r.State {
		tb.Errorf("the last transition is not to state %s: %v", r.State, r.Transitions)
	}
}

// check compares a reply and the truth with what a hazard wants.
func (b *bench) check(t *testing.T, h hazard, r browsing.Reply, key string) {
	t.Helper()
	judged(t, r)
	raw := string(r.Raw)
	if len(raw) > 6000 {
		raw = raw[:6000]
	}
	if got := verdict(r); got != h.want {
		t.Errorf("verdict %q, want %q\n%s", got, h.want, raw)
	}
	got := b.site.told(key)
	if want := h.truth; want != nil && !maps.Equal(got, want) {
		t.Errorf("truth %v, want %v\n%s", got, want, raw)
	}
}

// TestCorpus: for each page the verdict is the truth. A soak takes all pages, other
// runs every third, and SLUICE_HAZARD selects one by name.
func TestCorpus(t *testing.T) {
	tables := map[string][]hazard{"lies": lies, "timing": timing, "layout": layout, "network": traffic, "dialogs": dialogs,
		"controls": controls, "frameworks": frameworks, "names": names, "places": places, "widgets": widgets}
	host, s := newHost(t), newSite(t)
	only, all := os.Getenv("SLUICE_HAZARD"), os.Getenv("SLUICE_CYCLES") != ""
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{open(t, s, host,
				func(o *browser.SessionOptions) { o.Connection, o.Name, o.Connector = name, name, "corpus" }), s, name, 0}

			for i, h := range table {
				if only != "" && only != h.name || only == "" && !all && i%3 != 0 {
					continue
				}
				t.Run(h.name, func(t *testing.T) {
					begun := time.Now()
					r, key := b.try(t, h)
					b.check(t, h, r, key)
					t.Logf("%s: %s in %s", h.name, verdict(r), time.Since(begun).Round(time.Millisecond))
				})
			}
		})
	}
}
