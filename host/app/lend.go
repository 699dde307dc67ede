package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/fleet"
	liveview "github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/store"
)

// browsers lends the browsers of this machine. Cleaning up after an earlier host and looking for a browser
// happen at the first use, since most commands need none.
type browsers struct {
	o     browser.Options
	views *liveview.Views

	mu   sync.Mutex // guards what follows
	host *browser.Host
	over bool
}

var _ Browsers = (*browsers)(nil)

// newBrowsers returns browsers that keep profiles in the data directory, or in the scratch space of a host
// without one.
func newBrowsers(h *directory) *browsers {
	o := h.Options.Browser
	if o.Data = h.DataDir; o.Data == "" {
		o.Data = h.temp
	}
	if o.Path == "" {
		o.Path = os.Getenv("SLUICE_BROWSER")
	}
	if o.FirstUID == 0 && os.Geteuid() == 0 {
		o.FirstUID, o.LastUID = browserUIDs()
	}
	if o.Watchdog == 0 {
		o.Watchdog = fleet.WatchdogLimit(os.Getenv("SLUICE_SESSION_ESTABLISH_WATCHDOG_MS"))
	}
	if o.Log == nil {
		o.Log = h.Options.Log
	}
	return &browsers{o: o, views: liveview.New()}
}

// browserUIDs returns the default range of uids for browsers. It is disjoint from that of the workers
// (jail.FirstUID to jail.LastUID), so that a guest and a page never share a uid. Containers often have only uids
// of 16 bits.
func browserUIDs() (first, last int) {
	const far, many = 300_000, 10_000
	if m, err := os.ReadFile("/proc/self/uid_map"); err != nil || mapped(string(m), far+many-1) {
		return far, far + many - 1
	}
	return 60_000, 64_999
}

// mapped reports whether a Linux uid map contains a uid.
func mapped(uidMap string, uid int) bool {
	for line := range strings.Lines(uidMap) {
		var inside, outside, count int
		if n, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && n == 3 && uid >= inside && uid-inside < count {
			return true
		}
	}
	return false
}

var errBrowsersClosed = errors.New("the browsers of this host are closed")

// open makes the host of browsers at the first call.
func (b *browsers) open() (*browser.Host, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return nil, errBrowsersClosed
	}
	if b.host == nil {
		h, err := browser.New(b.o)
		if err != nil {
			return nil, err
		}
		b.host = h
	}
	return b.host, nil
}

// Facts implements Browsers.
func (b *browsers) Facts(ctx context.Context) browser.Facts {
	h, err := b.open()
	if err != nil {
		return browser.Facts{Problem: err.Error()}
	}
	return h.Facts(ctx)
}

// Lend implements Browsers.
func (b *browsers) Lend(o browser.SessionOptions) (Browser, error) {
	h, err := b.open()
	if err != nil {
		return nil, err
	}
	out := &lookedAt{views: b.views}
	o.Notice = out.notice
	out.Session = h.Session(o)
	return out, nil
}

// Forget implements Browsers.
func (b *browsers) Forget(ctx context.Context, id store.ConnectionID) error {
	h, err := b.open()
	if err != nil {
		return err
	}
	return h.Forget(ctx, string(id))
}

// Close implements Browsers. It ends every browser.
func (b *browsers) Close(ctx context.Context) error {
	b.mu.Lock()
	h := b.host
	b.host, b.over = nil, true
	b.mu.Unlock()
	if h == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, browsersClose)
	defer cancel()
	return h.Close(ctx)
}

// browsersClose bounds the time for ending browsers that are kept for a next run; those of runs have ended by
// then.
const browsersClose = 15 * time.Second
