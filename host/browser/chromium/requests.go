package chromium

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpnetwork "github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	requestsKept  = 300
	requestsShown = 100
	// deniedHeader is the header of the proxy's own answers.
	deniedHeader = "Sluice-Egress"
)

// traffic records the page's requests, as a hint and never as proof. The tab's mu guards it.
type traffic struct {
	tab    *Tab
	seen   []*requestSeen
	flying map[cdpnetwork.RequestID]*requestSeen
	types  []typedDocument // of documents, newest last
	spoke  page.Mark       // mark before the last socket message
	login  *login          // nil: requests for authentication get no answer
}

type requestSeen struct {
	after  page.Mark
	ends   bool   // of a kind that ends
	script bool   // made by a script
	write  bool   // may change something
	main   bool   // for the next document of the main frame
	tells  bool   // may tell its server something new
	asked  string // digest of the address, of a request that only asks
	// answered is when the answer began; zero means not yet.
	answered time.Time
	page.RequestSeen
}

func (n *traffic) init() { n.flying = make(map[cdpnetwork.RequestID]*requestSeen) }

// sent records a request, and stops a navigation to an address that is not allowed, on each hop. mu
// is held.
func (n *traffic) sent(s *chromedp.Target, ev *cdpnetwork.EventRequestWillBeSent) {
	main := ev.Type == cdpnetwork.ResourceTypeDocument && s == n.tab.session && ev.FrameID == n.tab.frames.main
	if main {
		ld := n.tab.loads.of(ev.LoaderID)
		ld.asked = ev.Request.URL
		if ev.RedirectResponse != nil {
			ld.redirects++
		}
		if external(ev.Request.URL) && ev.RedirectResponse == nil {
			return // for another program; the browser drops it
		}
		if err := n.tab.check(ev.Request.URL); err != nil {
			n.tab.refuse(ld, err)
			ours := n.tab.loads.asked
			n.tab.undo(func(ctx context.Context) {
				if ours { // and there is no page to return to
					n.tab.reset(ctx)
					return
				}
				_, _ = cdp.Call(ctx, n.tab.session, cdpage.StopLoading, cdp.Empty{})
			})
		}
	}
	u, err := url.Parse(ev.Request.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return
	}
	path := cmp.Or(cutText(strings.ToLower(strings.TrimRight(u.Path, "/")), 512), "/")
	r := &requestSeen{after: n.tab.history.last, ends: ends(ev.Type), script: scripted(ev), write: writes(ev), main: main,
		RequestSeen: page.RequestSeen{Endpoint: path, Method: cutText(ev.Request.Method, 16), Verdict: "success"}}
	r.asked, r.tells = n.tells(ev)
	if len(n.seen) >= requestsKept {
		n.seen = n.seen[1:]
	}
	n.seen = append(n.seen, r)
	if len(n.flying) < 4*requestsKept {
		n.flying[ev.RequestID] = r
	}
}

// failed records why a document of the main frame did not load: the proxy denied it, or the
// server's certificate is not accepted. mu is held.
func (n *traffic) failed(ev *cdpnetwork.EventLoadingFailed) {
	ld := n.tab.loads.all[cdp.LoaderID(ev.RequestID)]
	if ld == nil || ev.Type != cdpnetwork.ResourceTypeDocument {
		return
	}
	if err := n.failure(ld, ev.ErrorText); err != nil {
		n.tab.refuse(ld, err)
	}
}

// failure returns page.ErrHost or page.ErrCertificate if a load failed for that reason, otherwise
// nil. mu is held.
func (n *traffic) failure(ld *load, text string) error {
	if unaccepted(text) {
		return page.ErrCertificate
	}
	if n.tab.options.Refused == nil ||
		!slices.ContainsFunc(cutOff, func(s string) bool { return strings.Contains(text, s) }) {
		return nil
	}
	return n.tab.options.Refused(ld.asked)
}

// cutOff lists the browser's names for what the proxy does to a denied connection.
var cutOff = []string{"ERR_TUNNEL_CONNECTION_FAILED", "ERR_CONNECTION_CLOSED", "ERR_CONNECTION_RESET",
	"ERR_EMPTY_RESPONSE"}

// unaccepted reports whether an error is about the server's certificate or TLS.
func unaccepted(text string) bool {
	return strings.Contains(text, "ERR_CERT_") || strings.Contains(text, "ERR_SSL_")
}

