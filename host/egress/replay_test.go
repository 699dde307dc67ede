package egress_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run/redact"
)

// sessionOf records what do makes a guest do, and returns the file.
func recorded(t *testing.T, e egress.Entry, h egress.Header, do func(*network.Session)) (string, *egress.Review) {
	t.Helper()
	recorder := egress.NewRecorder(client(t, egress.Options{}, e))
	s := network.NewSession(recorder)
	do(s)
	if code, text := s.Fault(true); code != "" {
		t.Fatal(code, text)
	}
	h.ConnectorID, h.Module, h.Connection, h.Mode, h.Clock = "c", "m", "c", "full_refresh", time.UnixMilli(1e12).UTC()
	if h.Scope == nil {
		h.Scope = []byte(`{}`)
	}
	file, review, err := recorder.Finish(h)
	if err != nil {
		t.Fatal(err)
	}
	return string(file), review
}

func replayed(t *testing.T, file string) *network.Session {
	t.Helper()
	r, err := egress.ParseRecording([]byte(file))
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	return network.NewSession(egress.NewReplayer(r))
}

// fetch makes a request and reads its answer to the end; it returns all that a
// guest sees.
func fetch(t *testing.T, s *network.Session, method, address string, headers map[string]string, body string) string {
	t.Helper()
	pairs := [][2]string{}
	for name, value := range headers {
		pairs = append(pairs, [2]string{name, value})
	}
	list, _ := json.Marshal(pairs) // of texts
	text, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
		frame(fmt.Sprintf(`{"method":%q,"url":%q,"headers":%s}`, method, address, list), body))
	out := fmt.Sprintf("%s %s\n", errno, text)
	if errno != abi.OK {
		return out
	}
	var reply struct{ Handle uint32 }
	if err := json.Unmarshal(text, &reply); err != nil {
		t.Fatal(err)
	}
	for {
		b, errno := s.Handle(t.Context(), abi.CallRead, abi.AppendRead(nil, reply.Handle, 1000))
		out += fmt.Sprintf("%s %d %q\n", errno, len(b), b)
		if errno != abi.OK || len(b) == 0 {
			break
		}
	}
	s.Handle(t.Context(), abi.CallClose, binary.LittleEndian.AppendUint32(nil, reply.Handle))
	return out
}

// A replay shows the guest what it saw, piece by piece, failures included, with
// the server gone.
func TestReplayShowsTheSame(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "cookie-7f3a9c"})
		switch r.URL.Path {
		case "/long":
			for range 50 { // in pieces that come when they come
				_, _ = w.Write(bytes.Repeat([]byte("0123456789"), 13))
				_ = http.NewResponseController(w).Flush()
			}
		case "/broken":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half of it")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/moved":
			http.Redirect(w, r, "/binary", http.StatusFound)
		case "/binary":
			_, _ = w.Write([]byte{0, 1, 255, '{', '{'})
		case "/literal":
			_, _ = io.WriteString(w, "{{secret:token}} {{literal:}} {{x}} {{credential:1}}")
		case "/post":
			b, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%d bytes, cookie %s", len(b), r.Header.Get("Cookie"))
		}
	})
	do := func(s *network.Session) (seen []string) {
		for _, path := range []string{"/long", "/broken", "/moved", "/binary", "/literal", "/none"} {
			seen = append(seen, fetch(t, s, "GET", base+path, map[string]string{"Accept": "*/*"}, ""))
		}
		seen = append(seen, fetch(t, s, "POST", base+"/post", nil, strings.Repeat("long body ", 20_000)))
		seen = append(seen, fetch(t, s, "HEAD", base+"/binary", nil, ""))
		return append(seen, fetch(t, s, "GET", "https://other.example/", nil, "")) // not approved
	}
	var live []string
	file, review := recorded(t, e, egress.Header{}, func(s *network.Session) { live = do(s) })
	if !strings.Contains(live[1], "half of it") || !strings.Contains(live[1], "EUNAVAIL") ||
		!strings.Contains(live[8], "EDENIED") || !strings.Contains(live[6], "sid=cookie") {
		t.Fatal(live)
	}
	s := replayed(t, file)
	for i, text := range do(s) {
		if text = strings.Replace(text, "", "", 1); text != live[i] {
			t.Errorf("request %d\n was %s\nis %s", i+1, live[i], text)
		}
	}
	if code, text := s.Fault(true); code != "" {
		t.Error(code, text)
	}
	// but for what the server told
	if strings.Contains(strings.Replace(file, `cookie sid=cookie-7f3a9c`, "", 1), "cookie-7f3a9c") {
		t.Error("a cookie is in the file")
	}
	if review.Exchanges != 9 || review.Origins[base] != 8 || review.Origins["https://other.example"] != 1 {
		t.Errorf("%+v", review)
	}
}

