package chromium

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Verdicts of denials that are not a step of the policy's: those are named
// host_denied, scheme_denied, port_denied and address_denied.
const (
	VerdictServerName = "server_name_denied" // TLS for another host than the tunnel
	VerdictProtocol   = "protocol_denied"    // neither TLS nor a WebSocket
	VerdictTunnels    = "tunnel_limit"
	VerdictBytes      = "byte_limit"
)

// mergeTime is how long denials of one place wait for each other, mostLines how
// many of a run are told.
const (
	mergeTime = 5 * time.Second
	mostLines = 200
)

// mostPlaces are remembered with their verdicts.
const mostPlaces = 256

// A Denial is what a browser was refused: run.browser_egress_denied. Host is canonical,
// or "" when it was not the name of a host.
type Denial struct {
	Host    string
	Port    uint16
	Verdict string
	Count   int
}

// counters are how many decisions a gate made in its life; they are for tests.
type counters struct{ allowed, denied atomic.Int64 }

// Verdict is why the run's browser was last denied a place, "" if it was not: what it
// saw of a denied tunnel says nothing of that. The host is canonical. Only the newest
// 256 places are known.
func (g *Gate) Verdict(host string, port uint16) string {
	return g.now.Load().denials.last(destination{host, port})
}

func (g *Gate) denied(b *bound, host string, port uint16, verdict string) {
	g.count.denied.Add(1)
	b.denials.add(Denial{host, port, verdict, 1})
}

// denials are merged per host, port and verdict.
type denials struct {
	told func(Denial)

	mu      sync.Mutex    // guards what follows, and told
	left    int           // lines
	places  []destination // the newest last
	verdict map[destination]string
	pending map[Denial]int
	timer   *time.Timer
	closed  bool
}

// add is bounded: a place that would be told only after the last line is not kept.
func (d *denials) add(one Denial) {
	key := Denial{one.Host, one.Port, one.Verdict, 0}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remember(destination{one.Host, one.Port}, one.Verdict)
	if d.told == nil || d.closed {
		return
	}
	if d.pending[key] == 0 && len(d.pending) >= d.left {
		return
	}
	if d.pending == nil {
		d.pending = map[Denial]int{}
		d.timer = time.AfterFunc(mergeTime, d.flush)
	}
	d.pending[key]++
}

// remember is called with mu held.
func (d *denials) remember(p destination, verdict string) {
	if _, known := d.verdict[p]; !known {
		if len(d.places) == mostPlaces {
			delete(d.verdict, d.places[0])
			d.places = d.places[1:]
		}
		d.places = append(d.places, p)
	}
	if d.verdict == nil {
		d.verdict = map[destination]string{}
	}
	d.verdict[p] = verdict
}

func (d *denials) last(p destination) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.verdict[p]
}

func (d *denials) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(d.pending), func(a, b Denial) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Verdict, b.Verdict))
	})
	for _, k := range keys {
		d.left--
		d.told(Denial{k.Host, k.Port, k.Verdict, d.pending[k]})
	}
	d.pending = nil
}

// close tells what is pending. Nothing is told after it.
func (d *denials) close() {
	d.mu.Lock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.closed = true
	d.mu.Unlock()
	d.flush()
}

// answerTime is how long a browser may take to read such an answer.
const answerTime = 10 * time.Second

// The answers of the proxy itself. They are static, since a page of plain http
// shows them under the origin it asked for, and nothing runs in them.
const (
	blockedPage     = "<!doctype html><title>Blocked</title><p>This address is not in the connection's network policy."
	unreachablePage = "<!doctype html><title>Unreachable</title><p>The server could not be reached."
	malformedPage   = "<!doctype html><title>Refused</title><p>This is not a request for a proxy."
)

// mark is the header that tells a denial from a server's 403. Answers of servers
// are stripped of it.
const mark = "Sluice-Egress"

// blocked denies a request.
func blocked(w http.ResponseWriter) {
	w.Header().Set(mark, "denied")
	answer(w, http.StatusForbidden, blockedPage)
}

// unreachable is for servers that do not answer, and for those that answer what
// no proxy passes on.
func unreachable(w http.ResponseWriter) { answer(w, http.StatusBadGateway, unreachablePage) }

// malformed ends the connection: what else is in it cannot be trusted to be a
// request.
func malformed(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	answer(w, http.StatusBadRequest, malformedPage)
}

func answer(w http.ResponseWriter, status int, page string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // the write says if it is not to be
	w.WriteHeader(status)
	_, _ = w.Write([]byte(page)) // to a browser that may be gone
}
