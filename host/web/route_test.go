package web_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

func table() []web.Route {
	say := func(what string) fiber.Handler {
		return func(c *fiber.Ctx) error {
			id, err := web.ID(c, "runId")
			if err != nil {
				return err
			}
			return web.JSON(c, 200, what+" "+id)
		}
	}
	return []web.Route{
		{Method: "GET", Path: "/v1/runs/:runId", Handle: say("read")},
		{Method: "POST", Path: "/v1/runs", Handle: ok},
		{Method: "GET", Path: "/v1/runs", Handle: ok},
		{Method: "POST", Path: "/v1/runs/:runId/cancel", Handle: say("cancel")},
		{Method: "POST", Path: "/v1/runs/:runId", Verb: "pause", Handle: say("pause")},
		{Method: "POST", Path: "/v1/runs/:runId", Verb: "resume", Handle: say("resume")},
		{Method: "POST", Path: "/v1/connectors", Verb: "inspect", Handle: ok},
		{Method: "GET", Path: "/v1/runs/:runId/events", Stream: true, Handle: func(c *fiber.Ctx) error {
			return web.Stream(c, web.EventStream, words("hello"))
		}},
		{Method: "GET", Path: "/v1/records/:stream/:key", Handle: func(c *fiber.Ctx) error {
			key, err := web.Param(c, "key")
			if err != nil {
				return err
			}
			return web.JSON(c, 200, key)
		}},
		{Method: "GET", Path: "/ui/static/*", Open: true, Handle: func(c *fiber.Ctx) error {
			name, err := web.Param(c, "*")
			if err != nil {
				return err
			}
			return web.JSON(c, 200, name)
		}},
	}
}

// TestRouting: verbs, what is not there, and what is there for other methods.
func TestRouting(t *testing.T) {
	s := serve(t, nil, table()...)
	for _, c := range []struct {
		method, path string
		status       int
		says         string // body, code or Allow
	}{
		{"GET", "/v1/runs/run_1", 200, `"read run_1"`},
		{"HEAD", "/v1/runs/run_1", 200, ``},
		{"POST", "/v1/runs/run_1:pause", 200, `"pause run_1"`},
		{"POST", "/v1/runs/run_1:resume", 200, `"resume run_1"`},
		{"POST", "/v1/connectors:inspect", 200, `{"ok":"yes"}`},
		{"POST", "/v1/runs/run_1:explode", 404, "not_found"},
		{"POST", "/v1/runs/run_1%3Apause", 405, "GET, HEAD"},
		{"POST", "/v1/runs/run_1%3apause", 405, "GET, HEAD"},
		{"GET", "/v1/runs/run_1:pause", 404, "not_found"},
		{"GET", "/v1/runs/run_1%3Apause", 404, "not_found"},
		{"POST", "/v1/runs/run_1:pause:pause", 404, "not_found"},
		{"POST", "/v1/runs/:pause", 404, "not_found"},
		{"POST", "/v1/runs/run_1:pause/", 404, "not_found"},
		{"DELETE", "/v1/runs", 405, "POST, GET, HEAD"},
		{"POST", "/v1/runs/run_1/events", 405, "GET"},
		{"DELETE", "/v1/runs/run_1/cancel", 405, "POST"},
		{"GET", "/v1/runs/", 404, "not_found"},
		{"GET", "/V1/runs", 404, "not_found"},
		{"GET", "/v1/Runs", 404, "not_found"},
		{"GET", "/v1//runs", 404, "not_found"},
		{"GET", "/v1/../v1/runs", 404, "not_found"},
		{"GET", "/v1/runs/..%2f..%2fetc", 404, "not_found"},
		{"GET", "/runs", 400, "validation_error"},
		{"GET", "/connectors", 400, "validation_error"},
		{"POST", "/connectors:inspect", 400, "validation_error"},
		{"POST", "/runs/run_1:pause", 400, "validation_error"},
		{"GET", "/nothing", 404, "not_found"},
		{"GET", "/v2/runs", 404, "not_found"},
		{"TRACE", "/v1/runs", 405, "POST, GET, HEAD"},
		{"GET", "/v1/records/a/b%2Fc", 200, `"b/c"`},
		{"GET", "/v1/records/a/b%252Fc", 200, `"b%2Fc"`},
		{"GET", "/v1/records/a/b%3Ac%20%C3%A4", 200, `"b:c ä"`},
		{"GET", "/v1/records/a/b+c", 200, `"b+c"`},
		{"GET", "/v1/records/a/b%zz", 404, "not_found"},
		{"GET", "/v1/records/a/b%ff", 404, "not_found"},
		{"GET", "/v1/records/a/b%00", 404, "not_found"},
		{"GET", "/v1/records/a/b:c", 404, "not_found"},
		{"GET", "/v1/records/a/%3Cscript%3E%E2%80%A8", 200, `"\u003cscript\u003e\u2028"`},
		{"GET", "/ui/static/a/b.css", 200, `"a/b.css"`},
	} {
		a := s.do(c.method, c.path, "", s.bearer())
		if a.Status != c.status || c.says != a.Body && c.says != a.Error.Error && c.says != a.Header.Get("Allow") {
			t.Errorf("%s %s: %d %s Allow %q, want %d %s", c.method, c.path, a.Status, a.Body,
				a.Header.Get("Allow"), c.status, c.says)
		}
	}
	if a := s.do("GET", "/runs/x?token=secret", ""); a.Error.Details["expected"] != "/v1/runs" {
		t.Errorf("details %v", a.Error.Details)
	}
}

