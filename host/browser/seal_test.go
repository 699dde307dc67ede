package browser_test

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/egress"
)

const handle = "sluice-sealed-v1-p4d2w7h3m6t5z2q7c4x3v6b2na"

func fillAt(origins ...string) (out []abi.Destination) {
	for _, o := range origins {
		out = append(out, abi.Destination{Origin: o, Placements: []string{"browser_fill"}})
	}
	return out
}

// Where a value may be typed, and where not.
func TestSealedPlaces(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	d.ok(t, `{"verb":"open"}`)
	to := append(fillAt("https://login.example", "https://frame.example:8443"),
		abi.Destination{Origin: "https://api.example", Placements: []string{"header:authorization"}})
	d.Seal("password", handle, "correct horse", nil, to)
	user := handle[:len(handle)-1] + "b"
	d.Seal("username", user, "somebody", nil, to)
	password := page.Node{Ref: "n1", Tag: "input", Type: "password", Secret: true}
	for _, c := range []struct {
		name, handle, top, frame string
		field                    page.Node
		code                     string
	}{
		{"a password field", handle, "https://login.example", "https://login.example", password, ""},
		{"an approved frame in it", handle, "https://login.example", "https://frame.example:8443", password, ""},
		{"its autocomplete", handle, "https://login.example", "https://login.example",
			page.Node{Type: "text", Autocomplete: "section-a current-password"}, ""},
		{"the name's own field", user, "https://login.example", "https://login.example",
			page.Node{Type: "text", Autocomplete: "username"}, ""},
		{"a field of mail addresses", user, "https://login.example", "https://login.example", page.Node{Type: "email"}, ""},
		{"another frame", handle, "https://login.example", "https://evil.example", password, "sealed_destination_denied"},
		{"another page around it", handle, "https://evil.example", "https://login.example", password,
			"sealed_destination_denied"},
		{"another scheme", handle, "http://login.example", "http://login.example", password, "sealed_destination_denied"},
		{"another port", handle, "https://login.example:444", "https://login.example:444", password,
			"sealed_destination_denied"},
		{"a name below", handle, "https://a.login.example", "https://a.login.example", password, "sealed_destination_denied"},
		{"no origin", handle, "null", "null", password, "sealed_destination_denied"},
		{"approved for another placement", handle, "https://api.example", "https://api.example", password,
			"sealed_placement_denied"},
		{"a search field", handle, "https://login.example", "https://login.example", page.Node{Type: "search"},
			"sealed_placement_denied"},
		{"a password in a field that is read", handle, "https://login.example", "https://login.example",
			page.Node{Type: "text", Autocomplete: "username"}, "sealed_placement_denied"},
		{"a text area", user, "https://login.example", "https://login.example", page.Node{Tag: "textarea"},
			"sealed_placement_denied"},
		{"a foreign handle", "sluice-sealed-v1-aaaaaaaaaaaaaaaaaaaaaaaaaa", "https://login.example", "https://login.example",
			password, "sealed_handle_unknown"},
	} {
		value, refused := d.worker.Secrets.Value(c.handle, c.top, c.frame, c.field)
		if got := ""; refused != nil {
			got = refused.Code
			if got != c.code || value != "" {
				t.Errorf("%s: %s %q", c.name, got, value)
			}
		} else if c.code != "" || value == "" {
			t.Errorf("%s: %q was given", c.name, value)
		}
	}
	if len(d.log.used) == 0 || d.log.used[0] != "password https://login.example browser_fill" {
		t.Errorf("%v", d.log.used)
	}
	if refs := d.Sealed(); len(refs) != 2 { // n1 and the nameless
		t.Errorf("%v", refs)
	}
	d.refused(t, `{"verb":"type","target":{"selector":{"role":"textbox"}},"value":{"plain":"`+handle+`"}}`,
		"sealed_placement_denied", abi.EDENIED)
}

