//go:build linux

package browser_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
)

// soak has the sweeps try everything, as make soak does; otherwise they try a fixed part.
var soak = os.Getenv("SLUICE_SCORE") != ""

// hostilePages do what a page can to the host that looks at it.
var hostilePages = map[string]string{
	"alerts":     `<body>x<script>onload=()=>{setTimeout(()=>{for(;;)alert('x'.repeat(1e6))},0)}</script>`,
	"popups":     `<body onclick="for(let i=0;i<200;i++)open('/good?'+i)"><button id=b>b</button><script>for(let i=0;i<200;i++)open('/good?'+i)</script>`,
	"attributes": `<body><button id=b>b</button><script>for(const n of ['id','title','aria-label','data-testid','placeholder','class','href','name','role'])b.setAttribute(n,'z'.repeat(8e6))</script>`,
	"spoofed":    `<body><button>real</button><script>for(const k of ['querySelectorAll','getElementById'])Document.prototype[k]=()=>{throw 1};Object.defineProperty(globalThis,'sluice',{value:{read:()=>({nodes:[{}]})}});Array.prototype.push=()=>{throw 1};Array.prototype.map=()=>{throw 1};JSON.stringify=()=>'{}';Object.prototype.toJSON=()=>'x';Element.prototype.getBoundingClientRect=()=>{throw 1}</script>`,
	"hang":       `<body>x<script>setTimeout(()=>{for(;;);},0)</script>`,
}

// No page keeps a verb for ever, nor makes the binding say more than it may, nor passes
// for a fault of the host, nor keeps a browser from being closed.
func TestAttackPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, fmt.Sprint("/redirect?", time.Now().UnixNano()), http.StatusFound)
		case r.URL.Path == "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte("<p>" + strings.Repeat("x", 1000))); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		case r.URL.Path == "/silent":
			<-r.Context().Done()
		case strings.HasPrefix(r.URL.Path, "/hostile/"):
			_, _ = fmt.Fprint(w, "<!doctype html>"+hostilePages[strings.TrimPrefix(r.URL.Path, "/hostile/")])
		default:
			_, _ = fmt.Fprint(w, "<!doctype html><title>good</title><p id=ok>good</p>")
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	h := sharedHost(t)
	addresses := map[string]string{"redirects": "/redirect", "alerts": "/hostile/alerts", "hang": "/hostile/hang"}
	if soak {
		addresses["an endless answer"], addresses["a silent server"] = "/endless", "/silent"
		for name := range hostilePages {
			addresses[name] = "/hostile/" + name
		}
	}
	for name, path := range addresses {
		t.Run(name, func(t *testing.T) {
			d := realSession(t, h, server.URL, nil)
			d.ok(t, `{"verb":"open","persistent":false}`)
			do := func(request string) {
				reply, errno := d.Handle(t.Context(), abi.CallBrowser, []byte(strings.ReplaceAll(request, "SITE", server.URL)))
				var out map[string]any
				if err := json.Unmarshal(reply, &out); err != nil {
					t.Errorf("%.60s: %v of %d bytes", request, err, len(reply))
				}
				t.Logf("%.60s: %s, %d bytes: %.120s", request, errno, len(reply), reply)
				if len(reply) > 1<<20 {
					t.Errorf("%.60s: %d bytes", request, len(reply))
				}
				if out["code"] == "internal" || out["detail"] == "internal" {
					t.Errorf("%.60s: a page is taken for a fault of the host: %.300s", request, reply)
				}
			}
			do(`{"verb":"navigate","url":"SITE` + path +
				`","deadline_ms":1500,"until":"dom","recovery":{"max_recovery_attempts":0}}`)
			do(`{"verb":"snapshot","include":["elements","console"],"deadline_ms":1500}`)
			do(`{"verb":"extract","items":[{"name":"t","take":"text","target":{"selector":{"css":"body"}}},{"name":"l","take":"links"}],"deadline_ms":1500}`)
			do(`{"verb":"click","target":{"selector":{"role":"button","index":0}},"deadline_ms":1500,"recovery":{"max_recovery_attempts":0}}`)
			do(`{"verb":"screenshot","full_page":true,"deadline_ms":1500}`)
			d.call(t, `{"verb":"close"}`)
		})
	}
}

// A download that does not end does not fill the disk, whatever the server says
// of its length.
func TestAttackDownload(t *testing.T) {
	var sent atomic.Int64
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/endless" {
			_, _ = fmt.Fprint(w, `<!doctype html><a id=a href=/endless download>file</a>`)
			return
		}
		defer close(over)
		w.Header().Set("Content-Disposition", "attachment; filename=a.bin")
		for piece := make([]byte, 1<<20); sent.Load() < 1<<30; sent.Add(int64(len(piece))) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	h, _, data := realHost(t, nil)
	d := realSession(t, h, server.URL, func(o *browser.SessionOptions) { o.Request.Downloads = true })
	d.ok(t, `{"verb":"open","url":"SITE/"}`)
	d.ok(t, `{"verb":"click","target":{"selector":{"id":"a"}},"recovery":{"max_recovery_attempts":0},"verify":{"window_ms":200}}`)
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	t.Logf("%d MiB were sent", sent.Load()>>20)
	if n := sent.Load(); n > 300<<20 || n < 90<<20 {
		t.Errorf("%d MiB were sent", n>>20)
	}
	d.ok(t, `{"verb":"close"}`)
	var kept int64
	if err := filepath.WalkDir(data, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if fi, err := e.Info(); err == nil {
				kept += fi.Size()
			}
		}
		return nil
	}); err != nil || kept > 100<<20 {
		t.Errorf("%d MiB are kept, %v", kept>>20, err)
	}
}