// TestHeaders: what every answer carries, refusals of the framework too.
func TestHeaders(t *testing.T) {
	s := serve(t, nil, table()...)
	requests := map[string]string{
		"bad method":     "BREW / HTTP/1.1\r\nHost: " + s.addr + "\r\n\r\n",
		"bad line":       "nonsense\r\n\r\n",
		"bad header":     "GET / HTTP/1.1\r\nHost: " + s.addr + "\r\nbad\r\n\r\n",
		"long header":    s.request("GET", "/v1/runs", "", "X-Long: "+strings.Repeat("x", 20<<10)),
		"long path":      s.request("GET", "/v1/"+strings.Repeat("x", 20<<10), ""),
		"stream":         s.request("GET", "/v1/runs/r/events", "", s.bearer()),
		"head of stream": s.request("HEAD", "/v1/runs/r/events", "", s.bearer()),
	}
	for _, r := range s.app.Routes() {
		path := strings.NewReplacer(":runId", "run_1", ":stream", "s", ":key", "k", "*", "x").Replace(r.Path)
		if r.Verb != "" {
			path += ":" + r.Verb
		}
		requests[r.Method+r.Path] = s.request(r.Method, path, "", s.bearer())
		requests[r.Method+r.Path+", no credential"] = s.request(r.Method, path, "")
		requests[r.Method+r.Path+", bad host"] = s.request(r.Method, path, "", "Host: evil")
	}
	for what, request := range requests {
		all := s.raw(request)
		if len(all) != 1 {
			t.Errorf("%s: %d answers", what, len(all))
			continue
		}
		h := all[0].Header
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": web.ContentSecurityPolicy, "Server": ""} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", what, name, h.Get(name))
			}
		}
		if !strings.HasPrefix(h.Get("X-Request-Id"), "req_") {
			t.Errorf("%s: X-Request-Id %q", what, h.Get("X-Request-Id"))
		}
		if !strings.Contains(h.Get("Cache-Control"), "no-store") {
			t.Errorf("%s: Cache-Control %q", what, h.Get("Cache-Control"))
		}
		if strings.HasPrefix(what, "bad") || strings.HasPrefix(what, "long") {
			if s := all[0].Status; s < 400 || s > 431 {
				t.Errorf("%s: %d", what, s)
			}
		}
	}
}