// Values are handles in everything that comes back, and it stays JSON.
func TestHide(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	value := `pa"ss\wörd-1`
	forms := [][]byte{[]byte(value), []byte(`pa\"ss\\wörd-1`), []byte("pa%22ss%5Cw%C3%B6rd-1"),
		[]byte(base64.RawStdEncoding.EncodeToString([]byte(value)))}
	d.Seal("password", handle, value, forms, nil)
	d.Seal("pin", "H-pin", "4711", [][]byte{[]byte("4711")}, nil)
	d.Seal("number", "H-number", "123456789", [][]byte{[]byte("123456789")}, nil)
	d.Seal("short", "H-short", "abc", [][]byte{[]byte("abc")}, nil)
	quoted, _ := json.Marshal(value)
	for give, want := range map[string]string{
		`{"a":` + string(quoted) + `}`:                                        `{"a":"` + handle + `"}`,
		`{"a":"x` + string(quoted[1:len(quoted)-1]) + `y","b":[1,true,null]}`: `{"a":"x` + handle + `y","b":[1,true,null]}`,
		`{"a":"pa\u0022ss\u005cw\u00f6rd-1"}`:                                 `{"a":"` + handle + `"}`,
		`["?q=pa%22ss%5Cw%C3%B6rd-1&x=1"]`:                                    `["?q=` + handle + `&x=1"]`,
		`["` + base64.RawStdEncoding.EncodeToString([]byte(value)) + `"]`:     `["` + handle + `"]`,
		`{"a":"4711","b":"14711","c":4711,"d":"4711 "}`:                       `{"a":"H-pin","b":"14711","c":"H-pin","d":"4711 "}`,
		`{"a":123456789,"b":-123456789.5,"c":12345678}`:                       `{"a":"H-number","b":"-H-number.5","c":12345678}`,
		`{"` + string(quoted[1:len(quoted)-1]) + `":"abc"}`:                   `{"` + handle + `":"abc"}`,
		`{}`: `{}`, `"x"`: `"x"`,
	} {
		if got := string(d.Hide([]byte(give))); got != want {
			t.Errorf("%s: %s", give, got)
		}
	}
}

// Whatever a value is, hiding it leaves JSON without it.
func TestHideAnything(t *testing.T) {
	pieces := []string{`"`, `\`, `":`, `true`, `null`, `,`, `{`, `}`, `1234`, `aaaa`, "\n", "é", "\u2028", `success`, ` `}
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		return b.String()
	}
	for range 2000 {
		d := &desk{}
		d.Session = (&browser.Host{}).Session(browser.SessionOptions{})
		value := text(1 + random.IntN(6))
		d.Seal("f", handle, value, [][]byte{[]byte(value)}, nil)
		reply, err := json.Marshal(map[string]any{"success": true, "a": text(3) + value + text(3),
			value: []any{value, 12, text(5)}})
		if err != nil {
			t.Fatal(err)
		}
		hidden := d.Hide(reply)
		var out any
		if err := json.Unmarshal(hidden, &out); err != nil {
			t.Fatalf("value %q: %s: %v", value, hidden, err)
		}
		if len(value) >= 8 && holds(out, value) {
			t.Fatalf("value %q is in %s", value, hidden)
		}
	}
}

func holds(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		for _, e := range v {
			if holds(e, text) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if strings.Contains(k, text) || holds(e, text) {
				return true
			}
		}
	}
	return false
}

