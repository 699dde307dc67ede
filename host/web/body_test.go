package web_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/web"
)

type inner struct {
	A int `json:"a"`
}

type embedded struct {
	Name string `json:"name"`
}

type body struct {
	embedded
	Count *int           `json:"count"`
	Inner inner          `json:"inner"`
	Open  map[string]any `json:"open"`
	Tags  []string       `json:"tags"`
	Not   string         `json:"-"`
}

// TestBody: what is a body, and what is not.
func TestBody(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/x", Handle: func(c *fiber.Ctx) error {
		var b body
		if err := web.Body(c, &b); err != nil {
			return err
		}
		return web.JSON(c, 200, map[string]any{"name": b.Name, "count": b.Count})
	}}, web.Route{Method: "POST", Path: "/v1/open", Handle: func(c *fiber.Ctx) error {
		var b body
		if err := web.OpenBody(c, &b); err != nil {
			return err
		}
		return ok(c)
	}})
	deep := func(n int) string {
		return `{"open":` + strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n) + `}`
	}
	for _, c := range []struct {
		what, body string
		headers    []string
		status     int
		code       string
		detail     string // in the answer
	}{
		{"all", `{"name":"n","count":3,"inner":{"a":1},"open":{"x":[]},"tags":["t"]}`, nil, 200, "", `"count":3,"name":"n"`},
		{"absent", "", nil, 200, "", ""},
		{"empty", `{}`, nil, 200, "", ""},
		{"charset", `{}`, []string{"Content-Type: application/json; charset=UTF-8"}, 200, "", ""},
		{"deep enough", deep(63), nil, 200, "", ""},
		{"too deep", deep(64), nil, 400, "validation_error", ""},
		{"bomb", strings.Repeat("[", 500_000), nil, 400, "validation_error", ""},
		{"twice", `{"name":"a","name":"b"}`, nil, 400, "validation_error", ""},
		{"twice, spelled otherwise", `{"name":"a","n\u0061me":"b"}`, nil, 400, "validation_error", ""},
		{"twice inside", `{"open":{"x":1,"x":2}}`, nil, 400, "validation_error", ""},
		{"unknown", `{"nmae":"a","z":1}`, nil, 400, "validation_error", `"unknown":["nmae","z"]`},
		{"other case", `{"Name":"a"}`, nil, 400, "validation_error", `"unknown":["Name"]`},
		{"not a member", `{"Not":"a"}`, nil, 400, "validation_error", `"unknown":["Not"]`},
		{"UTF-8", "{\"name\":\"\xff\"}", nil, 400, "validation_error", ""},
		{"half a pair", `{"name":"\ud800"}`, nil, 400, "validation_error", ""},
		{"BOM", "\xef\xbb\xbf{}", nil, 400, "validation_error", ""},
		{"array", `[]`, nil, 400, "validation_error", ""},
		{"null", `null`, nil, 400, "validation_error", ""},
		{"two", `{}{}`, nil, 400, "validation_error", ""},
		{"comment", `{/**/}`, nil, 400, "validation_error", ""},
		{"cut", `{"name":"a`, nil, 400, "validation_error", ""},
		{"type", `{"count":"hunter2"}`, nil, 400, "validation_error", `"path":"count"`},
		{"type inside", `{"inner":{"a":"hunter2"}}`, nil, 400, "validation_error", `"path":"inner.a"`},
		{"fraction", `{"count":1.5}`, nil, 400, "validation_error", `"path":"count"`},
		{"range", `{"count":99999999999999999999}`, nil, 400, "validation_error", `"path":"count"`},
		{"form", `name=a`, []string{"Content-Type: application/x-www-form-urlencoded"}, 415, "unsupported_media_type", ""},
		{"text", `{}`, []string{"Content-Type: text/plain"}, 415, "unsupported_media_type", ""},
		{"almost", `{}`, []string{"Content-Type: application/jsonp"}, 415, "unsupported_media_type", ""},
		{"no type", `{}`, []string{"Content-Type: "}, 415, "unsupported_media_type", ""},
		{"latin", `{}`, []string{"Content-Type: application/json; charset=latin1"}, 415, "unsupported_media_type", ""},
		{"multipart", `{}`, []string{"Content-Type: multipart/form-data; boundary=x"}, 415, "unsupported_media_type", ""},
	} {
		a := s.do("POST", "/v1/x", c.body, append(c.headers, s.bearer())...)
		a.is(t, c.what, c.status, c.code)
		if !strings.Contains(a.Body, c.detail) || strings.Contains(a.Body, "hunter2") {
			t.Errorf("%s: %s", c.what, a.Body)
		}
	}
	s.do("POST", "/v1/open", `{"nmae":"a"}`, s.bearer()).is(t, "open body", 200, "")
	// Names that come back are bounded.
	if a := s.do("POST", "/v1/x", `{"`+strings.Repeat("x", 100_000)+`":1}`, s.bearer()); a.Status != 400 ||
		len(a.Body) > 1000 {
		t.Errorf("%d, %d bytes", a.Status, len(a.Body))
	}
}