// TestProblems: errors and their answers, in one table; what is unexpected is
// said to the log, once, and to nobody else.
func TestProblems(t *testing.T) {
	var fails error
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/x", Handle: func(*fiber.Ctx) error { return fails }},
		web.Route{Method: "GET", Path: "/v1/panic", Handle: func(*fiber.Ctx) error { panic("at the disco") }},
		web.Route{Method: "GET", Path: "/v1/half", Handle: func(c *fiber.Ctx) error {
			_ = web.JSON(c, 200, "half an answer")
			return errors.New("then it broke")
		}})
	for _, c := range []struct {
		err    error
		status int
		code   string
		inside string // details.code
	}{
		{host.Refuse("run_already_active", "x"), 409, "run_already_active", ""},
		{fmt.Errorf("start: %w", host.Refuse("ambiguous_connection", "x").With("connectionIds", []string{"a"})), 409,
			"ambiguous_connection", ""},
		{host.Refuse("grant_expired", "x"), 409, "connection_not_ready", "grant_expired"},
		{host.Refuse("scope_stream_unknown", "x"), 400, "validation_error", "scope_stream_unknown"},
		{host.Refuse("scope_whatever_else", "x"), 400, "validation_error", "scope_whatever_else"},
		{host.Refuse("connection_not_found", "x"), 404, "not_found", "connection_not_found"},
		{host.Refuse("store_no_space", "x"), 503, "unavailable", "store_no_space"},
		{host.Refuse("interrupt_expired", "x"), 410, "interrupt_expired", ""},
		{host.Refuse("precondition_failed", "x"), 412, "precondition_failed", ""},
		{host.Refuse("rate_limited", "x").With("retryAfterMs", 1500), 429, "rate_limited", ""},
		{host.Refuse("no_such_code", "the password is hunter2"), 500, "internal_error", ""},
		{fmt.Errorf("run: %w", store.ErrNotFound), 404, "not_found", ""},
		{store.ErrNoSpace, 503, "unavailable", "store_no_space"},
		{store.ErrReadOnly, 503, "unavailable", "store_corrupt"},
		{&store.DamageError{Code: "store_truncated", Detail: "the password is hunter2"}, 503,
			"unavailable", "store_truncated"},
		{&store.ConflictError{Kind: store.Schedules, ID: "hunter2", Revision: 3}, 409, "conflict", ""},
		{&store.ActiveError{RunID: "run_1"}, 409, "run_already_active", ""},
		{store.ErrRunTerminal, 409, "run_already_terminal", ""},
		{store.ErrCursorExpired, 410, "cursor_expired", ""},
		{access.ErrTokenUnknown, 404, "interrupt_not_found", ""},
		{access.ErrTokenExpired, 410, "interrupt_expired", ""},
		{access.ErrInFlight, 409, "idempotency_in_flight", ""},
		{&access.ScopeError{Scopes: []access.Scope{access.RunsRead}}, 403, "forbidden", ""},
		{&access.FieldError{Path: "name", Rule: "short"}, 400, "validation_error", ""},
		{web.Unprocessable(web.Invalid(web.Field{Path: "a", Rule: "b"})), 422, "validation_error", ""},
		{errors.New("open /home/anna/hunter2"), 500, "internal_error", ""},
	} {
		fails = c.err
		a := s.do("GET", "/v1/x", "", s.bearer())
		a.is(t, c.err.Error(), c.status, c.code)
		if got, _ := a.Error.Details["code"].(string); got != c.inside {
			t.Errorf("%v: details.code %q", c.err, got)
		}
		if a.Status >= 500 && (a.Error.Details["correlationId"] != a.Header.Get("X-Request-Id") ||
			a.Header.Get("X-Request-Id") == "") {
			t.Errorf("%v: details %v", c.err, a.Error.Details)
		}
		if strings.Contains(a.Body, "hunter2") {
			t.Errorf("%v: says %s", c.err, a.Body)
		}
		if (a.Status == 429) != (a.Header.Get("Retry-After") == "2") && c.code != "idempotency_in_flight" {
			t.Errorf("%v: Retry-After %q", c.err, a.Header.Get("Retry-After"))
		}
	}
	if n := strings.Count(s.log.String(), "open /home/anna/hunter2"); n != 1 {
		t.Errorf("what was unexpected is in the log %d times", n)
	}
	s.do("GET", "/v1/panic", "", s.bearer()).is(t, "panic", 500, "internal_error")
	if !strings.Contains(s.log.String(), "at the disco") {
		t.Error("a panic is not in the log")
	}
	s.do("GET", "/v1/half", "", s.bearer()).is(t, "half an answer", 500, "internal_error")
	if a := s.do("GET", "/v1/x", "", s.bearer(), "X-Request-Id: mine"); a.Header.Get("X-Request-Id") == "mine" {
		t.Error("the client chooses the id that the log has")
	}
}

