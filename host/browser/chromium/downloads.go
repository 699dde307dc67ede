package chromium

import (
	"context"
	"maps"
	"mime"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdpnetwork "github.com/chromedp/cdproto/network"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	// downloadsKept bounds the concurrent downloads of a browser; further ones are cancelled.
	downloadsKept = 100
	// downloadBytes bounds the size of a file.
	downloadBytes = 100 << 20
	// weighEvery is how often the sizes of running downloads are checked: the browser reports
	// progress twice a second, in which a fast server sends a lot.
	weighEvery = 50 * time.Millisecond
	// typesKept is how many documents' media types a tab remembers.
	typesKept = 20
)

// Reasons of failed downloads, as page.Download has them.
const (
	failedCanceled = "canceled"
	failedLarge    = "too_large"
	failedMany     = "too_many"
)

// A download is a running download. Its tab's mu guards record.
type download struct {
	tab    *Tab
	url    string
	record *page.Download
}

// downloadBegan records a download. The browser names the file itself; the page's name is only
// reported. A download that no known tab asked for, for instance because its page is gone, belongs
// to the active tab.
func (b *Browser) downloadBegan(ev *browser.EventDownloadWillBegin) {
	t := b.tabOf(cdp.FrameID(ev.FrameID))
	if t == nil {
		b.cancelSoon(ev.GUID)
		return
	}
	d := page.Download{ID: cutText(ev.GUID, 64), Name: fileName(ev.SuggestedFilename), Host: hostOf(ev.URL),
		Denied: t.options.Downloads == ""}
	if !d.Denied && !b.mayDownload(t, ev.GUID) {
		d.Failed = failedMany
		b.mu.Lock()
		b.enough = true
		b.mu.Unlock()
		b.cancelSoon(ev.GUID)
	}
	t.mu.Lock()
	e := t.history.add(event{download: &d})
	t.traffic.arrived() // what was awaited turned out to be a file
	now := d
	t.wake()
	t.poke()
	t.mu.Unlock()
	t.offered(now)
	if now.Failed != "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.downloads == nil {
		b.downloads = make(map[string]*download)
	}
	if len(b.downloads) < downloadsKept {
		b.downloads[ev.GUID] = &download{tab: t, url: ev.URL, record: e.download}
		signal(b.wake) // starts the check of sizes
	}
}

// weighing returns when to check sizes next, or nil without downloads.
func (b *Browser) weighing() <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.downloads) == 0 || !b.saving {
		return nil
	}
	return time.After(weighEvery)
}

// endOversized cancels downloads whose files are too large.
func (b *Browser) endOversized() {
	b.mu.Lock()
	all := maps.Clone(b.downloads)
	b.mu.Unlock()
	for guid, d := range all {
		if d.tab.options.Downloads == "" || !safeGUID(guid) {
			continue
		}
		file, err := os.Lstat(filepath.Join(d.tab.options.Downloads, guid+".crdownload"))
		if err == nil && file.Size() > downloadBytes {
			b.downloadWent(&browser.EventDownloadProgress{GUID: guid, ReceivedBytes: float64(file.Size()),
				State: browser.DownloadProgressStateInProgress})
		}
	}
}

// offered reports a finished, failed or denied download. No lock is held.
func (n *traffic) offered(d page.Download) {
	if n.tab.options.Offered != nil && (d.Denied || d.Failed != "" || d.Done) {
		n.tab.options.Offered(d)
	}
}

// mayDownload reports whether one more file may be saved and can be followed.
func (b *Browser) mayDownload(t *Tab, guid string) bool {
	b.mu.Lock()
	full := len(b.downloads) >= downloadsKept
	b.mu.Unlock()
	return !full && safeGUID(guid) && (t.options.MayDownload == nil || t.options.MayDownload())
}

// tabOf returns the tab of a frame, otherwise the active one, or nil if there is none.
func (b *Browser) tabOf(frame cdp.FrameID) *Tab {
	b.mu.Lock()
	tabs, active := slices.Clone(b.tabs), b.active
	b.mu.Unlock()
	for _, t := range tabs {
		t.mu.Lock()
		ours := t.frames.all[frame] != nil
		t.mu.Unlock()
		if ours {
			return t
		}
	}
	return active
}

