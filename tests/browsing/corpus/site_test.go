package corpus_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A site serves the pages and knows the truth: what a page reported, under the key of
// the visit. A page reports in the very handler that does the thing, and waits for the
// answer, so that the server knows of it before the page shows it.
type site struct {
	url, other string // the same pages on another host

	mu     sync.Mutex // guards what follows
	truths map[string]truth
	bodies map[string]string // of visits to pages that are made for one visit
}

// A truth is how often each thing was reported (int), or the value reported last
// (string).
type truth map[string]any

// frame surrounds each page. tell reports to the server while everything else waits;
// say writes into the status that most expectations are about.
const frame = `<!doctype html><meta charset=utf-8><title>%s</title><style>body{margin:20px;font:16px sans-serif}
button,.box{min-width:120px;height:32px}</style><script>
const key=%q,other=%q;var $=s=>document.querySelector(s),say=t=>$("#status").textContent=t;
var tell=(n,v)=>{const x=new XMLHttpRequest;x.open("POST","/tell?key="+key+"&n="+n,false);x.send(v===undefined?"":JSON.stringify(String(v)))};
var done=()=>{tell("saved");say("Saved")};
</script><p id=status data-testid=status role=status>idle</p>
%s`

func newSite(tb testing.TB) *site {
	tb.Helper()
	s := &site{truths: map[string]truth{}, bodies: map[string]string{}}
	for _, c := range []struct {
		at  string
		url *string
	}{{"127.0.0.1:0", &s.url}, {"127.0.0.2:0", &s.other}} {
		l, err := net.Listen("tcp", c.at)
		if err != nil {
			tb.Fatal(err)
		}
		h := &httptest.Server{Listener: l, Config: &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}} // #nosec G112 -- it has one
		h.Start()
		tb.Cleanup(func() { h.CloseClientConnections(); h.Close() })
		*c.url = h.URL
	}
	return s
}

// visit returns the address of a page with a body, for one visit.
func (s *site) visit(key, body string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies[key], s.truths[key] = body, truth{}
	return s.url + "/page/" + key
}

// told returns the truth of a visit so far.
func (s *site) told(key string) truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := truth{}
	for k, v := range s.truths[key] {
		out[k] = v
	}
	return out
}

// count counts a report of a visit, and keeps its value if it has one.
func (s *site) count(key, name string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.truths[key]
	if t == nil {
		return
	}
	var value string
	if json.Unmarshal(body, &value) == nil {
		t[name] = value
		return
	}
	n, _ := t[name].(int)
	t[name] = n + 1
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	kind, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	after, _ := time.ParseDuration(r.URL.Query().Get("after"))
	switch kind {
	case "tell":
		s.count(r.URL.Query().Get("key"), r.URL.Query().Get("n"), body)
	case "page":
		s.mu.Lock()
		content, ok := s.bodies[key]
		s.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, frame, key, key, s.other, content)
	case "post": // a form that arrives, and is answered later
		if r.Method == http.MethodPost {
			s.count(key, "posted", nil)
		}
		pause(r, after)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><title>done</title><p data-testid=status>Saved</p>`)
	case "moves": // one that is answered with another address
		if r.Method == http.MethodPost {
			s.count(key, "posted", nil)
		}
		pause(r, after)
		http.Redirect(w, r, "/post/"+key+"?after="+r.URL.Query().Get("after"), http.StatusSeeOther)
	case "lost": // one that arrives, and whose answer is lost
		s.count(key, "posted", nil)
		pause(r, after)
		panic(http.ErrAbortHandler)
	case "fails":
		s.count(key, "posted", nil)
		pause(r, after)
		http.Error(w, "no", http.StatusInternalServerError)
	case "never":
		s.count(key, "asked", nil)
		<-r.Context().Done()
	case "loop":
		http.Redirect(w, r, "/loop/"+key+"?x="+fmt.Sprint(time.Now().UnixNano()), http.StatusFound)
	case "file":
		s.count(key, "fetched", nil)
		w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
		_, _ = io.WriteString(w, "a,b\n1,2\n")
	case "inner":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, frame, "inner", key, s.other, `<button onclick="done()">Save</button>`)
	default:
		http.NotFound(w, r)
	}
}

// pause waits like a slow server, unless the client has gone.
func pause(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}
