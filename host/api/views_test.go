package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
)

// A screen is a page that shows one picture. What is not here is not called.
type screen struct {
	page.Screen
	clicks chan page.Input
}

func (s *screen) Cast(ctx context.Context, _ page.Cast, sent func(page.Frame)) error {
	sent(page.Frame{At: time.Now(), Viewport: s.Viewport(), Scale: 1, Data: []byte("\xff\xd8 a picture")})
	<-ctx.Done()
	return nil
}
func (s *screen) Still(context.Context, int) (page.Frame, error) { return page.Frame{}, page.ErrHung }
func (s *screen) Facts() page.Facts                              { return page.Facts{Host: "bank.example"} }
func (s *screen) Title(context.Context) (string, error)          { return "Bank", nil }
func (s *screen) Viewport() page.Viewport                        { return page.Viewport{Width: 800, Height: 600} }
func (s *screen) Choosing() bool                                 { return false }
func (s *screen) OnDialog(page.DialogPolicy)                     {}
func (s *screen) Changed() <-chan struct{}                       { return nil }
func (s *screen) Control(context.Context, page.Point) (page.Node, bool, error) {
	return page.Node{}, false, nil
}
func (s *screen) Input(_ context.Context, in page.Input) error {
	s.clicks <- in
	return nil
}

type surface struct{}

func (surface) Taken(context.Context) error { return nil }
func (surface) Released()                   {}
func (surface) Sealed() []page.Ref          { return nil }
func (surface) Upload(context.Context, string, int64) (view.Upload, error) {
	return nil, view.ErrUploads
}

// session logs the owner in, and is how their page sends requests.
func session(t *testing.T, base string) (own []option, header http.Header) {
	t.Helper()
	login, err := shared.d.Server.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(login.URL, "#")
	body, _ := json.Marshal(object{"token": token})
	req, _ := http.NewRequest("POST", base+"/ui/session", strings.NewReader(string(body)))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", base)
	res, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct{ CSRFToken string }
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.CSRFToken == "" || len(res.Cookies()) != 1 {
		t.Fatalf("%d %v", res.StatusCode, err)
	}
	c := res.Cookies()[0]
	header = http.Header{"Cookie": {c.Name + "=" + c.Value}, "Origin": {base}}
	return []option{func(r *http.Request) {
		for name, values := range header {
			r.Header[name] = values
		}
		r.Header.Set("X-Sluice-CSRF", got.CSRFToken)
	}}, header
}