// cancelSoon has the browser's worker cancel a download.
func (b *Browser) cancelSoon(guid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unwanted = append(b.unwanted, guid)
	signal(b.wake)
}

// cancelDownload cancels a download; the browser removes its file. If no more may be saved, it
// denies all further downloads, since small ones would be saved before they could be cancelled.
func (b *Browser) cancelDownload(ctx context.Context, guid string) {
	b.mu.Lock()
	deny := b.enough && b.saving
	b.mu.Unlock()
	if deny {
		_ = b.permitDownloads(ctx, false)
	}
	_, _ = cdp.Call(ctx, b.cdp, browser.CancelDownload, browser.CancelDownloadParams{GUID: guid})
}

// renew allows downloads again after the limit was reached, for the next run of a connection.
func (b *Browser) renew(ctx context.Context) error {
	b.mu.Lock()
	b.enough = false
	saving := b.saving
	b.mu.Unlock()
	if saving {
		return nil
	}
	return b.permitDownloads(ctx, true)
}

// downloadWent records the progress of a download and cancels it if it is too large.
func (b *Browser) downloadWent(ev *browser.EventDownloadProgress) {
	b.mu.Lock()
	d := b.downloads[ev.GUID]
	if d != nil && ev.State != browser.DownloadProgressStateInProgress {
		delete(b.downloads, ev.GUID)
	}
	b.mu.Unlock()
	if d == nil {
		return
	}
	t := d.tab
	t.mu.Lock()
	ended := t.downloadWent(d, ev)
	now := *d.record
	t.mu.Unlock()
	if ended {
		t.offered(now)
	}
}

// downloadWent updates the record and reports whether the download has ended. The tab's mu is held.
func (n *traffic) downloadWent(d *download, ev *browser.EventDownloadProgress) (ended bool) {
	r := d.record
	r.Bytes = int64(ev.ReceivedBytes)
	switch over := max(ev.ReceivedBytes, ev.TotalBytes) > downloadBytes; {
	case r.Denied:
	case over && r.Failed == "":
		r.Failed = failedLarge
		if ev.State == browser.DownloadProgressStateInProgress {
			n.tab.browser.cancelSoon(ev.GUID)
		}
		ended = true
	case r.Failed != "":
	case ev.State == browser.DownloadProgressStateCompleted:
		r.MIME = n.typeOf(d.url)
		r.Done, r.Path = true, filepath.Join(n.tab.options.Downloads, ev.GUID)
		ended = true
	case ev.State == browser.DownloadProgressStateCanceled:
		r.Failed = failedCanceled
		ended = true
	}
	if ended {
		n.tab.history.add(event{download: r})
	}
	n.tab.wake()
	return ended
}

// A typedDocument is the address of a document with the media type that its server declared.
type typedDocument struct{ url, mime string }

// typedAs records the media type of a document, which may become a download. The tab's mu is held.
func (n *traffic) typedAs(r *cdpnetwork.Response) {
	kind, _, err := mime.ParseMediaType(r.MimeType)
	if err != nil || len(kind) > 127 {
		return
	}
	if len(n.types) >= typesKept {
		n.types = n.types[1:]
	}
	n.types = append(n.types, typedDocument{r.URL, kind})
}

// typeOf returns the media type that the server declared for an address, or "" if it is unknown.
// The tab's mu is held.
func (n *traffic) typeOf(url string) string {
	for _, t := range slices.Backward(n.types) {
		if t.url == url {
			return t.mime
		}
	}
	return ""
}

// fileName returns the last element of a file name given by a page, at most 255 bytes.
func fileName(s string) string {
	s = path.Base(strings.ReplaceAll(s, `\`, "/"))
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if s == "." || s == ".." || s == "/" || s == "" {
		s = "download"
	}
	return cutText(s, 255)
}

// safeGUID reports whether the browser's id of a download is safe as a file name.
func safeGUID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}
