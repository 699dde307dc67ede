//go:build unix

package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image/color"
	"image/jpeg"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/tests/browsing"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// viewed are pages for the live view: one that moves all the time, one that changes its
// colour on a click, one with secrets and controls.
var viewed = map[string]string{
	"/moves": browsing.Moving, "/flips": browsing.Flipping,
	"/form": `<!doctype html><body style="margin:0;background:#fff"><style>input,select{position:absolute;left:100px;width:300px;height:40px;border:0;background:#000;color:#fff;font-size:30px}</style>
<input id="p" type="password" value="hunter2" style="top:100px"><input id="t" style="top:200px"><select id="s" aria-label="Country" style="top:300px"><option>Austria<option>Belgium</select>
<script>document.title = "Form"</script>`,
}

// A look is a connection to the live view as the owner's page makes it, without the
// page.
type look struct {
	t    *testing.T
	conn *websocket.Conn
	last []byte // the newest picture
}

// looking logs in, mints a token and connects.
func looking(t *testing.T, h *served.Host, run, mode string) *look {
	t.Helper()
	link, err := h.Server.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	base, token, _ := strings.Cut(link.PlainURL, "/ui/login#")
	send := func(path string, body any, header http.Header, out any) *http.Response {
		t.Helper()
		raw, _ := json.Marshal(body)
		r, err := http.NewRequestWithContext(t.Context(), "POST", base+path, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header.Clone()
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(out); err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s: %d %v", path, res.StatusCode, err)
		}
		return res
	}
	header := http.Header{"Origin": {base}}
	var session struct{ CSRFToken string }
	res := send("/ui/session", map[string]string{"token": token}, header, &session)
	header.Set("Cookie", res.Cookies()[0].Name+"="+res.Cookies()[0].Value)
	header.Set("X-Sluice-Csrf", session.CSRFToken)
	var minted struct{ Token string }
	send("/v1/runs/"+run+"/browser/views", map[string]string{"mode": mode}, header, &minted)
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(base, "http")+"/v1/runs/"+run+
		"/browser/view", header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	l := &look{t: t, conn: conn}
	l.say(map[string]any{"type": "auth", "token": minted.Token})
	return l
}

func (l *look) say(m any) {
	l.t.Helper()
	if err := l.conn.WriteJSON(m); err != nil {
		l.t.Fatal(err)
	}
}

// next returns the next message, or the next picture, which it acknowledges.
func (l *look) next() (picture []byte, m map[string]any) {
	l.t.Helper()
	_ = l.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	kind, raw, err := l.conn.ReadMessage()
	if err != nil {
		l.t.Fatal(err)
	}
	if kind == websocket.BinaryMessage {
		l.last = raw
		l.say(map[string]any{"type": "ack", "seq": binary.BigEndian.Uint32(raw[1:])})
		return raw, nil
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		l.t.Fatal(err)
	}
	return nil, m
}

// told waits for a message that right accepts.
func (l *look) told(right func(m map[string]any) bool) map[string]any {
	l.t.Helper()
	for {
		if _, m := l.next(); m != nil && right(m) {
			return m
		}
	}
}

// shade returns the brightness of a picture at a point of the page.
func shade(t *testing.T, picture []byte, x, y int) uint8 {
	t.Helper()
	return shadeOf(t, picture, x, y, 1280)
}

// shadeOf is shade for a page of another width.
func shadeOf(t *testing.T, picture []byte, x, y, width int) uint8 {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(picture[view.HeaderSize:]))
	if err != nil {
		t.Fatal(err)
	}
	return color.GrayModel.Convert(m.At(x*m.Bounds().Dx()/width, y*m.Bounds().Dx()/width)).(color.Gray).Y
}

// until waits for a picture that right accepts, unless the newest one is already.
func (l *look) until(right func(picture []byte) bool) {
	l.t.Helper()
	if l.last != nil && right(l.last) {
		return
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if p, _ := l.next(); p != nil && right(p) {
			return
		}
	}
	l.t.Fatal("no such picture")
}

