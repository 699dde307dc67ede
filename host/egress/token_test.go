package egress_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run/redact"
)

// logins are answers of a server that gives a session for a password.
func logins(w http.ResponseWriter, r *http.Request) {
	sent, _ := io.ReadAll(r.Body)
	q := r.URL.Query()
	token := "tok-" + strings.Repeat("Zx9", 10) + q.Get("n")
	status := http.StatusOK
	body := `{"user":"sam","data":{"token":"` + token + `","list":["a",{"refresh":"ref-` + token + `"}]},"again":"/me?t=` +
		url.QueryEscape(token) + `"}`
	switch q.Get("as") {
	case "escaped":
		body = strings.Replace(body, `"tok-`, `"\u0074ok-`, 1)
	case "duplicate":
		body = `{"data":{"token":"harmless","token":"` + token + `","list":[0,{"refresh":"r"}]}}`
	case "renamed":
		body = `{"Data":{"token":"` + token + `"}}`
	case "xml":
		body = "<token>" + token + "</token>"
	case "jsonp":
		body = "f(" + body + ")"
	case "huge":
		body = strings.Replace(body, "sam", strings.Repeat("x", 1<<20), 1)
	case "object":
		body = `{"data":{"token":{"value":"` + token + `"},"list":[0,{"refresh":"r"}]}}`
	case "long":
		body = strings.ReplaceAll(body, token, strings.Repeat(token, 400))
	case "number":
		body = `{"data":{"token":8391027745512,"list":[0,{"refresh":"refresh-1"}]},"again":"8391027745512"}`
	case "failed":
		status, body = http.StatusUnauthorized, `{"error":"no"}`
	case "failed html":
		status, body = http.StatusBadGateway, "<p>no "+token+"</p>"
	case "empty":
		body = ""
	case "broken":
		w.Header().Set("Content-Length", "5000")
	case "hop":
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: token})
		w.Header().Set("X-Session", "Bearer "+token)
		http.Redirect(w, r, "/login/?as=cookies", http.StatusFound)
		return
	case "cookies":
		w.Header().Set("Sluice-Sealed-Cookie", "sid="+token)
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: token})
		http.SetCookie(w, &http.Cookie{Name: "other", Value: "plain"})
		w.Header()["X-Session"] = []string{"Bearer " + token, ""}
		w.Header().Set("X-Again", token)
	}
	if r.URL.Path == "/me" {
		body = fmt.Sprint(token, "|", r.Header.Get("Authorization"), "|", r.Header.Get("Cookie"), "|", string(sent))
	}
	if q.Get("gzip") != "" {
		w.Header().Set("Content-Encoding", "gzip")
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, body)
		_ = z.Close()
		body = b.String()
	}
	w.WriteHeader(status)
	for i := 0; i < len(body); i += 700 {
		_, _ = io.WriteString(w, body[i:min(len(body), i+700)])
		if len(body) < 10_000 {
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// tokensAt are the places that logins fills.
func tokensAt(origin string) []abi.SessionToken {
	put := []string{"header:Authorization", "body"}
	return []abi.SessionToken{
		{Name: "session", Origin: origin, PathPrefix: "/login", Pointer: "/data/token", Placements: put},
		{Name: "refresh", Origin: origin, PathPrefix: "/login", Pointer: "/data/list/1/refresh", Placements: put},
		{Name: "header", Origin: origin, PathPrefix: "/login", Header: "x-session", Placements: put},
		{Name: "cookie", Origin: origin, PathPrefix: "/login", Cookie: "sid", Placements: put},
	}
}

// minting makes handles that can be told from each other.
func minting(field string, n int, value string) (string, [][]byte) {
	handle := "sluice-sealed-v1-" + (strings.Repeat("b", n) + strings.Repeat(field[:1], 26))[:26]
	if value == "" {
		return handle, nil
	}
	return handle, redact.Forms(value)
}

// TestSessionToken: whatever a login answers, in whatever form and by whatever request,
// the guest has a handle or nothing.
func TestSessionToken(t *testing.T) {
	const leak = "Zx9Zx9"
	base, e := serve(t, logins)
	for _, tt := range []struct {
		ask, want, code string
		status          int
	}{
		{ask: "/login", want: `"token":"sluice-sealed-v1-`},
		{ask: "/login?gzip=1", want: `"refresh":"sluice-sealed-v1-`},
		{ask: "/login?as=escaped", want: `"again":"/me?t=sluice-sealed-v1-`},
		{ask: "/LOGIN/x", want: `"token":"sluice-sealed-v1-`},
		{ask: "/x/%2e%2e/login", want: `"token":"sluice-sealed-v1-`},
		{ask: "/login%2Fx", want: `"token":"sluice-sealed-v1-`},
		{ask: "/login?as=number", want: `"token":"sluice-sealed-v1-`},
		{ask: "/login?as=duplicate", code: "answer_withheld"},
		{ask: "/login?as=renamed", code: "answer_withheld"},
		{ask: "/login?as=xml", code: "answer_withheld"},
		{ask: "/login?as=jsonp", code: "answer_withheld"},
		{ask: "/login?as=huge", code: "answer_withheld"},
		{ask: "/login?as=object", code: "answer_withheld"},
		{ask: "/login?as=long", code: "answer_withheld"},
		{ask: "/login?as=broken", code: "broken_off"},
		{ask: "/login?as=failed", want: `{"error":"no"}`, status: 401},
		{ask: "/login?as=failed+html", code: "answer_withheld", status: 502},
		{ask: "/login?as=empty"},
		{ask: "/login?as=hop", want: `"token":"sluice-sealed-v1-`},
	} {
		for _, way := range []string{"read", "inline", "recorded"} {
			c := client(t, egress.Options{}, e)
			s := network.NewSession(c)
			if way == "recorded" {
				s = network.NewSession(egress.NewRecorder(c))
			}
			s.SealTokens(tokensAt(base), minting)
			got, status := answerTo(t, s, base+tt.ask, way == "inline")
			switch {
			case strings.Contains(got, leak) || strings.Contains(got, "8391027745512"):
				t.Errorf("%s, %s: %s", tt.ask, way, got)
			case tt.code != "" && (!strings.Contains(got, tt.code) || strings.Contains(got, "sam")):
				t.Errorf("%s, %s: no %s: %s", tt.ask, way, tt.code, got)
			case !strings.Contains(got, tt.want) || tt.code == "" && strings.Contains(got, "EDENIED"):
				t.Errorf("%s, %s: no %s: %s", tt.ask, way, tt.want, got)
			case tt.status != 0 && status != tt.status:
				t.Errorf("%s, %s: status %d", tt.ask, way, status)
			}
		}
	}
}

// answerTo is what a guest gets, errors too.
func answerTo(t *testing.T, s *network.Session, address string, inline bool) (got string, status int) {
	t.Helper()
	more := ""
	if inline {
		more = `,"inline_bytes":100000`
	}
	reply, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
		frame(`{"method":"POST","url":"`+address+`"`+more+`}`, ""))
	got = fmt.Sprint(errno, string(reply))
	if errno != abi.OK {
		return got, 0
	}
	if inline {
		reply = reply[4 : 4+int(reply[0])+int(reply[1])<<8]
	}
	var head struct{ Handle, Status int }
	if err := json.Unmarshal(reply, &head); err != nil {
		t.Fatalf("%s: %v", reply, err)
	}
	for range 5 {
		if head.Handle != 0 {
			b, errno := s.Handle(t.Context(), abi.CallRead, abi.AppendRead(nil, uint32(head.Handle), 1_000_000))
			got += fmt.Sprint(errno, string(b))
		}
	}
	return got, head.Status
}

// TestSessionTokenPlaces: headers and cookies become handles too, also those of hops;
// handles go back to their origin, and only to where they may; later answers show
// nothing of the values, and the jar goes on to send the cookie.
func TestSessionTokenPlaces(t *testing.T) {
	base, e := serve(t, logins)
	elsewhere, e2 := serve(t, logins)
	c := client(t, egress.Options{}, e, e2)
	s := network.NewSession(c)
	places := slices.DeleteFunc(tokensAt(base), func(p abi.SessionToken) bool { return p.Pointer != "" })
	s.SealTokens(places, minting)
	q := func(address string, headers ...[2]string) (*egress.Response, error) {
		return c.Do(t.Context(), &egress.Request{Method: "GET", URL: address, Redirect: "follow", Headers: headers})
	}
	r, err := q(base + "/login?as=cookies")
	if err != nil {
		t.Fatal(err)
	}
	body(t, r)
	text := fmt.Sprint(r.Headers)
	header, cookie := minted("header", 1), minted("cookie", 1)
	for _, want := range []string{"[X-Session " + header + "]", "[Sluice-Sealed-Cookie sid=" + cookie + "]",
		"[X-Again sluice-sealed-v1-"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(text, "Zx9") || strings.Contains(text, "other=") {
		t.Errorf("the guest sees %s", text)
	}

	r, err = q(base+"/me", [2]string{"Authorization", header})
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, r); strings.Contains(got, "Zx9") || !strings.Contains(got, "sid=sluice-sealed") {
		t.Errorf("the guest sees %s", got)
	}
	for address, headers := range map[string][2]string{
		elsewhere + "/me":        {"Authorization", header},
		base + "/me":             {"X-Other", header},
		base + "/me?t=" + cookie: {"X-Other", "x"},
	} {
		_, err := q(address, headers)
		if f := failure(t, err); !strings.HasPrefix(f.Code, "sealed_") {
			t.Errorf("%s: %+v", address, f)
		}
	}
	if r, err = q(base + "/login?as=hop&n=2"); err != nil {
		t.Fatal(err)
	}
	body(t, r)
	if r, err = q(base + "/me?n=2"); err != nil {
		t.Fatal(err)
	}
	if got := body(t, r); strings.Contains(got, "Zx9") {
		t.Errorf("what a hop gave is seen: %s", got)
	}
}

func minted(field string, n int) string {
	handle, _ := minting(field, n, "")
	return handle
}

// TestSessionTokenUsed: the server gets the value for the handle, of the newest login
// and of those before; more values than a run may have are withheld.
func TestSessionTokenUsed(t *testing.T) {
	var got []string
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		logins(w, r)
	})
	c := client(t, egress.Options{}, e)
	s := network.NewSession(c)
	n := 0
	s.SealTokens(tokensAt(base)[:1], func(field string, k int, value string) (string, [][]byte) {
		n++
		return fmt.Sprintf("sluice-sealed-v1-%s",
			strings.ToLower(base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%019d", n)))[:26]), redact.Forms(value)
	})
	var handles []string
	for k := range 17 {
		text, _ := answerTo(t, s, fmt.Sprintf("%s/login?n=%d", base, k), false)
		_, after, ok := strings.Cut(text, `"token":"`)
		if k == 16 {
			if ok || !strings.Contains(text, "answer_withheld") {
				t.Errorf("a 17th value: %s", text)
			}
			break
		}
		if !ok {
			t.Fatal(text)
		}
		handles = append(handles, after[:len(handle)])
	}
	again, _ := answerTo(t, s, base+"/login?n=3", false)
	if !strings.Contains(again, `"token":"`+handles[3]) {
		t.Errorf("the same value has another handle: %s", again)
	}
	for k, h := range handles[:3] {
		r, err := c.Do(t.Context(),
			&egress.Request{Method: "GET", URL: base + "/me", Headers: [][2]string{{"Authorization", "Bearer " + h}}})
		if err != nil {
			t.Fatal(err)
		}
		body(t, r)
		if want := fmt.Sprintf("Bearer tok-%s%d", strings.Repeat("Zx9", 10), k); got[len(got)-1] != want {
			t.Errorf("the server got %q, want %q", got[len(got)-1], want)
		}
	}
}

// TestSessionTokenRecorded: a recording has the name of a token in the place of its
// value, and a replay gives the guest the handle that it had.
func TestSessionTokenRecorded(t *testing.T) {
	base, e := serve(t, logins)
	do := func(s *network.Session) (seen string) {
		s.SealTokens(tokensAt(base)[:1], minting)
		seen = fetch(t, s, "POST", base+"/login", nil, "")
		return seen + fetch(t, s, "GET", base+"/me", map[string]string{"Authorization": "Bearer " + minted("session", 1)}, "")
	}
	var live string
	file, _ := recorded(t, e, egress.Header{}, func(s *network.Session) { live = do(s) })
	if strings.Contains(file, "Zx9") || strings.Contains(file, minted("session", 1)) ||
		strings.Count(file, "{{secret:session}}") < 3 {
		t.Errorf("the file has\n%s", file)
	}
	s := replayed(t, file)
	if again := do(s); again != live {
		t.Errorf("replayed:\n%s\nlive:\n%s", again, live)
	}
	if code, text := s.Fault(true); code != "" {
		t.Error(code, text)
	}
}
