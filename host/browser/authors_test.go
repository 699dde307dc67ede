package browser_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser"
)

// authored are pages as authors of connectors meet them.
var authored = map[string]string{
	"/upload": `<input type=file id=f><button id=b onclick="const r=new FileReader();r.onload=()=>out.textContent='read '+r.result;
		r.onerror=()=>out.textContent='gone';r.readAsText(f.files[0])">Read</button><p id=out></p>`,
	"/frames": `<iframe name=shop id=one srcdoc="<button onclick=&quot;this.textContent='bought'&quot;>Buy</button>"></iframe>
		<iframe id=two srcdoc="<button onclick=&quot;this.textContent='sold'&quot;>Buy</button>"></iframe>`,
	"/sheet": `<div style="position:fixed;left:0;right:0;top:20%;bottom:20%;background:#ccc">We use cookies</div>
		<div style="height:3000px"></div><button onclick="this.textContent='Done'">Go</button><div style="height:3000px"></div>`,
	"/lazy": `<div id=list style="height:200px;overflow:auto"><div style="height:1000px">first</div></div><script>
		let asked=false;list.onscroll=()=>{if(!asked&&list.scrollTop+list.clientHeight>=list.scrollHeight-2){asked=true;
		setTimeout(()=>list.insertAdjacentHTML('beforeend','<p>the last row</p>'),1200)}}</script>`,
	"/empty": `<p>nothing here</p>`,
}

// author opens a session whose pages are the authored ones.
func author(t *testing.T, change func(*browser.SessionOptions)) *realDesk {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "<!doctype html><title>t</title>", authored[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	h, _, _ := realHost(t, nil)
	d := realSession(t, h, server.URL, change)
	d.ok(t, `{"verb":"open","persistent":false}`)
	return d
}

// done carries out an action on a page and fails where it was not proved.
func (d *realDesk) done(t *testing.T, request string) map[string]any {
	t.Helper()
	out := d.ok(t, request)
	if out["success"] != true {
		t.Errorf("%s: %v %v %v", request, out["failure_code"], out["detail"], out["verification"])
	}
	return out
}

func (d *realDesk) goTo(t *testing.T, path string) {
	t.Helper()
	d.done(t, `{"verb":"navigate","url":"SITE`+path+`"}`)
}

// What authors ask of ordinary pages works: files stay readable after the upload,
// frames are found by name and by id, a target under a sheet is brought where it can
// be seen, a list may take its time to grow, and nothing to extract is no fault.
func TestAuthoredPages(t *testing.T) {
	d := author(t, func(o *browser.SessionOptions) {
		o.Request.Uploads = true
		o.File = func(context.Context, string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("hello")), nil
		}
	})
	d.goTo(t, "/upload")
	d.done(t, `{"verb":"upload","target":{"selector":{"id":"f"}},"files":[{"path":"/data/a.txt"}]}`)
	d.done(t, `{"verb":"click","target":{"selector":{"id":"b"}},"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"equals","value":"read hello"}}`)
	d.goTo(t, "/frames")
	for frame, says := range map[string]string{"shop": "bought", "two": "sold"} {
		d.done(t, `{"verb":"click","target":{"selector":{"role":"button","frame":"`+frame+`"}},"expect":{"kind":"text","op":"equals","value":"`+says+`","target":{"selector":{"css":"button","frame":"`+frame+`"}}}}`)
	}
	d.goTo(t, "/sheet")
	d.done(t, `{"verb":"click","target":{"selector":{"css":"button"}},"expect":{"kind":"text","op":"equals","value":"Done"}}`)
	d.goTo(t, "/lazy")
	d.done(t, `{"verb":"scroll","target":{"selector":{"text":"the last row"}},"within":{"selector":{"id":"list"}},"deadline_ms":30000}`)
	d.goTo(t, "/empty")
	out := d.ok(t, `{"verb":"extract","items":[{"name":"all","take":"text","all":true,"target":{"selector":{"css":".none"}}},{"name":"one","take":"text","target":{"selector":{"css":".none"}}},{"name":"table","take":"table"}]}`)
	if got := fmt.Sprint(out["items"]); got != "map[all:[] one:<nil> table:<nil>]" {
		t.Errorf("nothing to extract: %s", got)
	}
}
