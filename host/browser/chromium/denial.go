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

// Verdicts of the gate itself. Those of the network policy are host_denied, scheme_denied,
// port_denied and address_denied.
const (
	VerdictServerName = "server_name_denied" // TLS for another host than the tunnel
	VerdictProtocol   = "protocol_denied"    // neither TLS nor a WebSocket
	VerdictTunnels    = "tunnel_limit"
	VerdictBytes      = "byte_limit"
)

// mergeTime is how long denials of one place are collected before they are reported; mostLines
// bounds the reports of a run.
const (
	mergeTime = 5 * time.Second
	mostLines = 200
)

// mostPlaces bounds the places whose verdicts are remembered.
const mostPlaces = 256

// A Denial is a connection that a browser was refused, reported as run.browser_egress_denied. Host
// is canonical, or "" if it was not a host name.
type Denial struct {
	Host    string
	Port    uint16
	Verdict string
	Count   int
}

// counters count the decisions of a gate, for tests.
type counters struct{ allowed, denied atomic.Int64 }

// Verdict returns why the run's browser was last denied a place, or "" if it was not; the browser
// itself cannot tell a denied tunnel from another failure. The host is canonical. Only the newest
// 256 places are remembered.
func (g *Gate) Verdict(host string, port uint16) string {
	return g.now.Load().denials.last(destination{host, port})
}

func (g *Gate) denied(b *bound, host string, port uint16, verdict string) {
	g.count.denied.Add(1)
	b.denials.add(Denial{host, port, verdict, 1})
}

// denials merges denials by host, port and verdict.
type denials struct {
	told func(Denial)

	mu      sync.Mutex    // guards the fields below and calls of told
	left    int           // reports left
	places  []destination // newest last
	verdict map[destination]string
	pending map[Denial]int
	timer   *time.Timer
	closed  bool
}

// add counts a denial. It keeps nothing for which no report is left.
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

// remember stores a verdict. mu is held.
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

// close reports what is pending. Nothing is reported afterwards.
func (d *denials) close() {
	d.mu.Lock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.closed = true
	d.mu.Unlock()
	d.flush()
}

// answerTime bounds how long a browser may take to read an answer of the proxy.
const answerTime = 10 * time.Second

// The proxy's own answers. They are static, since a plain http page shows them under the requested
// origin, and run no scripts.
const (
	blockedPage     = "<!doctype html><title>Blocked</title><p>This address is not in the connection's network policy."
	unreachablePage = "<!doctype html><title>Unreachable</title><p>The server could not be reached."
	malformedPage   = "<!doctype html><title>Refused</title><p>This is not a request for a proxy."
)

// mark is the header that distinguishes a denial from a server's 403. It is removed from servers'
// answers.
const mark = "Sluice-Egress"

// blocked answers a denied request.
func blocked(w http.ResponseWriter) {
	w.Header().Set(mark, "denied")
	answer(w, http.StatusForbidden, blockedPage)
}

// unreachable answers for servers that do not answer, or whose answer a proxy cannot pass on.
func unreachable(w http.ResponseWriter) { answer(w, http.StatusBadGateway, unreachablePage) }

// malformed ends the connection, since nothing else on it can be trusted to be a request.
func malformed(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	answer(w, http.StatusBadRequest, malformedPage)
}

func answer(w http.ResponseWriter, status int, page string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // the write reports a failure
	w.WriteHeader(status)
	_, _ = w.Write([]byte(page)) // the browser may be gone
}
