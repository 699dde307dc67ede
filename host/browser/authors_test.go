//go:build linux

package browser_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
)

// authored are pages as authors of connectors meet them.
var authored = map[string]string{
	"/upload": `<input type=file id=f><button id=b onclick="const r=new FileReader();r.onload=()=>out.textContent='read '+r.result;
		r.onerror=()=>out.textContent='gone';r.readAsText(f.files[0])">Read</button><p id=out></p>`,
	"/chooser": `<button id=f onclick="const i=document.createElement('input');i.type='file';i.onchange=()=>{const r=new FileReader();r.onload=()=>out.textContent='read '+r.result;
		r.readAsText(i.files[0])};i.click()">Attach</button><button id=none>Nothing</button><p id=out></p>`,
	"/covered": `<div id=o style="position:fixed;inset:0;background:#fff"></div><button id=f onclick="const i=document.createElement('input');i.type='file';i.onchange=()=>out.textContent='got '+i.files.length;i.click()">Attach</button><p id=out></p>
		<script>setTimeout(()=>o.remove(),1500)</script>`,
	"/frames": `<iframe name=shop id=one srcdoc="<button onclick=&quot;this.textContent='bought'&quot;>Buy</button>"></iframe>
		<iframe id=two srcdoc="<button onclick=&quot;this.textContent='sold'&quot;>Buy</button>"></iframe>`,
	"/sheet": `<div style="position:fixed;left:0;right:0;top:20%;bottom:20%;background:#ccc">We use cookies</div>
		<div style="height:3000px"></div><button onclick="this.textContent='Done'">Go</button><div style="height:3000px"></div>`,
	"/lazy": `<div id=list style="height:200px;overflow:auto"><div style="height:1000px">first</div></div><script>
		let asked=false;list.onscroll=()=>{if(!asked&&list.scrollTop+list.clientHeight>=list.scrollHeight-2){asked=true;
		setTimeout(()=>list.insertAdjacentHTML('beforeend','<p>the last row</p>'),1200)}}</script>`,
	"/empty": `<p>nothing here</p>`,
	"/many": `<select multiple id=s onchange="out.textContent=[...s.selectedOptions].map(o=>o.value)+'|'+event.isTrusted"><option value=a selected>Apple<option value=b>Pear
		<option value=c>Plum<option value=d disabled>Fig</select><p id=out></p>`,
	"/private":      `<p id=out></p><script>fetch('/private/data').then(r=>out.textContent=r.status)</script>`,
	"/private/data": `data`,
	"/prompt":       `<button onclick="out.textContent='Hello '+prompt('Name?','you')">Ask</button><p id=out></p>`,
	"/tabs":         `<a href=/empty target=_blank>Statement</a><button onclick="setTimeout(()=>window.open('/empty'),300)">Later</button>`, "/near": `<label for=u>Username:</label><input id=u><button>Sign in now</button>`,
	"/hold": `<button onmousedown="at=performance.now()" onmouseup="out.textContent=performance.now()-at>=600?'long':'short'">Hold</button><p id=out></p>`,
	"/grid": `<div role=grid><div role=rowgroup><div role=row><span role=columnheader>Day</span><span role=columnheader>Sum</span></div></div>
		<div role=rowgroup><div role=row><span><span role=gridcell>Mon</span></span><span role=gridcell>5</span></div><div role=row><span role=rowheader>Tue</span><span role=gridcell>7</span></div></div></div>`,
}