// TestKept: what handlers keep of a request stays what it was when the connection
// carries the next ones.
func TestKept(t *testing.T) {
	var kept []string
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/runs/:runId", Keyed: true, Handle: func(c *fiber.Ctx) error {
		id, err := web.ID(c, "runId")
		if err != nil {
			return err
		}
		q := web.QueryOf(c)
		word, one := q.Text("word", 100), q.OneOf("one", "", "aaaaaaaa", "bbbbbbbb", "cccccccc")
		list := q.List("list")
		page, err := web.PageOf(c, 0, 0)
		if err != nil {
			return err
		}
		_ = page
		var b struct {
			Name string            `json:"name"`
			Raw  map[string]string `json:"raw"`
		}
		if err := web.Body(c, &b); err != nil {
			return err
		}
		kept = append(kept, id, word, one, strings.Join(list, ""), list[0], b.Name, b.Raw["k"], web.Who(c).RequestID,
			web.Principal(c).ID, web.ContentType(c))
		return ok(c)
	}})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	var want [][]string
	for _, letter := range []string{"a", "b", "c"} {
		x := strings.Repeat(letter, 8)
		before := len(kept)
		if _, err := io.WriteString(c,
			s.request("POST", "/v1/runs/"+x+"?word="+x+"&one="+x+"&list="+x+","+x, `{"name":"`+x+`","raw":{"k":"`+x+`"}}`,
				s.bearer(), "Idempotency-Key: "+x)); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		var then []string
		for _, k := range kept[before:] {
			then = append(then, strings.Clone(k))
		}
		if then[0] != x || then[5] != x {
			t.Fatalf("kept %q", then)
		}
		want = append(want, then)
	}
	for i, k := range kept {
		if w := want[i/10][i%10]; k != w {
			t.Errorf("request %d, value %d became %q, was %q", i/10, i%10, k, w)
		}
	}
}

// TestPages: cursors are good for their query, and nobody makes one.
func TestPages(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/list/:name", Handle: func(c *fiber.Ctx) error {
		p, err := web.PageOf(c, 0, 0)
		if err != nil {
			return err
		}
		return web.Listed(c, []string{fmt.Sprint(p.Limit), p.After}, "key/"+p.After)
	}}, web.Route{Method: "GET", Path: "/v1/empty",
		Handle: func(c *fiber.Ctx) error { return web.Listed[int](c, nil, "") }})
	get := func(path string) answer { return s.do("GET", path, "", s.bearer()) }
	if a := get("/v1/empty"); a.Body != `{"data":[],"nextCursor":null}` {
		t.Errorf("%s", a.Body)
	}
	a := get("/v1/list/a?status=x&limit=7")
	_, cursor, _ := strings.Cut(a.Body, `"nextCursor":"`)
	cursor = strings.TrimSuffix(cursor, `"}`)
	if !strings.HasPrefix(a.Body, `{"data":["7",""]`) || cursor == "" {
		t.Fatal(a.Body)
	}
	if a := get("/v1/list/a?limit=8&cursor=" + cursor + "&status=x"); !strings.HasPrefix(a.Body, `{"data":["8","key/"]`) {
		t.Errorf("second page: %s", a.Body)
	}
	forged := "A" + cursor[1:]
	if cursor[0] == 'A' {
		forged = "B" + cursor[1:]
	}
	for _, bad := range []string{"/v1/list/a?cursor=" + cursor, "/v1/list/b?status=x&cursor=" + cursor,
		"/v1/list/a?status=y&cursor=" + cursor,
		"/v1/list/a?status=x&since=1&cursor=" + cursor, "/v1/list/a?status=x&cursor=" + forged,
		"/v1/list/a?status=x&cursor=" + cursor[:len(cursor)-2], "/v1/list/a?status=x&cursor=x",
		"/v1/list/a?status=x&cursor=" + strings.Repeat("A", 8000), "/v1/list/a?status=x&cursor=%00"} {
		get(bad).is(t, bad, 400, "invalid_cursor")
	}
	for _, limit := range []string{"0", "501", "-1", "x", "", "1e2", "99999999999999999999"} {
		a := get("/v1/list/a?limit=" + limit)
		a.is(t, "limit "+limit, 400, "validation_error")
		if !strings.Contains(a.Body, `"path":"query.limit","rule":"1 to 500"`) {
			t.Errorf("%s", a.Body)
		}
	}
}

