package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// table are the routes of the API, as they are served.
func table(t *testing.T) []web.Route {
	t.Helper()
	var out []web.Route
	for _, r := range shared.d.Server.App().Routes() {
		if strings.HasPrefix(r.Path, "/v1/") || strings.HasPrefix(r.Path, "/.well-known") {
			out = append(out, r)
		}
	}
	if len(out) < 50 {
		t.Fatalf("%d routes", len(out))
	}
	return out
}

// filled is the path of a route with things that do not exist in its parameters,
// but for those given.
func filled(r web.Route, with ...string) string {
	parts := strings.Split(r.Path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			parts[i] = "none"
			for j := 0; j < len(with); j += 2 {
				if with[j] == name {
					parts[i] = with[j+1]
				}
			}
		}
	}
	path := strings.Join(parts, "/")
	if r.Verb != "" {
		path += ":" + r.Verb
	}
	return path
}

func writes(r web.Route) bool { return r.Method != "GET" && r.Method != "DELETE" }

// eachRoute runs a test for every route, with a body that is an object where one
// may be sent.
func eachRoute(t *testing.T, f func(t *testing.T, c *client, r web.Route, body any)) {
	c := served(t)
	for _, r := range table(t) {
		t.Run(r.Method+" "+r.Template(), func(t *testing.T) {
			own := *c
			own.t = t
			var body any
			if writes(r) {
				body = "{}"
			}
			f(t, &own, r, body)
		})
	}
}

// Without a credential, or with one that is none, only the routes that are open
// answer.
func TestUnauthenticated(t *testing.T) {
	open := map[string]bool{"/.well-known/openwop": true, "/v1/openapi.json": true, "/v1/asyncapi.yaml": true,
		"/v1/interrupts/:token": true}
	eachRoute(t, func(t *testing.T, c *client, r web.Route, body any) {
		if r.Open != open[r.Path] {
			t.Errorf("open: %v", r.Open)
		}
		if r.Open {
			return
		}
		for _, k := range []string{"", "x", "slk_live_none_none", c.key + "x", strings.ToUpper(c.key)} {
			a := c.as(k).do(r.Method, filled(r), body).want(401, "unauthenticated")
			if a.header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(string(a.body), "slk_live_none") {
				t.Errorf("%v %s", a.header, a.body)
			}
		}
	})
}

// Every other scope together does not do; the scope that is missing is named,
// before anything is said of the resource.
func TestScopes(t *testing.T) {
	c := served(t)
	without := map[access.Scope]string{}
	for _, s := range all {
		var rest []access.Scope
		for _, other := range all {
			if other != s {
				rest = append(rest, other)
			}
		}
		without[s] = key(t, access.NewKey{Scopes: rest})
	}
	_ = c
	eachRoute(t, func(t *testing.T, c *client, r web.Route, body any) {
		if r.Scope == "" {
			if !r.Open && !r.Owner {
				t.Error("any key may do this")
			}
			return
		}
		a := c.as(without[r.Scope]).do(r.Method, filled(r), body).want(403, "forbidden")
		if a.text("details", "scopeRequired") != string(r.Scope) {
			t.Errorf("%s", a.body)
		}
	})
}

// What is a foreign connection's looks like what does not exist.
func TestForeign(t *testing.T) {
	c := served(t)
	connection(t, "foreign", "live")
	k := key(t, access.NewKey{Scopes: all, ConnectionIDs: []store.ConnectionID{"another"}})
	eachRoute(t, func(t *testing.T, _ *client, r web.Route, body any) {
		if !strings.Contains(r.Path, ":connectionId") {
			return
		}
		own := c.as(k)
		own.t = t
		there := own.do(r.Method, filled(r, "connectionId", "foreign"), body).want(404, "not_found")
		nowhere := own.do(r.Method, filled(r), body).want(404, "not_found")
		if string(there.body) != string(nowhere.body) {
			t.Errorf("%s, %s", there.body, nowhere.body)
		}
	})
}

// A method that a path does not have is 405 with those it has.
func TestMethods(t *testing.T) {
	c := served(t)
	has := map[string]map[string]bool{}
	for _, r := range shared.d.Server.App().Routes() {
		if has[r.Template()] == nil {
			has[r.Template()] = map[string]bool{}
		}
		has[r.Template()][r.Method] = true
	}
	for _, r := range table(t) {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if has[r.Template()][method] {
				continue
			}
			a := c.do(method, filled(r), nil)
			if r.Verb != "" && method != "OPTIONS" {
				if a.status != 404 && a.status != 405 {
					t.Errorf("%s %s: %d", method, r.Template(), a.status)
				}
				continue
			}
			allow := a.header.Get("Allow")
			if a.status != 405 || !strings.Contains(", "+allow+",", ", "+r.Method+",") ||
				a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: %d, Allow: %s", method, r.Template(), a.status, allow)
			}
		}
	}
}

// target is a path of a route where every thing exists that is looked for before
// the body is.
func target(t *testing.T, r web.Route) (path string, ok bool) {
	t.Helper()
	connection(t, "target", "live")
	switch {
	case strings.Contains(r.Path, ":runId"), strings.Contains(r.Path, ":token"),
		strings.Contains(r.Path, ":connectorName"):
		return "", false
	}
	return filled(r, "connectionId", "target"), true
}