// TestLiveViewOfChromium: pictures of a real browser keep coming over the dashboard's
// socket; secrets are covered for those who watch; typing and lists work.
func TestLiveViewOfChromium(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "otp", "text": "Code?"})
	id := start(t, h.Client, "one")
	browser := browsing.Lone(t, viewed)
	run := h.Service.Views().Begin(string(id), &keeper{released: make(chan struct{}, 10)},
		func(string, string, map[string]any) {})
	defer run.End()
	run.Up(browser.Screen())
	run.Asked("i1", "manual_action")
	tab := browser.Tabs()[0]
	visit := func(path string) {
		t.Helper()
		if _, err := tab.Navigate(t.Context(), "http://viewed.test"+path, "load"); err != nil {
			t.Fatal(err)
		}
	}
	visit("/flips")
	l := looking(t, h, string(id), "control")
	l.told(func(m map[string]any) bool { return m["lease"] == "yours" && m["host"] == "viewed.test" })
	l.until(func(p []byte) bool { return shade(t, p, 640, 360) > 240 })

	var took []time.Duration
	for i := range 30 {
		began := time.Now()
		for _, action := range []string{"mousedown", "mouseup"} {
			l.say(map[string]any{"type": "mouse", "action": action, "x": 640, "y": 360})
		}
		l.until(func(p []byte) bool { return shade(t, p, 640, 360) > 128 == (i%2 == 1) })
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("input to changed picture: p50 %v, p90 %v", took[15], took[27])

	visit("/moves")
	l.told(func(m map[string]any) bool { return true })
	for frames := 0; frames < 20; { // a page that moves does not stop to be shown
		if p, _ := l.next(); p != nil {
			frames++
		}
	}

	visit("/form")
	watcher := looking(t, h, string(id), "view")
	covered := func(p []byte) bool { return shade(t, p, 250, 120) > 100 && shade(t, p, 250, 120) < 160 }
	watcher.until(func(p []byte) bool { // whatever it is shown of the form, the password is not in it
		if shade(t, p, 250, 220) < 40 && !covered(p) {
			t.Error("a watcher saw a password field")
		}
		return covered(p) && shade(t, p, 640, 600) > 240
	})
	l.say(map[string]any{"type": "mouse", "action": "click", "x": 250, "y": 220})
	l.say(map[string]any{"type": "keyboard", "action": "keydown", "key": "O", "code": "KeyO"})
	l.say(map[string]any{"type": "keyboard", "action": "keyup", "key": "O", "code": "KeyO"})
	l.say(map[string]any{"type": "text", "text": "k"})
	l.say(map[string]any{"type": "paste", "text": "ay"})
	l.say(map[string]any{"type": "mouse", "action": "mousedown", "x": 250, "y": 320})
	m := l.told(func(m map[string]any) bool { return m["type"] == "select" })
	if options := m["options"].([]any); len(options) != 2 || m["name"] != "Country" {
		t.Errorf("%v", m)
	}
	l.say(map[string]any{"type": "mouse", "action": "mouseup", "x": 250, "y": 320})
	l.say(map[string]any{"type": "select_choice", "id": "1"})
	l.say(map[string]any{"type": "elements"})
	m = l.told(func(m map[string]any) bool { return m["type"] == "elements" })
	raw, _ := json.Marshal(m)
	if strings.Contains(string(raw), "hunter2") || len(m["elements"].([]any)) != 3 {
		t.Errorf("%s", raw)
	}
	o, err := tab.Read(t.Context(), page.Query{All: true, Selectors: []page.Selector{{CSS: "#t"}, {CSS: "#s"}}})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, n := range o.Nodes {
		if n.State.TextValue != nil {
			found[n.ID] = *n.State.TextValue
		}
		if n.State.Selected != nil {
			found[n.ID] = n.State.Selected.Label
		}
	}
	if found["t"] != "Okay" || found["s"] != "Belgium" {
		t.Errorf("%v", found)
	}

	// Another window of the owner gets control once it was given back, and not before.
	typed := func() string {
		n, err := tab.Read(t.Context(), page.Query{Selectors: []page.Selector{{CSS: "#t"}}})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(n.Nodes, func(n page.Node) bool { return n.ID == "t" })
		return *n.Nodes[i].State.TextValue
	}
	second := looking(t, h, string(id), "control")
	second.told(func(m map[string]any) bool { return m["lease"] == "other" })
	for _, m := range []map[string]any{{"type": "text", "text": "!"}, {"type": "take"}} {
		second.say(m)
		if e := second.told(func(m map[string]any) bool { return m["type"] == "error" }); e["code"] != "not_controlling" {
			t.Errorf("%v: %v", m, e)
		}
	}
	l.say(map[string]any{"type": "release"})
	second.told(func(m map[string]any) bool { return m["lease"] == "free" })
	second.say(map[string]any{"type": "take"})
	second.told(func(m map[string]any) bool { return m["lease"] == "yours" })
	l.told(func(m map[string]any) bool { return m["lease"] == "other" })
	l.say(map[string]any{"type": "text", "text": "?"})
	l.told(func(m map[string]any) bool { return m["code"] == "not_controlling" })
	second.say(map[string]any{"type": "mouse", "action": "click", "x": 250, "y": 220})
	second.say(map[string]any{"type": "keyboard", "action": "keydown", "key": "End", "code": "End"})
	second.say(map[string]any{"type": "keyboard", "action": "keyup", "key": "End", "code": "End"})
	second.say(map[string]any{"type": "text", "text": " too"})
	for end := time.Now().Add(2 * time.Minute); typed() != "Okay too"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q was typed", typed())
		}
	}
}
