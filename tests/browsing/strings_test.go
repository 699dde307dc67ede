package browsing_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// bad is text that must be cleaned before it is kept anywhere.
const bad = "x\x1b[31m\u202e\u2066\u200b\u009b\U000e0041y\r\nz"

// dirty returns the places of the strings in a JSON value that hold any of it.
func dirty(path string, v any) (found []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			found = append(found, dirty(path+"."+name, m)...)
			found = append(found, dirty(path+".(name)", name)...)
		}
	case []any:
		for i, m := range v {
			found = append(found, dirty(fmt.Sprint(path, "[", i, "]"), m)...)
		}
	case string:
		if abi.CleanLines(v) != v {
			found = append(found, fmt.Sprintf("%s is %q", path, v))
		}
	}
	return found
}

// Texts of a guest and of a page are clean in a run's timeline and trace, whichever
// field they came in.
func TestStringsAreClean(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		esc, _ := json.Marshal(bad)
		_, _ = fmt.Fprintf(w, `<!doctype html><meta charset=utf-8><button id=b>Save</button><label for=i>Name</label><input id=i><select id=s><option>one</select><script>
const bad=%s;document.title=bad;for(const a of ["title","aria-label","aria-description","data-testid","name","placeholder"])for(const e of [b,i,s])e.setAttribute(a,bad);
s.options[0].text=bad;b.onclick=()=>{alert(bad);console.log(bad);console.error(bad);b.append(bad)}</script>`, esc)
	}))
	defer site.Close()
	data := browsing.Dir(t)
	h := browsing.Host(t, browser.Options{Data: data, ActionsPerMinute: 1000})
	s := browsing.Begin(t, h,
		browser.SessionOptions{Request: abi.BrowserRequest{Uploads: true, CookieHandoff: []string{"a.test"}}}, site.URL)
	s.Must(browsing.M{"verb": "open", "url": site.URL, "trace": true})
	target := browsing.Selector("id", "b")
	for _, q := range []browsing.M{
		{"verb": "click", "target": target, "intent": bad,
			"expect": browsing.M{"kind": "text", "target": target, "op": "contains", "value": bad}},
		{"verb": "click", "target": browsing.Selector("test_id", bad, "index", 0), "declared": bad},
		{"verb": "click", "target": browsing.Selector("name", bad), "intent": bad, "tab": bad},
		{"verb": "fill", "target": browsing.Selector("id", "i"), "value": browsing.M{"plain": bad}, "intent": bad},
		{"verb": "select", "target": browsing.Selector("id", "s"), "option": browsing.M{"label": bad}},
		{"verb": "press", "keys": bad, "target": browsing.Selector("id", "i")},
		{"verb": "upload", "target": browsing.Selector("id", "i"), "files": []browsing.M{{"path": bad}}},
		{"verb": "navigate", "url": "http://a.test/" + bad},
		{"verb": "navigate", "url": bad},
		{"verb": "mark", "phase": bad},
		{"verb": "mark", "phase": "x", "done": bad},
		{"verb": "cookies", "to": "network", "hosts": []string{bad, "a.test" + bad}, "names": []string{bad}},
		{"verb": "snapshot", "query": bad, "include": []string{"elements", "console", "diagnostics"}},
		{"verb": "extract", "items": []browsing.M{{"name": bad, "take": "attribute", "attribute": bad, "target": target}}},
		{"verb": "wait", "for": bad}, {"verb": bad}, {"verb": "expect", "expect": browsing.M{"kind": bad}},
		{"verb": "open", "profile": bad},
	} {
		r := s.Call(q)
		if r.Refusal == "internal" {
			t.Errorf("%v: %s", q, r)
		}
		if len(r.Message) > 0 {
			for _, place := range dirty("message", r.Message) {
				t.Errorf("%v: %s", q, place)
			}
		}
	}
	s.End()
	for _, e := range s.Run.Events("") {
		for _, place := range dirty(e.Type, e.Data) {
			t.Errorf("the timeline: %s", place)
		}
	}
	z, err := zip.OpenReader(browser.TraceFile(data, "run_1"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	looked := 0
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, ".jpg") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				continue // of a file in several lines
			}
			looked++
			for _, place := range dirty(f.Name, v) {
				t.Errorf("the trace: %s", place)
			}
		}
	}
	if looked < 10 {
		t.Errorf("the trace has %d lines", looked)
	}
}