// A value that a page spreads over elements, one character each or with blanks
// between, is none in a reply; what is beside it stays.
func TestHidePieces(t *testing.T) {
	const long, code, other = "q7Wz-K2mX9pLr4", "483920", "sluice-sealed-v1-bbbbbbbbbbbbbbbbbbbbbbbbbb"
	d := newDesk(t, nil)
	defer d.end(t)
	d.Seal("password", handle, long, [][]byte{[]byte(long)}, nil)
	d.Seal("code", other, code, [][]byte{[]byte(code)}, nil)
	spelled := func(s, sep string) string { return strings.Join(strings.Split(s, ""), sep) }
	each := func(s string) string {
		return `{"ref":"n","text":"` + spelled(s, `","order":1},{"ref":"n","text":"`) + `","order":2}`
	}
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a list": {`{"values":["a","` + spelled(long, `","`) + `","z"],"n":3}`,
			[]string{`"a"`, `"z"`, `"n":3`, handle}},
		"elements":       {`{"nodes":[` + each(long) + `],"text":"kept"}`, []string{`"kept"`, `"order":2`, handle}},
		"boxes":          {`{"nodes":[` + each(code) + `],"text":"kept"}`, []string{`"kept"`, other}},
		"pairs":          {`["q7Wz","-K2mX9","pLr4","end"]`, []string{`"end"`, handle}},
		"blanks":         {`{"text":"` + spelled(long, " ") + `"}`, []string{handle}},
		"lines":          {`{"text":"` + spelled(long, `\n`) + `","other":"a b c"}`, []string{handle, `"a b c"`}},
		"blanks in code": {`{"text":"` + spelled(code, " ") + `"}`, []string{other}},
	} {
		got := string(d.Hide([]byte(tt.text)))
		var parsed any
		if err := json.Unmarshal([]byte(got), &parsed); err != nil {
			t.Errorf("%s: %v: %s", name, err, got)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", name, want, got)
			}
		}
		for _, c := range []string{`"W"`, `"X"`, `"8"`, `"-K2mX9"`, "q 7", `q\n7`, "4 8"} {
			if strings.Contains(got, c) {
				t.Errorf("%s: %s is left in %s", name, c, got)
			}
		}
	}
	const innocent = `{"values":["a","b c","4839","201"],"order":[4,8,3,9,2,0]}`
	if got := string(d.Hide([]byte(innocent))); got != innocent {
		t.Errorf("%s becomes %s", innocent, got)
	}
}

// A page that repeats a value as often as a reply can hold it costs no more than
// reading it.
func TestHideMany(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	var forms [][]byte
	for i := range 20 {
		forms = append(forms, []byte("absent-form-"+strings.Repeat("x", i)))
	}
	d.Seal("f", handle, "12345678", append(forms, []byte("12345678")), nil)
	text := []byte(`["` + strings.Repeat("12345678", 128<<10) + `"]`)
	if strings.Contains(string(d.Hide(text)), "12345678") {
		t.Error("the value is still there")
	}
}