// A request that is not the next of the recording fails loudly, and so does
// everything after it.
func TestReplayIsStrict(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") })
	file, _ := recorded(t, e, egress.Header{}, func(s *network.Session) {
		fetch(t, s, "GET", base+"/1", map[string]string{"A": "b"}, "")
		fetch(t, s, "POST", base+"/2", nil, "body")
	})
	// names have no case
	first := func(s *network.Session) { fetch(t, s, "GET", base+"/1", map[string]string{"a": "b"}, "") }
	for name, test := range map[string]struct {
		do   func(s *network.Session)
		want string
	}{
		"url": {func(s *network.Session) { fetch(t, s, "GET", base+"/3", nil, "") },
			"request 1 is not the one on line 2 of the recording: want GET " + base + "/1, got GET " + base + "/3"},
		"order": {func(s *network.Session) { fetch(t, s, "POST", base+"/2", nil, "body") },
			"request 1 is not the one on line 2"},
		"method": {func(s *network.Session) { first(s); fetch(t, s, "PUT", base+"/2", nil, "body") },
			"request 2 is not the one on line 3 of the recording: want POST"},
		"header value": {func(s *network.Session) { fetch(t, s, "GET", base+"/1", map[string]string{"A": "c"}, "") },
			"headers: want A: b, got A: c"},
		"header gone": {func(s *network.Session) { fetch(t, s, "GET", base+"/1", nil, "") }, "headers: want A, got none"},
		"header added": {func(s *network.Session) {
			fetch(t, s, "GET", base+"/1", map[string]string{"A": "b", "C": "d"},
				"")
		}, "headers: want no more, got C"},
		"body": {func(s *network.Session) { first(s); fetch(t, s, "POST", base+"/2", nil, "bodY") },
			"body: want body, got bodY"},
		"long body": {func(s *network.Session) { first(s); fetch(t, s, "POST", base+"/2", nil, strings.Repeat("x", 70_000)) },
			"body: want body, got 70000 bytes with SHA-256"},
		"one more": {func(s *network.Session) {
			first(s)
			fetch(t, s, "POST", base+"/2", nil, "body")
			first(s)
		}, "the connector makes request 3, GET " + base + "/1, and the recording has 2"},
		"one less": {first, "the connector made 1 requests, and the recording has 2; the next is on line 3: POST " + base +
			"/2"},
	} {
		s := replayed(t, file)
		test.do(s)
		code, text := s.Fault(name == "one less")
		if code != "recording_mismatch" || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s %s", name, code, text)
		}
		if name == "one less" {
			if code, _ := s.Fault(false); code != "" {
				t.Error("less is told before the end")
			}
			continue
		}
		if got := fetch(t, s, "GET", base+"/1", map[string]string{"A": "b"}, ""); !strings.Contains(got,
			"recording_mismatch") {
			t.Errorf("%s: goes on with %s", name, got)
		}
	}
}