// author opens a session whose pages are the authored ones.
func author(t *testing.T, change func(*browser.SessionOptions)) *realDesk {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); strings.HasPrefix(r.URL.Path, "/private") &&
			(user != "ada" || pass != "correct horse") {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, "<!doctype html><p id=out>not you</p>")
			return
		}
		_, _ = fmt.Fprint(w, "<!doctype html><title>t</title>", authored[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	h := sharedHost(t)
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
	d.goTo(t, "/chooser")
	d.done(t, `{"verb":"upload","target":{"selector":{"role":"button","name":"Attach"}},"files":[{"path":"/data/a.txt"}],"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"equals","value":"read hello"}}`)
	if out := d.ok(t, `{"verb":"upload","target":{"selector":{"id":"none"}},"files":[{"path":"/data/a.txt"}],"recovery":{"max_recovery_attempts":0}}`); out["detail"] != "no_file_chooser" {
		t.Errorf("a button that opens no chooser: %v %v", out["failure_code"], out["detail"])
	}
	d.goTo(t, "/covered")
	d.done(t, `{"verb":"upload","target":{"selector":{"id":"f"}},"files":[{"path":"/data/a.txt"}],"deadline_ms":30000,"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"equals","value":"got 1"}}`)
	d.goTo(t, "/frames")
	for frame, says := range map[string]string{"shop": "bought", "two": "sold"} {
		d.done(t, `{"verb":"click","target":{"selector":{"role":"button","frame":"`+frame+
			`"}},"expect":{"kind":"text","op":"equals","value":"`+says+`","target":{"selector":{"css":"button","frame":"`+frame+
			`"}}}}`)
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

// Several options of a list are chosen together, and no others; what cannot be is said.
func TestAuthorsSelectMany(t *testing.T) {
	d := author(t, nil)
	d.goTo(t, "/many")
	d.done(t, `{"verb":"select","target":{"selector":{"id":"s"}},"options":[{"label":"Pear"},{"id":"c"}]}`)
	d.done(t, `{"verb":"expect","expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"contains","value":"b,c|"}}`)
	d.done(t, `{"verb":"expect","expect":{"kind":"selected","target":{"selector":{"id":"s"}},"equals":["Plum","b"]}}`)
	d.done(t, `{"verb":"select","target":{"selector":{"id":"s"}},"options":[]}`)
	for request, code := range map[string]string{
		`{"verb":"select","target":{"selector":{"id":"s"}},"options":[{"id":"zz"}]}`: "ELEMENT_NOT_FOUND",
		`{"verb":"select","target":{"selector":{"id":"s"}},"options":[{"id":"d"}]}`:  "ACTION_REJECTED",
		`{"verb":"select","target":{"selector":{"id":"s"}},"option":{"id":"a"}}`:     "SEMANTIC_MISMATCH",
	} {
		if out := d.ok(t, strings.TrimSuffix(request, "}")+
			`,"actionable_timeout_ms":0,"recovery":{"max_recovery_attempts":0}}`); out["failure_code"] != code ||
			out["dispatched"] != false {
			t.Errorf("%s: %v %v", request, out["failure_code"], out["detail"])
		}
	}
}

// A prompt gets the text that was given for it, and a tab that a click opens is named,
// also when it comes late and is waited for.
func TestAuthorsPromptsAndTabs(t *testing.T) {
	d := author(t, nil)
	d.goTo(t, "/prompt")
	d.done(t, `{"verb":"click","target":{"selector":{"role":"button"}},"on_dialog":"accept","dialog_text":"Ann","expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"equals","value":"Hello Ann"}}`)
	d.goTo(t, "/tabs")
	out := d.ok(t, `{"verb":"click","target":{"selector":{"role":"link"}}}`)
	d.opens(t, out, "tab_2")
	if details, _ := out["details"].(map[string]any); len(details["popups"].([]any)) > 0 { // else the machine was slow
		if told := fmt.Sprint(details["popups"]); told != "[map[tab_id:tab_2]]" {
			t.Errorf("the reply of a click names %s", told)
		}
	}
	d.opens(t, d.ok(t, `{"verb":"click","tab":"tab_1","target":{"selector":{"role":"button"}}}`), "tab_3")
}

// opens waits for the tab that an action opens.
func (d *realDesk) opens(t *testing.T, action map[string]any, tab string) {
	t.Helper()
	out := d.ok(t, fmt.Sprintf(`{"verb":"expect","tab":"tab_1","action_id":%q,"expect":{"kind":"tab"},"timeout_ms":60000}`,
		action["action_id"]))
	if out["success"] != true || !strings.Contains(fmt.Sprint(out), tab) {
		t.Errorf("waiting for %s: %v", tab, out)
	}
}

// What was nearly named is told, a button can be held, and a table is one by its roles.
func TestAuthorsNearMissesHoldsAndGrids(t *testing.T) {
	d := author(t, nil)
	d.goTo(t, "/near")
	for request, want := range map[string]string{
		`{"selector":{"label":"Usernames","role":"textbox"}}`: "Username:",
		`{"selector":{"role":"button","name":"Sign-in"}}`:     "Sign in now",
	} {
		out := d.ok(t, `{"verb":"click","target":`+request+
			`,"actionable_timeout_ms":0,"recovery":{"max_recovery_attempts":0}}`)
		if told := fmt.Sprint(out["target"]); out["failure_code"] != "ELEMENT_NOT_FOUND" || !strings.Contains(told, want) ||
			!strings.Contains(told, "near_miss") {
			t.Errorf("%s: %v %s", request, out["failure_code"], told)
		}
	}
	out, _ := d.call(t, `{"verb":"press","keys":"Control+L"}`)
	if said := fmt.Sprint(out["message"]); !strings.Contains(said, "Control+L") ||
		!strings.Contains(said, "browser's own") {
		t.Errorf("a chord of the browser's: %v", out)
	}
	d.goTo(t, "/hold")
	d.done(t, `{"verb":"click","hold_ms":800,"target":{"selector":{"role":"button"}},"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"equals","value":"long"}}`)
	d.goTo(t, "/grid")
	out = d.ok(t, `{"verb":"extract","items":[{"name":"t","take":"table"}]}`)
	if got := fmt.Sprint(out["items"]); got != "map[t:map[columns:[Day Sum] rows:[[Mon 5] [Tue 7]]]]" {
		t.Errorf("a table by its roles: %s", got)
	}
}

// A server that asks for a login by HTTP gets one, of values that may go there, and no
// other; what it was given is in no answer.
func TestAuthorsHTTPLogin(t *testing.T) {
	d := author(t, nil)
	says := func(text string) string {
		return `"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"contains","value":"` + text +
			`"},"recovery":{"max_recovery_attempts":0}}`
	}
	d.goTo(t, "/empty")
	d.done(t, `{"verb":"navigate","url":"SITE/private","http_auth":{"username":{"plain":"ada"},"password":{"plain":"wrong"}},`+says("not you"))
	for name, c := range map[string]struct {
		to   []abi.Destination
		code string
	}{
		"nowhere": {nil, "sealed_destination_denied"},
		"a part of it": {[]abi.Destination{{Origin: d.site, PathPrefix: "/private",
			Placements: []string{"header:authorization"}}}, "sealed_placement_denied"},
		"into fields alone": {fillAt(d.site), "sealed_placement_denied"},
	} {
		h := "sluice-sealed-v1-bbbbbbbbbbbbbbbbbbbbbbbbb" + string(rune('a'+len(name)%26))
		d.Seal("password", h, "correct horse", nil, c.to)
		d.refused(t, `{"verb":"navigate","url":"SITE/private","http_auth":{"username":{"plain":"ada"},"password":{"sealed":"`+
			h+`"}}}`, c.code)
	}
	d.Seal("password", handle, "correct horse", nil,
		[]abi.Destination{{Origin: d.site, Placements: []string{"header:authorization"}}})
	out := d.done(t, `{"verb":"navigate","url":"SITE/private","http_auth":{"username":{"plain":"ada"},"password":{"sealed":"`+handle+`"}},`+says("200"))
	if strings.Contains(fmt.Sprint(out), "correct horse") {
		t.Error("the reply has the password")
	}
	d.goTo(t, "/private/data") // the browser knows it by now

	// An origin that is written in another way is the same one.
	upper := author(t, nil)
	upper.Seal("password", handle, "correct horse", nil,
		[]abi.Destination{{Origin: upper.site, Placements: []string{"header:authorization"}}})
	upper.done(t, `{"verb":"navigate","url":"`+strings.Replace(upper.site, "http://", "HTTP://", 1)+
		`/private","http_auth":{"username":{"plain":"ada"},"password":{"sealed":"`+handle+`"}},`+says("200"))
}