// received records an answer. mu is held.
func (n *traffic) received(ev *cdpnetwork.EventResponseReceived) {
	status := int(ev.Response.Status)
	if ev.Type == cdpnetwork.ResourceTypeDocument {
		n.typedAs(ev.Response)
	}
	if ev.Type == cdpnetwork.ResourceTypeDocument && ev.FrameID == n.tab.frames.main {
		ld := n.tab.loads.of(ev.LoaderID)
		ld.status = status
		if denied(ev.Response) {
			ld.blocked = true // undone when it is committed
		}
	}
	if r := n.flying[ev.RequestID]; r != nil {
		r.Status, r.Verdict, r.answered = status, statusVerdict(status), time.Now()
	}
}

// finished records the end of a request. mu is held.
func (n *traffic) finished(id cdpnetwork.RequestID, failed bool) {
	if r := n.flying[id]; r != nil && failed {
		r.Verdict = "retryable" // whatever its status
	}
	delete(n.flying, id)
}

// ends reports whether requests of a kind come to an end; a stream of events, for example, does
// not.
func ends(kind cdpnetwork.ResourceType) bool {
	switch kind {
	case cdpnetwork.ResourceTypeDocument, cdpnetwork.ResourceTypeStylesheet, cdpnetwork.ResourceTypeScript,
		cdpnetwork.ResourceTypeXHR, cdpnetwork.ResourceTypeFetch:
		return true
	}
	return false
}

// tells reports whether a request may tell its server something new. Style sheets, scripts and
// fonts do not, nor does a repeated request. asked is what later requests are compared with.
func (n *traffic) tells(ev *cdpnetwork.EventRequestWillBeSent) (asked string, tells bool) {
	switch ev.Type {
	case cdpnetwork.ResourceTypeStylesheet, cdpnetwork.ResourceTypeScript, cdpnetwork.ResourceTypeFont,
		cdpnetwork.ResourceTypeMedia,
		cdpnetwork.ResourceTypeManifest, cdpnetwork.ResourceTypePreflight, cdpnetwork.ResourceTypeTextTrack:
		return "", false
	}
	if ev.Request.Method != "GET" && ev.Request.Method != "HEAD" {
		return "", true
	}
	asked = sum(ev.Request.URL)
	return asked, !slices.ContainsFunc(n.seen, func(s *requestSeen) bool { return s.asked == asked })
}

// told counts requests to servers since a mark. mu is held.
func (n *traffic) told(since page.Mark) (count int) {
	for _, r := range n.seen {
		if r.tells && r.after >= since {
			count++
		}
	}
	if n.spoke >= since {
		count++
	}
	return count
}

// scripted reports whether a script made the request and waits for it.
func scripted(ev *cdpnetwork.EventRequestWillBeSent) bool {
	return ev.Type == cdpnetwork.ResourceTypeXHR || ev.Type == cdpnetwork.ResourceTypeFetch
}

// writes reports whether a script made the request with a method that changes things.
func writes(ev *cdpnetwork.EventRequestWillBeSent) bool {
	return scripted(ev) && slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, ev.Request.Method)
}

// pending counts unanswered requests of scripts since a mark: those that may change something, and
// those that ask for something new. mu is held.
func (n *traffic) pending(since page.Mark) (writing, asking int) {
	for _, r := range n.flying {
		streams := !r.answered.IsZero() && time.Since(r.answered) > streaming
		switch {
		case r.after < since || streams:
		case r.write:
			writing++
		case r.script && r.tells:
			asking++
		}
	}
	return writing, asking
}

// streaming is how long after its beginning an answer counts as endless.
const streaming = time.Second

// leaving reports whether a document of the main frame is awaited. mu is held.
func (n *traffic) leaving() bool {
	for _, r := range n.flying {
		if r.main {
			return true
		}
	}
	return false
}

// arrived records that no document is awaited any more. mu is held.
func (n *traffic) arrived() {
	for _, r := range n.flying {
		r.main = false
	}
}

// busy reports whether a request that ends is under way. mu is held.
func (n *traffic) busy() bool {
	for _, r := range n.flying {
		if r.ends {
			return true
		}
	}
	return false
}

// statusVerdict returns whether a status suggests trying again.
func statusVerdict(status int) string {
	switch {
	case status >= 500:
		return "retryable"
	case status >= 400:
		return "failure"
	}
	return "success"
}

func denied(r *cdpnetwork.Response) bool {
	for name, value := range r.Headers {
		if s, ok := value.(string); ok && strings.EqualFold(name, deniedHeader) && s == "denied" {
			return true
		}
	}
	return false
}

// Requests returns the newest 100 requests begun after the mark.
func (n *traffic) Requests(since page.Mark) []page.RequestSeen {
	n.tab.mu.Lock()
	defer n.tab.mu.Unlock()
	var list []page.RequestSeen
	for _, r := range n.seen {
		if r.after >= since {
			list = append(list, r.RequestSeen)
		}
	}
	if k := len(list); k > requestsShown {
		list = list[k-requestsShown:]
	}
	return list
}