// No spelling of a planted value that the canary knows is in a file, wherever it
// was, and a replay without the value asks and sees the same.
func TestSecretsAreScrubbed(t *testing.T) {
	const plain, sealed, otp, handle = "correct/horse+\"battery\"", "s3aled-value!", "483920",
		"sluice-sealed-v1-aaaaaaaaaaaaaaaaaaaaaaaaaa"
	const token = "tok.9Qx7LmZ2"
	spellings := func(v string) []string {
		out := []string{base64.StdEncoding.EncodeToString([]byte("sam:" + v)),
			base64.URLEncoding.EncodeToString([]byte("x" + v + "y"))}
		for _, f := range redact.Forms(v) {
			out = append(out, string(f))
		}
		return out
	}
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/login":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","escaped":"\u0063orrect/horse+\"battery\""}`, token)
		case "/binary":
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = io.WriteString(w, "\x00"+sealed+"\x01"+plain)
		default:
			w.Header().Set("X-Echo", strings.Join(r.Header["X-Key"], ""))
			_, _ = io.WriteString(w, "you sent "+string(b)+" with "+r.Header.Get("Authorization"))
		}
	})
	do := func(s *network.Session, plain, otp, token string) (seen string) {
		s.Seal("token", handle, sealed, redact.Forms(sealed),
			[]abi.Destination{{Origin: base, Placements: []string{"header:X-Key", "body"}}})
		s.Protect("pass", plain, redact.Forms(plain))
		for _, v := range spellings(plain) {
			seen += fetch(t, s, "POST", base+"/all?q="+url.QueryEscape(v), map[string]string{"X-Key": handle}, "it is "+v+".")
		}
		seen += fetch(t, s, "POST", base+"/login",
			map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("sam:"+plain))}, "otp="+otp)
		s.Protect("otp.code", otp, redact.Forms(otp)) // known after it was sent
		seen += fetch(t, s, "GET", base+"/all", map[string]string{"Authorization": "Bearer " + token}, "")
		seen += fetch(t, s, "GET", base+"/binary", nil, "")
		return seen
	}
	var live string
	config := `{"user":"sam","old":` + string(strictjson.AppendQuote(nil, plain)) + `,"t":"` + token + `"}`
	file, review := recorded(t, e, egress.Header{Config: []byte(config)},
		func(s *network.Session) { live = do(s, plain, otp, token) })
	if !strings.Contains(live, token) || !strings.Contains(live, handle) {
		t.Fatal(live)
	}
	look := file
	for line := range strings.Lines(file) { // and in what is packed
		var x struct {
			Answer struct{ Body struct{ Base64 []byte } }
		}
		if json.Unmarshal([]byte(line), &x) == nil && x.Answer.Body.Base64 != nil {
			look += string(x.Answer.Body.Base64)
			if strings.Contains(line, `"bytes":`) || strings.Contains(line, "Content-Length") {
				t.Errorf("the length is of what was scrubbed: %s", line)
			}
		}
	}
	for _, v := range slices.Concat(spellings(plain), spellings(sealed),
		[]string{token, handle, otp, hex.EncodeToString([]byte(otp)), `\u0063orrect`}) {
		if strings.Contains(look, v) {
			t.Errorf("%q is in the file:\n%s", v, file)
		}
	}
	lines := strings.Join(review.Lines(), "\n")
	for _, want := range []string{"request header X-Key: {{secret:token}} × ",
		"request header Authorization: {{credential:1}} × 1, {{secret:pass}} × 1",
		"start: {{credential:1}} × 1, {{secret:pass}} × 1", "answer body: "} {
		if !strings.Contains(lines, want) {
			t.Errorf("the summary has no %q:\n%s", want, lines)
		}
	}

	// A replay has other values, and the token of its own recording.
	r, err := egress.ParseRecording([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	given, secrets := r.WithStandIns([]string{"pass"})
	var settings struct{ Old, T string }
	if err := json.Unmarshal(given.Config, &settings); err != nil || settings.Old != secrets["pass"] ||
		settings.T == token || settings.T == "" {
		t.Errorf("settings %s: %v", given.Config, err)
	}
	const other = "quite/another+\"value\""
	s := network.NewSession(egress.NewReplayer(r))
	s.Seal("token", handle, "nothing", nil, nil)
	s.Protect("pass", other, redact.Forms(other))
	for i, v := range spellings(other) {
		got := fetch(t, s, "POST", base+"/all?q="+url.QueryEscape(v), map[string]string{"X-Key": handle}, "it is "+v+".")
		if code, text := s.Fault(false); code != "" {
			t.Fatalf("spelling %d %q: %s\n%s", i, v, text, file)
		}
		if !strings.Contains(got, handle) {
			t.Errorf("the guest does not see its handle: %s", got)
		}
	}
}

// What is not learned from a manifest is replayed too: the token that the
// replayed answer has is the one that is expected.
func TestCredentialsAreReplayed(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600}`, token)
	})
	do := func(s *network.Session, signature string) string {
		var answer struct {
			Token string `json:"access_token"`
		}
		text := fetch(t, s, "POST", base+"/token", map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
			"user=sam&password=hunter2hunter2")
		if at := strings.Index(text, `"{\"access`); at < 0 {
			t.Fatal(text)
		} else if quoted, _, _ := strings.Cut(text[at:], "\n"); true {
			var body string
			if err := json.Unmarshal([]byte(quoted), &body); err != nil {
				t.Fatal(err)
			} else if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatal(err)
			}
		}
		fetch(t, s, "GET", base+"/?access_token="+answer.Token, map[string]string{"Authorization": "Bearer " + answer.Token},
			"")
		fetch(t, s, "GET", base+"/signed", map[string]string{"Authorization": "HMAC " + signature}, "")
		return answer.Token
	}
	file, _ := recorded(t, e, egress.Header{}, func(s *network.Session) { do(s, "0123456789abcdef") })
	for _, v := range []string{token, "hunter2", "0123456789abcdef"} {
		if strings.Contains(file, v) {
			t.Errorf("%s is in the file:\n%s", v, file)
		}
	}
	s := replayed(t, strings.Replace(file, "password={{credential:1}}", "password=hunter2hunter2", 1))
	// a signature that nobody can make again may be any
	if got := do(s, "fedcba9876543210"); got == token || len(got) < 20 {
		t.Errorf("token %q", got)
	}
	if code, text := s.Fault(true); code != "" {
		t.Errorf("%s\n%s", text, file)
	}
	s = replayed(t, file)
	fetch(t, s, "POST", base+"/token", map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
		"user=eve&password=hunter2hunter2")
	if code, _ := s.Fault(false); code != "recording_mismatch" {
		t.Error("another user is no mismatch")
	}
}