// TestBodyCap: 1 MiB, and 64 MiB where something is uploaded, with and without an
// announced length; the connection is not used again.
func TestBodyCap(t *testing.T) {
	size := func(c *fiber.Ctx) error {
		b, err := web.RawBody(c)
		if err != nil {
			return err
		}
		return web.JSON(c, 200, len(b))
	}
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/x", Handle: size},
		web.Route{Method: "POST", Path: "/v1/up", Upload: true, Handle: size},
		web.Route{Method: "POST", Path: "/v1/lazy", Handle: ok})
	for _, c := range []struct {
		path string
		n    int
		want int
	}{{"/v1/x", web.MaxBody, 200}, {"/v1/x", web.MaxBody + 1, 413}, {"/v1/x", 3 << 20, 413}, {"/v1/up", 3 << 20, 200},
		{"/v1/up", web.MaxUpload + 1, 413}} {
		data := strings.Repeat("x", c.n)
		head := "POST " + c.path + " HTTP/1.1\r\nHost: " + s.addr + "\r\n" + s.bearer() + "\r\n"
		var chunks strings.Builder
		for rest := data; rest != ""; {
			n := min(len(rest), 60_000)
			fmt.Fprintf(&chunks, "%x\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
		for how, request := range map[string]string{
			"length": head + fmt.Sprintf("Content-Length: %d\r\n\r\n", c.n) + data,
			"chunks": head + "Transfer-Encoding: chunked\r\n\r\n" + chunks.String() + "0\r\n\r\n",
		} {
			all := s.raw(request + s.request("GET", "/v1/x", "", s.bearer()))
			if len(all) == 0 && c.want == 413 {
				continue // it was closed while we still wrote, and the answer was lost with it
			}
			if len(all) == 0 || all[0].Status != c.want {
				t.Errorf("%s, %d bytes in %s: %v", c.path, c.n, how, all)
				continue
			}
			if n := len(all); c.want == 413 && n != 1 || c.want == 200 && n != 2 {
				t.Errorf("%s, %d bytes in %s: %d answers", c.path, c.n, how, n)
			}
		}
	}
	// An announced length is enough for 413.
	s.raw("POST /v1/x HTTP/1.1\r\nHost: " + s.addr + "\r\n" + s.bearer() + "\r\nContent-Length: 1048577\r\n\r\n" +
		strings.Repeat("x", 10_000))[0].is(t, "announced", 413, "payload_too_large")
	// A body that nobody read is not the next request.
	smuggled := s.request("GET", "/v1/x", "", s.bearer())
	for _, credential := range []string{s.bearer(), "X-No: credential"} {
		if all := s.raw(s.request("POST", "/v1/lazy", smuggled+strings.Repeat("x", 100_000), credential) +
			smuggled); len(all) != 1 {
			t.Errorf("%d answers to one request with an unread body", len(all))
		}
	}
}

// TestWipe: nothing is left of a body that was wiped, and the connection goes on,
// also when a handler asks the Ctx for the body.
func TestWipe(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/x", Handle: func(c *fiber.Ctx) error {
		var b struct {
			Value string `json:"value"`
		}
		if err := web.Body(c, &b); err != nil {
			return err
		}
		raw, err := web.RawBody(c)
		if err != nil {
			return err
		}
		before := string(c.Body())
		web.Wipe(c)
		if !strings.Contains(before, "hunter2") || strings.Contains(string(raw)+string(c.Body()), "hunter2") ||
			b.Value != "hunter2" {
			return web.Invalid()
		}
		return ok(c)
	}})
	one := s.request("POST", "/v1/x", `{"value":"hunter2"}`, s.bearer())
	chunked := "POST /v1/x HTTP/1.1\r\nHost: " + s.addr + "\r\n" + s.bearer() +
		"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n" +
		`{"value":"hunter2"}` + "\r\n0\r\n\r\n"
	all := s.raw(one + chunked + one)
	if len(all) != 3 {
		t.Fatalf("%d answers", len(all))
	}
	for i, a := range all {
		if a.Status != 200 {
			t.Errorf("request %d: %d %s", i, a.Status, a.Body)
		}
	}
}

// TestBothLengths: requests whose length can be read in two ways get no second
// reading.
func TestBothLengths(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/x", Handle: ok},
		web.Route{Method: "GET", Path: "/v1/x", Handle: ok})
	head := "POST /v1/x HTTP/1.1\r\nHost: " + s.addr + "\r\n" + s.bearer() + "\r\n"
	next := s.request("GET", "/v1/x", "", s.bearer())
	for what, rest := range map[string]string{
		"length and chunks":  "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
		"two lengths":        "Content-Length: 0\r\nContent-Length: 5\r\n\r\nabcde" + next,
		"negative length":    "Content-Length: -1\r\n\r\n" + next,
		"length with a plus": "Content-Length: +0\r\n\r\n" + next,
	} {
		if all := s.raw(head + rest); len(all) > 1 {
			t.Errorf("%s: %d answers, %d %d", what, len(all), all[0].Status, all[1].Status)
		}
	}
}

// Nobody is asked for a body that no route takes.
func TestExpect(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/x", Handle: ok})
	for length, want := range map[int]string{2 << 30: "HTTP/1.1 413 ", web.MaxUpload + 1: "HTTP/1.1 413 ",
		web.MaxUpload: "HTTP/1.1 100 ", 2: "HTTP/1.1 100 "} {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c,
			"POST /v1/x HTTP/1.1\r\nHost: %s\r\n%s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", s.addr, s.bearer(),
			length); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Errorf("%d bytes: %q, %v", length, got, err)
		}
	}
}

// A header that goes on in the next line is refused: a proxy may read it in another way.
func TestFoldedHeaders(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/x", Handle: ok})
	for _, fold := range []string{"X-A: a\r\n b\r\n", "X-A: a\r\n\tb\r\n", "X-A: 1\r\n Host: other.example\r\n",
		"Cookie: a=1;\n b=2\r\n"} {
		all := s.raw("GET /v1/x HTTP/1.1\r\nHost: " + s.addr + "\r\n" + fold + s.bearer() + "\r\n\r\n" +
			s.request("GET", "/v1/x", "", s.bearer()))
		if len(all) != 1 || all[0].Status != 400 {
			t.Errorf("%q: %v", fold, all)
		}
	}
}