// TestRates: per key and per address, with when to come back.
func TestRates(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/x", Scope: access.RunsRead, Handle: ok},
		web.Route{Method: "GET", Path: "/healthz", Open: true, Handle: ok})
	spend := func(n int, headers ...string) (last answer) {
		t.Helper()
		all := s.raw(strings.Repeat(s.request("GET", "/v1/x", "", headers...), n))
		if len(all) != n {
			t.Fatalf("%d answers to %d requests", len(all), n)
		}
		for _, a := range all[:n-1] {
			if a.Status == 429 {
				t.Fatal("429 within the burst")
			}
		}
		return all[n-1]
	}
	a := spend(201, s.bearer())
	a.is(t, "request 201 of a key", 429, "rate_limited")
	if a.Header.Get("Retry-After") != "1" || a.Error.Details["scope"] != "key" || a.Error.Details["retryAfterMs"] != 20.0 {
		t.Errorf("%v %v", a.Header, a.Error.Details)
	}
	s.do("GET", "/v1/x", "", "Authorization: Bearer "+s.reader).is(t, "another key", 200, "")
	spend(201, "X-None: 1").is(t, "request 201 of an address", 429, "rate_limited")
	s.do("GET", "/v1/x", "", "Authorization: Bearer x").is(t, "guess of a key", 429, "rate_limited")
	s.do("GET", "/v1/x", "", "Authorization: Bearer "+s.reader).is(t, "right key of that address", 200, "")
	s.do("GET", "/healthz", "").is(t, "open route", 429, "rate_limited")
	s.do("GET", "/healthz", "", "Host: evil").is(t, "the host comes first", 421, "host_not_allowed")
	s.clock.add(1e9)
	s.do("GET", "/v1/x", "", s.bearer()).is(t, "a second later", 200, "")
	s.do("GET", "/healthz", "").is(t, "a second later", 200, "")
}

// TestAccessLog: templates and ids, nothing that a client wrote.
func TestAccessLog(t *testing.T) {
	s := serve(t, nil, table()...)
	s.do("GET", "/v1/runs/hunter2?token=hunter3", "", s.bearer(), "User-Agent: hunter4", "Cookie: a=hunter5")
	s.do("POST", "/v1/runs/hunter2:pause", "", "Authorization: Bearer hunter6")
	s.do("GET", "/hunter2", "")
	s.raw("HUNTER7 /hunter2 HTTP/1.1\r\nHost: hunter8\r\n\r\n")
	s.do("GET", "/v1/runs", "", "Host: hunter9")
	log := s.log.String()
	if strings.Contains(strings.ToLower(log), "hunter") {
		t.Errorf("the log holds what clients wrote: %s", log)
	}
	for _, want := range []string{`method=GET route=/v1/runs/:runId status=200`, `principal="key:key_`,
		`route=/v1/runs/:runId:pause status=401`, "request=req_"} {
		if !strings.Contains(strings.ReplaceAll(log, `principal=key:`, `principal="key:`), want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	}
	if n := strings.Count(log, "msg=request"); n != 5 {
		t.Errorf("%d lines for 5 requests", n)
	}
}

// TestTwoListeners: whichever listener is served first, no request finds a table
// that is half built.
func TestTwoListeners(t *testing.T) {
	for range 50 {
		app := web.New(web.Options{})
		for i := range 100 {
			app.Add(web.Route{Method: "GET", Path: fmt.Sprintf("/v1/thing%d", i), Open: true, Handle: ok})
		}
		var serving sync.WaitGroup
		for range 4 {
			serving.Go(func() {
				if n := len(app.Fiber().GetRoutes(true)); n < 200 {
					t.Errorf("%d routes are served", n)
				}
			})
		}
		serving.Wait()
	}
}