// bodied are the routes that read a body.
func bodied(r web.Route) bool {
	d, err := described()
	if err != nil {
		return false
	}
	op := member(any(d.doc), "paths", d.find(filled(r)), strings.ToLower(r.Method))
	return member(op, "requestBody") != nil && !r.Upload
}

// Bodies that are not as they must be, by their status; nothing of them comes
// back.
func TestBodies(t *testing.T) {
	eachRoute(t, func(t *testing.T, c *client, r web.Route, _ any) {
		path, ok := target(t, r)
		if !ok || !bodied(r) || r.Owner { // no key gets there
			return
		}
		for _, body := range []string{`{`, `[]`, `"x"`, `{"a":1,"a":2}`, `{"a":"` + "\xff" + `"}`,
			strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), `{} {}`, `nul`} {
			if a := c.do(r.Method, path, body); a.status != 400 || a.text("error") != "validation_error" {
				t.Errorf("%.20s: %d %s", body, a.status, a.body)
			}
		}
		a := c.do(r.Method, path, `{"zzz":"SECRET","aaa":1}`).want(400, "validation_error")
		if fmt.Sprint(a.member("details", "unknown")) != "[aaa zzz]" || strings.Contains(string(a.body), "SECRET") {
			t.Errorf("%s", a.body)
		}
		for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1",
			"multipart/form-data", "x"} {
			if r.Upload && media == "multipart/form-data" {
				continue
			}
			c.do(r.Method, path, "{}", header("Content-Type", media)).want(415, "unsupported_media_type")
		}
		c.do(r.Method, path, `{"a":"`+strings.Repeat("x", 1<<20)+`"}`).want(413, "payload_too_large")
	})
}

// A name that is not on the list is answered on no route, whatever else is said
// of it.
func TestHosts(t *testing.T) {
	eachRoute(t, func(t *testing.T, c *client, r web.Route, body any) {
		for _, host := range []string{"evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.nip.io"} {
			c.do(r.Method, filled(r), body, func(q *http.Request) { q.Host = host },
				header("X-Forwarded-Host", strings.TrimPrefix(c.base, "http://"))).want(421, "host_not_allowed")
		}
	})
}

// What every answer carries, and what none does.
func TestHeaders(t *testing.T) {
	eachRoute(t, func(t *testing.T, c *client, r web.Route, body any) {
		for _, a := range []*answer{c.do(r.Method, filled(r), body), c.as("").do(r.Method, filled(r), body)} {
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
				if got := a.header.Get(name); got != want {
					t.Errorf("%d %s: %q", a.status, name, got)
				}
			}
			if a.header.Get("X-Request-Id") == "" {
				t.Error("no request id")
			}
			for _, name := range []string{"Server", "Access-Control-Allow-Origin", "Set-Cookie"} {
				if got := a.header.Get(name); got != "" {
					t.Errorf("%s: %s", name, got)
				}
			}
		}
	})
}

// An idempotency key that is no key is refused on every route that takes one, and
// one that was used with another body.
func TestIdempotencyKeys(t *testing.T) {
	eachRoute(t, func(t *testing.T, c *client, r web.Route, body any) {
		switch {
		case r.Method == "GET" || r.Open || r.Verb == "inspect" || r.Path == "/v1/query":
			if r.Keyed {
				t.Error("keyed")
			}
			return
		case r.Owner: // no key gets there; TestViews has a session
			return
		case !r.Keyed:
			t.Fatal("it changes something, and takes no key")
		}
		c.do(r.Method, filled(r), body, once(strings.Repeat("k", 256))).want(400, "validation_error")
		c.do(r.Method, filled(r), body, once("ü")).want(400, "validation_error")
		k := once("table-" + t.Name())
		first := c.do(r.Method, filled(r), body, k)
		if first.header.Get("openwop-Idempotent-Replay") != "false" {
			t.Errorf("the first: %v", first.header)
		}
		if first.status == 400 { // not kept
			return
		}
		again := c.do(r.Method, filled(r), body, k)
		if again.header.Get("openwop-Idempotent-Replay") != "true" || again.status != first.status ||
			string(again.body) != string(first.body) {
			t.Errorf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
		}
		c.do(r.Method, filled(r), `{"other":1}`, k).want(409, "idempotency_key_mismatch")
	})
}

// HEAD of a stream is refused, of anything else answered without a body; the
// connection can be used again.
func TestHead(t *testing.T) {
	c := served(t)
	connection(t, "head", "live")
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for _, r := range table(t) {
		if r.Method != "GET" {
			continue
		}
		for _, method := range []string{"HEAD", "GET"} {
			path := filled(r)
			if method == "GET" {
				path = "/v1/openapi.json" // on the same connection, to see that it is in order
			}
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", method, path,
				strings.TrimPrefix(c.base, "http://"), c.key)
			res, err := http.ReadResponse(in, &http.Request{Method: method})
			if err != nil {
				t.Fatalf("%s %s: %v", method, r.Template(), err)
			}
			var rest strings.Builder
			if _, err := bufio.NewReader(res.Body).WriteTo(&rest); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			switch {
			case method == "GET" && (res.StatusCode != 200 || !strings.HasPrefix(rest.String(), "{")):
				t.Fatalf("behind HEAD %s: %d", r.Template(), res.StatusCode)
			case method == "HEAD" && r.Stream && (res.StatusCode != 405 || res.Header.Get("Allow") != "GET"):
				t.Errorf("%s: %d", r.Template(), res.StatusCode)
			}
		}
	}
}