// A run that exchanges more than a recording holds is ended, and says so.
func TestRecordingIsBounded(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for range 30 {
			_, _ = w.Write(make([]byte, 1<<20))
		}
	})
	s := network.NewSession(egress.NewRecorder(client(t, egress.Options{}, e)))
	for range 2 {
		if text, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
			frame(`{"method":"GET","url":"`+base+`"}`, "")); errno != abi.OK {
			t.Fatalf("%s %s", errno, text)
		}
	}
	if code, _ := s.Fault(false); code != "" {
		t.Error(code)
	}
	text, errno := s.Handle(t.Context(), abi.CallNetworkRequest, frame(`{"method":"GET","url":"`+base+`"}`, ""))
	if code, _ := s.Fault(false); errno != abi.ETOOBIG || code != "recording_full" {
		t.Errorf("%s %s, %s", errno, text, code)
	}
}

// Nothing of a value is left in any text, what only looks like a placeholder
// comes back as it was, and a text without values is unchanged by the round trip.
func FuzzPlaceholders(f *testing.F) {
	const held, value = "sluice-sealed-v1-aaaaaaaaaaaaaaaaaaaaaaaaaa", "correct horse"
	for _, text := range []string{"", "{{", "{{{{secret:token}}", "{{literal:}}secret:}}", "{{{secret:0", "{correct horse",
		"x correct horse y", "{{secret:correct horse}}", held + held,
		"corcorrect horserect horse", `{"a":"c\u006frrect horse \n {{secret:"}`,
		base64.StdEncoding.EncodeToString([]byte("sam:correct horse"))} {
		f.Add(text)
	}
	forms := redact.Forms(value)
	f.Fuzz(func(t *testing.T, text string) {
		if _, shown := egress.Hidden(text, "", "", nil); shown != text {
			t.Fatalf("%q became %q", text, shown)
		}
		hidden, shown := egress.Hidden(text, held, value, forms)
		for _, form := range append([][]byte{[]byte(held)}, forms...) {
			if strings.Contains(hidden, string(form)) {
				t.Fatalf("%q is left in %q", form, hidden)
			}
		}
		if hidden == text && shown != text {
			t.Fatalf("%q became %q", text, shown)
		}
	})
}

// The order of headers means nothing, only that of those with one name.
func TestHeadersInAnyOrder(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	ask := func(s *network.Session, headers string) {
		s.Handle(t.Context(), abi.CallNetworkRequest, frame(`{"method":"GET","url":"`+base+`","headers":`+headers+`}`, ""))
	}
	file, _ := recorded(t, e, egress.Header{}, func(s *network.Session) { ask(s, `[["B","1"],["A","2"],["B","3"]]`) })
	for headers, want := range map[string]string{
		`[["b","1"],["B","3"],["a","2"]]`: "",
		`[["B","3"],["B","1"],["A","2"]]`: "recording_mismatch",
	} {
		s := replayed(t, file)
		ask(s, headers)
		if code, text := s.Fault(false); code != want {
			t.Errorf("%s: %s", headers, text)
		}
	}
}

// The password within basic authentication is a credential too.
func TestBasicPasswordIsScrubbed(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello opensesame9!") })
	basic := base64.StdEncoding.EncodeToString([]byte("sam:opensesame9"))
	file, _ := recorded(t, e, egress.Header{}, func(s *network.Session) {
		fetch(t, s, "GET", base+"/", map[string]string{"Authorization": "Basic " + basic}, "")
	})
	if strings.Contains(file, "opensesame9") || strings.Contains(file, basic) ||
		!strings.Contains(file, "Basic {{credential:1}}") {
		t.Error(file)
	}
}

// A value that looks like the rest of a placeholder is found behind a brace.
func TestValuesThatLookLikePlaceholders(t *testing.T) {
	const value = "secret:of-the-house}}"
	hidden, shown := egress.Hidden("{{"+value+" {{{{literal:"+value, value, value, redact.Forms(value))
	if strings.Contains(hidden, "of-the-house") || shown != "{{"+value+" {{{{literal:"+value {
		t.Errorf("%q, %q", hidden, shown)
	}
}

// What the end of a run broke off is not what a server answered.
func TestCancelledRequestsAreNotRecorded(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	_, review := recorded(t, e, egress.Header{}, func(s *network.Session) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if text, errno := s.Handle(ctx, abi.CallNetworkRequest,
			frame(`{"method":"GET","url":"`+base+`"}`, "")); errno != abi.ECANCELED {
			t.Errorf("%s %s", errno, text)
		}
	})
	if review.Exchanges != 0 {
		t.Errorf("%+v", review)
	}
}
