//go:build unix

package e2e

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/daemon"
)

// A relay is between a browser and a host, as what balances requests is, and breaks what goes through it.
type relay struct {
	net.Listener

	mu   sync.Mutex // guards what follows
	to   string
	open []net.Conn
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l}
	t.Cleanup(func() { l.Close(); r.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
	return r
}

func (r *relay) pass(c net.Conn) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	up, err := net.Dial("tcp", to)
	if err != nil {
		c.Close()
		return
	}
	r.mu.Lock()
	r.open = append(r.open, c, up)
	r.mu.Unlock()
	for _, pair := range [][2]net.Conn{{c, up}, {up, c}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1]) // until one of them is closed
			pair[0].Close()
			pair[1].Close()
		}()
	}
}

// cut breaks all connections that there are.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		c.Close()
	}
	r.open = nil
}

// The stream of a page may break, and the browser opens it again by itself, perhaps at another host: the lines of a run
// go on where they were, each once.
func TestBrokenStream(t *testing.T) {
	r := newRelay(t)
	h, _ := open(t, tempDir(t), func(o *daemon.Options) { o.Server.Hosts = []string{r.Addr().String()} })
	r.mu.Lock()
	r.to = h.Address().String()
	r.mu.Unlock()
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "stamp", "n": 10_000, "ms": 200})
	id := start(t, h.Client, "one")
	link, err := h.Server.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(link.URL, "#")
	b := newTab(t, "http://"+r.Addr().String())
	b.do(chromedp.Navigate(b.base + "/ui/login#" + token))
	b.until(`location.pathname === "/ui/" && document.readyState === "complete"`)
	b.open("/ui/runs/" + string(id))
	const lines = `Array.from(document.querySelectorAll("#events li[data-seq]")).map((x) => Number(x.dataset.seq))`
	more := func() {
		eval[any](b, `window.before = Math.max(...`+lines+`)`)
		b.until(`Math.max(...` + lines + `) > window.before + 3`)
	}
	more()
	for range 2 {
		r.cut()
		more()
	}
	if seen := eval[[]int](b, lines); len(seen) == 0 || seen[0]-seen[len(seen)-1] != len(seen)-1 {
		t.Errorf("the lines of the page are %v", seen)
	}
	if _, err := h.Cancel(soon(t), id); err != nil {
		t.Fatal(err)
	}
	b.clean("a broken stream")
}
