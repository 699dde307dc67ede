package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sluicehost/sluice/host/daemon"
)

// A client is an openwop client as one would write it. It holds every answer
// against the description of its route.
type client struct {
	t    *testing.T
	base string
	key  string       // "": none
	http *http.Client // nil: httpClient
}

// atSocket is a client of the local socket.
func atSocket(t *testing.T) *client {
	t.Helper()
	served(t)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(shared.dir, "data", daemon.SocketName))
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, base: "http://localhost", http: &http.Client{Transport: transport}}
}

// as is the client with another key.
func (c client) as(key string) *client {
	c.key = key
	return &c
}

// An answer is one, read to its end.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   []byte
}

// An option changes a request.
type option func(*http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func once(key string) option { return header("Idempotency-Key", key) }

var httpClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}}

// do sends a request. body is nil, bytes as they are, or a value as JSON.
func (c *client) do(method, path string, body any, options ...option) *answer {
	c.t.Helper()
	a, err := c.try(method, path, body, options...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) try(method, path string, body any, options ...option) (*answer, error) {
	res, err := c.send(method, path, body, options...)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	a := &answer{t: c.t, what: method + " " + path, status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	c.check(method, path, a)
	return a, nil
}

func (c *client) send(method, path string, body any, options ...option) (*http.Response, error) {
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		in = bytes.NewReader(b)
	case string:
		in = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, in)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for _, o := range options {
		o(req)
	}
	return cmp.Or(c.http, httpClient).Do(req)
}

// want fails the test unless the status is the one, and, for a refusal, the code.
func (a *answer) want(status int, code ...string) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d, want %d: %s", a.what, a.status, status, a.body)
	}
	if len(code) > 0 && a.text("error") != code[0] {
		a.t.Fatalf("%s: %s, want %s: %s", a.what, a.text("error"), code[0], a.body)
	}
	return a
}

// member walks names and, where one is a number, items.
func (a *answer) member(path ...any) any {
	a.t.Helper()
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.body)
	}
	return member(v, path...)
}

func member(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			list, _ := v.([]any)
			if p >= len(list) {
				return nil
			}
			v = list[p]
		}
	}
	return v
}

func (a *answer) text(path ...any) string {
	a.t.Helper()
	s, _ := a.member(path...).(string)
	return s
}

func (a *answer) number(path ...any) float64 {
	a.t.Helper()
	n, _ := a.member(path...).(float64)
	return n
}

func (a *answer) list(path ...any) []any {
	a.t.Helper()
	l, _ := a.member(path...).([]any)
	return l
}

// A description is the OpenAPI document as served, with what was compiled of it.
type description struct {
	doc   map[string]any
	paths []describedPath // those with fewest parameters first

	mu       sync.Mutex // guards compiler and schemas
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
	seen     map[string]bool // METHOD path status, of those that were observed
}

type describedPath struct {
	template string
	match    *regexp.Regexp
}

var described = sync.OnceValues(func() (*description, error) {
	res, err := httpClient.Get("http://" + shared.d.Address().String() + "/v1/openapi.json")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	doc, err := jsonschema.UnmarshalJSON(res.Body)
	if err != nil {
		return nil, err
	}
	d := &description{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(),
		schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	d.compiler.AssertFormat()
	d.compiler.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: func(v any) error {
		if s, ok := v.(string); ok && !milliseconds.MatchString(s) {
			return fmt.Errorf("%s has no milliseconds in UTC", s)
		}
		return nil
	}})
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := d.compiler.AddResource("openapi.json", doc); err != nil {
		return nil, err
	}
	for template := range d.doc["paths"].(map[string]any) {
		pattern := regexp.QuoteMeta(template)
		pattern = regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(pattern, `[^/:]+`)
		d.paths = append(d.paths, describedPath{template, regexp.MustCompile("^" + pattern + "$")})
	}
	slices.SortFunc(d.paths, func(x, y describedPath) int {
		return strings.Count(x.template, "{") - strings.Count(y.template, "{")
	})
	return d, nil
})

var milliseconds = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// find is the template of a path, "" for none.
func (d *description) find(path string) string {
	path, _, _ = strings.Cut(path, "?")
	for _, p := range d.paths {
		if p.match.MatchString(path) {
			return p.template
		}
	}
	return ""
}

// check holds an answer against the description of its route.
func (c *client) check(method, path string, a *answer) {
	c.t.Helper()
	d, err := described()
	if err != nil {
		c.t.Fatal(err)
	}
	if a.status >= 400 && !strings.HasPrefix(path, "/readyz") {
		if method != "HEAD" {
			c.valid(d, "/components/schemas/Refusal", a)
		}
		return
	}
	template := d.find(path)
	op, _ := member(d.doc, "paths", template, strings.ToLower(method)).(map[string]any)
	if op == nil {
		return
	}
	status := http.StatusText(a.status)
	response, _ := member(op, "responses", itoa(a.status)).(map[string]any)
	if response == nil {
		c.t.Errorf("%s: %d %s is not described", a.what, a.status, status)
		return
	}
	d.mu.Lock()
	d.seen[method+" "+template] = true
	d.mu.Unlock()
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	switch content, _ := response["content"].(map[string]any); {
	case content == nil && len(a.body) > 0:
		c.t.Errorf("%s: a body, and none is described: %s", a.what, a.body)
	case content == nil:
	case a.status == http.StatusNotModified && len(a.body) == 0:
	case content[media] == nil && content["*/*"] == nil:
		c.t.Errorf("%s: %s is not described", a.what, media)
	case media == "application/json":
		c.valid(d, "/paths/"+pointer(template)+"/"+strings.ToLower(method)+"/responses/"+itoa(a.status)+"/content/"+
			pointer(media)+"/schema", a)
	}
}

func (c *client) valid(d *description, at string, a *answer) {
	c.t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		c.t.Errorf("%s: %d: %v: %s", a.what, a.status, err, a.body)
		return
	}
	s, err := d.schema(at)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		c.t.Errorf("%s: %d: %v\n%s", a.what, a.status, err, a.body)
	}
}

func (d *description) schema(at string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[at]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile("openapi.json#" + at)
	if err == nil {
		d.schemas[at] = s
	}
	return s, err
}

// pointer escapes a part of a JSON pointer in a URL.
func pointer(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(s)
}

func itoa(n int) string { return string(must(json.Marshal(n))) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// start creates a run and returns its id.
func (c *client) start(body any, options ...option) string {
	c.t.Helper()
	return c.do("POST", "/v1/runs", body, options...).want(201).text("runId")
}

type object = map[string]any

func workflow(id string) object { return object{"workflowId": id} }

// suspended waits until a run asks.
func (c *client) suspended(run string) {
	c.t.Helper()
	s := c.follow("/v1/runs/" + run + "/events")
	defer s.body.Close()
	s.until("node.suspended")
}

// ended waits for the end of a run and returns its snapshot.
func (c *client) ended(run string) *answer {
	c.t.Helper()
	c.follow("/v1/runs/" + run + "/events").rest()
	return c.do("GET", "/v1/runs/"+run, nil).want(200)
}

// status waits until a snapshot says so.
func (c *client) status(run, status string) {
	c.t.Helper()
	s := c.follow("/v1/runs/" + run + "/events?streamMode=values")
	defer s.body.Close()
	for {
		f, ok := s.next()
		if !ok {
			c.t.Fatalf("the run ended before it was %s", status)
		}
		if member(f.data, "status") == status {
			return
		}
	}
}