// Each host is decided about, and no value is told.
func TestCookies(t *testing.T) {
	type put struct {
		host  string
		names []string
	}
	var puts []put
	d := newDesk(t, func(_ *browser.Options, o *browser.SessionOptions) {
		o.Request.CookieHandoff = []string{"a.example", "b.example", "c.example"}
		o.Policy = policy(t, "a.example", "http://c.example:8080")
		o.Cookies = func(host string, cookies []*http.Cookie) int {
			p := put{host: host}
			for _, c := range cookies {
				p.names = append(p.names, c.Name+"@"+c.Domain)
			}
			puts = append(puts, p)
			return len(cookies)
		}
	})
	defer d.end(t)
	d.ok(t, `{"verb":"open"}`)
	soon := time.Now().Add(time.Hour).Truncate(time.Second)
	d.fakes[0].cookies = []*http.Cookie{
		{Name: "sid", Value: "topsecret", Domain: "a.example", Expires: soon},
		{Name: "wide", Value: "v", Domain: ".a.example"},
		{Name: "old", Value: "v", Domain: "a.example", Expires: time.Now().Add(-time.Hour)},
		{Name: "other", Value: "v", Domain: "z.example"},
		{Name: "parent", Value: "v", Domain: ".example"},
		{Name: "near", Value: "v", Domain: "xa.example"},
	}
	out, errno := d.call(t, `{"verb":"cookies","to":"network","hosts":["a.example","b.example","c.example","d.example","A.EXAMPLE."]}`)
	text, _ := json.Marshal(out)
	if errno != abi.OK || strings.Contains(string(text), "topsecret") {
		t.Fatalf("%s %s", errno, text)
	}
	var got struct {
		Granted []struct {
			Host  string
			Count int
		}
		Refused []struct{ Host, Reason string }
		Expires *int64 `json:"expires_at"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Granted) == 0 || got.Granted[0].Host != "a.example" || got.Granted[0].Count != 3 || got.Expires == nil ||
		*got.Expires != soon.UnixMilli() {
		t.Errorf("granted %+v", got)
	}
	if strings.Join(puts[0].names, " ") != "sid@ wide@.a.example parent@.example" {
		t.Errorf("%v: a host-only cookie became wider, or a foreign one was taken", puts)
	}
	reasons := map[string]string{}
	for _, r := range got.Refused {
		reasons[r.Host] = r.Reason
	}
	if reasons["b.example"] != "not_in_policy" || reasons["c.example"] != "" && reasons["c.example"] != "no_cookies" ||
		reasons["d.example"] != "not_declared" {
		t.Errorf("refused %v", reasons)
	}
	if events := d.log.of("run.browser_cookie_handoff"); len(events) != 5 || events[0].data["granted"] != true ||
		events[1].data["reason"] != "not_in_policy" {
		t.Errorf("%+v", events)
	}
}

func policy(t *testing.T, entries ...string) *egress.Policy {
	t.Helper()
	var all []egress.Entry
	for _, text := range entries {
		e, err := egress.ParseEntry(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return egress.NewPolicy(all...)
}

// Which addresses a tab may load.
func TestAllowed(t *testing.T) {
	p := policy(t, "a.example", "http://b.example:8080", "[::1]:8443", "*.wild.example")
	for address, want := range map[string]error{
		"https://a.example/x?y#z": nil, "https://a.example:443/": nil, "HTTPS://A.EXAMPLE/": nil, "about:blank": nil,
		"http://b.example:8080/": nil, "https://[::1]:8443/": nil, "https://x.wild.example/": nil,
		"http://a.example/": page.ErrHost, "https://a.example:444/": page.ErrHost, "https://b.example/": page.ErrHost,
		"https://u:p@a.example/": page.ErrHost, "https://a.example.evil.example/": page.ErrHost, "https://": page.ErrHost,
		"https://wild.example/": page.ErrHost, "https://a.example:x/": page.ErrHost, "%": page.ErrHost,
		"file:///etc/passwd": page.ErrScheme, "chrome://version": page.ErrScheme, "javascript:1": page.ErrScheme,
		"data:text/html,x": page.ErrScheme, "about:config": page.ErrScheme, "view-source:https://a.example/": page.ErrScheme,
		"blob:https://a.example/1": page.ErrScheme, "": page.ErrScheme, "ftp://a.example/": page.ErrScheme,
	} {
		if got := browser.Allowed(p, address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
	if browser.Allowed(nil, "https://a.example/") == nil {
		t.Error("no policy allows something")
	}
}

// Names lead nowhere, and what a browser wrote is opened only if it is a file
// of its own directory.
func TestNamesOfFiles(t *testing.T) {
	for give, want := range map[string]string{"a.pdf": "a.pdf", "/etc/passwd": "passwd", `C:\x\y.txt`: "y.txt",
		"..": "file", "": "file", "a/": "a", "x\x00y\n": "x_y_",
		strings.Repeat("é", 200): strings.Repeat("é", 127) + "_"} {
		if got := browser.LastElement(give); got != want {
			t.Errorf("%q: %q", give, got)
		}
	}
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	for _, f := range []string{outside, filepath.Join(dir, "plain")} {
		if err := os.WriteFile(f, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{filepath.Join(dir, "plain"): true, filepath.Join(dir, "link"): false,
		outside: false, dir: false, "": false, filepath.Join(dir, "..", "x"): false} {
		f, err := browser.OpenWithin(dir, name)
		if (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil {
			_ = f.Close()
		}
	}
}