// From the mint to a click in the page, over the routes that a page uses; and
// what refuses.
func TestViews(t *testing.T) {
	c := served(t)
	run := c.start(workflow("conformance-noop"))
	c.ended(run)
	views := shared.d.Service.Views()
	var events []string
	seen := &screen{clicks: make(chan page.Input, 10)}
	r := views.Begin(run, surface{}, func(typ, _ string, _ map[string]any) { events = append(events, typ) })
	defer r.End()
	at := "/v1/runs/" + run + "/browser/views"
	browser := c.as("")
	own, header := session(t, c.base)
	with := func(more ...option) []option { return append(more, own...) }

	// The events as they are stored are for the owner alone.
	c.do("GET", "/v1/runs/"+run+"/timeline", nil).want(403, "forbidden")
	if events := browser.do("GET", "/v1/runs/"+run+"/timeline?from=0", nil,
		own...).want(200); events.member("more") != false {
		t.Errorf("%s", events.body)
	}

	// Who may: a key and a request without the page's token may not.
	c.do("POST", at, object{"mode": "view"}).want(403, "forbidden")
	browser.do("POST", at, object{"mode": "view"},
		append(own, func(r *http.Request) { r.Header.Del("X-Sluice-CSRF") })...).want(403, "forbidden")
	browser.do("POST", at, object{"mode": "view"},
		append(own, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") })...).want(403,
		"origin_not_allowed")

	// What refuses.
	mint := func(body object, options ...option) *answer {
		t.Helper()
		return browser.do("POST", at, body, with(options...)...)
	}
	mint(object{"mode": "view"}).want(503, "browser_surface_unavailable")
	mint(object{"mode": "steer"}).want(400, "validation_error")
	browser.do("POST", "/v1/runs/none/browser/views", object{"mode": "view"}, own...).want(404, "not_found")
	r.Up(seen)
	mint(object{"mode": "control"}).want(409, "no_pending_interaction")
	r.Asked("i1", "credentials")
	mint(object{"mode": "control"}).want(409, "stream_not_supported_for_kind")
	r.Asked("i1", "manual_action")
	mint(object{"mode": "control", "interactionId": "i0"}).want(409, "interaction_id_mismatch")
	mint(object{"mode": "control", "viewport": object{"width": 5, "height": 5}}).want(400, "validation_error")
	mint(object{"mode": "control"}, once("ü")).want(400, "validation_error")

	// The key of a mint, whose answer stands in no store.
	first := mint(object{"mode": "control", "interactionId": "i1"}, once("k1")).want(201)
	again := mint(object{"mode": "control", "interactionId": "i1"}, once("k1")).want(201)
	id, token := first.text("viewId"), first.text("token")
	if again.text("token") != token || again.member("replayed") != true || first.member("replayed") != false ||
		first.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s, then %s", first.body, again.body)
	}

	// Nothing before the token; then a picture, and a click.
	d := websocket.Dialer{HandshakeTimeout: 2 * time.Minute}
	address := "ws" + strings.TrimPrefix(c.base, "http") + "/v1/runs/" + run + "/browser/view"
	if _, res, err := d.Dial(address,
		http.Header{"Cookie": header["Cookie"], "Origin": {"http://evil.example"}}); err == nil || res.StatusCode != 403 {
		t.Errorf("a page elsewhere: %v", err)
	}
	wrong, _, err := d.Dial(address, header)
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	_ = wrong.WriteJSON(object{"type": "auth", "token": "x"})
	if _, _, err := wrong.ReadMessage(); !websocket.IsCloseError(err, 4401) {
		t.Errorf("a wrong token: %v", err)
	}
	conn, res, err := d.Dial(address, header)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	browser.check("GET", "/v1/runs/"+run+"/browser/view",
		&answer{t: t, what: "connect", status: res.StatusCode, header: res.Header})
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if err := conn.WriteJSON(object{"type": "auth", "token": token, "interaction_id": "i1"}); err != nil {
		t.Fatal(err)
	}
	var hello, picture bool
	for lease := ""; lease != "yours" || !hello || !picture; {
		kind, m, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if kind == websocket.BinaryMessage {
			picture = m[0] == 1
			continue
		}
		var v object
		if err := json.Unmarshal(m, &v); err != nil {
			t.Fatal(err)
		}
		lease, _ = v["lease"].(string)
		hello = hello || v["type"] == "hello" && v["host"] == "bank.example"
	}
	if err := conn.WriteJSON(object{"type": "mouse", "action": "click", "x": 40, "y": 50}); err != nil {
		t.Fatal(err)
	}
	if in := <-seen.clicks; in.Kind != "click" || in.At != (page.Point{X: 40, Y: 50}) {
		t.Errorf("%+v", in)
	}
	if used := mint(object{"mode": "control", "interactionId": "i1"}, once("k1")).want(201); used.member("token") != nil ||
		used.text("viewId") != id {
		t.Errorf("%s", used.body)
	}

	// Another owner session does not find it; its own ends it.
	other, _ := session(t, c.base)
	browser.do("DELETE", at+"/"+id, nil, other...).want(404, "not_found")
	browser.do("POST", at+"/"+id+"/reach-failed", object{"reason": "unknown"}, other...).want(404, "not_found")
	browser.do("POST", at+"/"+id+"/reach-failed", object{"reason": "unreachable_origin", "httpStatus": 502},
		own...).want(204)
	browser.do("DELETE", at+"/"+id, nil, own...).want(204)
	browser.do("DELETE", at+"/"+id, nil, own...).want(404, "not_found")
	for err = nil; err == nil; {
		_, _, err = conn.ReadMessage()
	}
	if !websocket.IsCloseError(err, 1000) {
		t.Errorf("%v", err)
	}
	want := "run.stream_session_requested run.stream_session_opened run.stream_reach_failed run.stream_session_resolved"
	if got := strings.Join(events, " "); got != want {
		t.Errorf("%s", got)
	}

	// What was given out is in the audit log; the token is nowhere.
	page, _, err := shared.d.Service.AuditEntries(t.Context(), host.AuditQuery{Action: "view.opened", Limit: 10})
	if err != nil || len(page) != 1 || page[0].Target != run {
		t.Errorf("%+v %v", page, err)
	}
	if raw, _ := json.Marshal(page); strings.Contains(string(raw), token) {
		t.Error("the audit log has a token")
	}
}
