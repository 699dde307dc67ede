package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/sluicehost/sluice/host/timeline"
)

// payloads are the schemas of the AsyncAPI document, by event type.
type payloads struct {
	mu       sync.Mutex // guards the rest
	compiler *jsonschema.Compiler
	names    map[string]string // message, by type
	schemas  map[string]*jsonschema.Schema
	seen     map[string]bool // types that were observed
}

var eventSchemas = sync.OnceValues(func() (*payloads, error) {
	res, err := httpClient.Get("http://" + shared.d.Address().String() + "/v1/asyncapi.yaml")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var parsed any
	if err := yaml.Unmarshal(body, &parsed); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(must(json.Marshal(parsed))))
	if err != nil {
		return nil, err
	}
	p := &payloads{compiler: jsonschema.NewCompiler(), names: map[string]string{},
		schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	if err := p.compiler.AddResource("asyncapi.json", doc); err != nil {
		return nil, err
	}
	for name, m := range member(doc, "components", "messages").(map[string]any) {
		p.names[fmt.Sprint(member(m, "name"))] = name
	}
	return p, nil
})

// checkEvent holds an event against the catalogue.
func checkEvent(t *testing.T, doc any) {
	t.Helper()
	p, err := eventSchemas()
	if err != nil {
		t.Fatal(err)
	}
	typ, _ := member(doc, "type").(string)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names[typ] == "" {
		t.Errorf("an event of type %q, which no message describes", typ)
		return
	}
	p.seen[typ] = true
	s := p.schemas[typ]
	if s == nil {
		if s, err = p.compiler.Compile("asyncapi.json#/components/messages/" + p.names[typ] + "/payload"); err != nil {
			t.Fatal(err)
		}
		p.schemas[typ] = s
	}
	if err := s.Validate(doc); err != nil {
		t.Errorf("%s: %v: %v", typ, err, doc)
	}
}

// checkEvents checks those of a page.
func (a *answer) checkEvents() *answer {
	a.t.Helper()
	for _, e := range a.list("events") {
		checkEvent(a.t, e)
	}
	return a
}

// types are the types of the events of a page.
func (a *answer) types() string {
	var out []string
	for i := range a.list("events") {
		out = append(out, a.text("events", i, "type"))
	}
	return strings.Join(out, " ")
}

// A sse is an event stream that is being read.
type sse struct {
	t    *testing.T
	c    *client
	body io.ReadCloser
	in   *bufio.Scanner
	last int64
}

// A frame is one.
type frame struct {
	id    int64
	event string
	data  any
}

// follow opens a stream, and checks what stands at its beginning.
func (c *client) follow(path string, options ...option) *sse {
	c.t.Helper()
	res, err := c.send("GET", path, nil, append([]option{header("Accept", "text/event-stream")}, options...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" ||
		res.Header.Get("Cache-Control") != "no-cache, no-store, no-transform" || res.Header.Get("X-Accel-Buffering") != "no" {
		body, _ := io.ReadAll(res.Body)
		c.t.Fatalf("%s: %d %v %s", path, res.StatusCode, res.Header, body)
	}
	s := &sse{t: c.t, c: c, body: res.Body, in: bufio.NewScanner(res.Body), last: -1}
	s.in.Buffer(nil, 1<<20)
	if !s.in.Scan() || s.in.Text() != "retry: 2000" {
		c.t.Fatalf("%s begins with %q", path, s.in.Text())
	}
	return s
}

// next is the next frame; false at the end of the stream.
func (s *sse) next() (f frame, ok bool) {
	s.t.Helper()
	f.id = -1
	for s.in.Scan() {
		line := s.in.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && f.event != "":
			s.check(f)
			return f, true
		case line == "", strings.HasPrefix(line, ":"):
		case name == "id":
			f.id, _ = strconv.ParseInt(value, 10, 64)
		case name == "event":
			f.event = value
		case name == "data":
			if err := json.Unmarshal([]byte(value), &f.data); err != nil {
				s.t.Fatalf("%v: %s", err, value)
			}
		default:
			s.t.Errorf("a line of another kind: %q", line)
		}
	}
	if err := s.in.Err(); err != nil {
		s.t.Fatalf("the stream broke: %v", err)
	}
	return f, false
}

// check: ids grow; events are as described, whatever wraps them.
func (s *sse) check(f frame) {
	s.t.Helper()
	if f.id <= s.last {
		s.t.Errorf("id %d behind %d", f.id, s.last)
	}
	s.last = f.id
	switch timeline.Type(f.event) {
	case timeline.StateSnapshot:
		d := must(described())
		a := &answer{t: s.t, what: "snapshot", body: must(json.Marshal(f.data))}
		s.c.valid(d, "/components/schemas/Snapshot", a)
		if member(f.data, "interrupt", "interruptToken") != nil {
			s.t.Error("a token in a stream")
		}
	case timeline.AIMessageChunk:
	case "batch":
		for _, e := range f.data.([]any) {
			checkEvent(s.t, e)
		}
	default:
		if member(f.data, "type") != f.event || member(f.data, "sequence") != float64(f.id) {
			s.t.Errorf("frame %d %s: %v", f.id, f.event, f.data)
		}
		checkEvent(s.t, f.data)
	}
}

// until reads to a frame of that event.
func (s *sse) until(event string) frame {
	s.t.Helper()
	for {
		f, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended before %s", event)
		}
		if f.event == event {
			return f
		}
	}
}

// rest are the frames up to the end.
func (s *sse) rest() (out []frame) {
	s.t.Helper()
	for {
		f, ok := s.next()
		if !ok {
			return out
		}
		out = append(out, f)
	}
}

func events(frames []frame) string {
	var out []string
	for _, f := range frames {
		out = append(out, f.event)
	}
	return strings.Join(out, " ")
}

// A parameter without a value is not absent.
func TestBlankParameters(t *testing.T) {
	c := served(t)
	run := c.do("POST", "/v1/runs", `{"workflowId":"conformance-noop"}`).want(201).text("runId")
	for path, names := range map[string][]string{
		"/events":      {"bufferMs", "vocabulary", "types", "after", "before", "limit"},
		"/events/poll": {"lastSequence", "timeout", "vocabulary"},
	} {
		for _, name := range names {
			a := c.do("GET", "/v1/runs/"+run+path+"?"+name+"=", nil,
				header("Accept", "application/json")).want(400, "validation_error")
			if got := a.text("details", "fields", 0, "path"); got != "query."+name {
				t.Errorf("%s %s: says %q", path, name, got)
			}
		}
	}
	c.do("GET", "/v1/runs/"+run+"/events?streamMode=", nil).want(400, "unsupported_stream_mode")
	c.do("GET", "/v1/runs/"+run+"/events?lastEventId=", nil, header("Accept", "application/json")).want(200)
	// with values all is well
	c.do("GET", "/v1/runs/"+run+"/events/poll?timeout=1&vocabulary=full", nil,
		header("Accept", "application/json")).want(200)
}

var interruptID = regexp.MustCompile(`^int_[0-9A-HJKMNP-TV-Z]{26}$`)

// Every event of a run names its node, unless it is about the run itself,
// whichever vocabulary it is of. Ids of interrupts are opaque.
func TestNodeOfEvents(t *testing.T) {
	c := served(t)
	run := c.do("POST", "/v1/runs", `{"workflowId":"conformance-approval"}`).want(201).text("runId")
	eventually(t, "the question", func() bool {
		return c.do("GET", "/v1/runs/"+run, nil).want(200).text("status") == "waiting-approval"
	})
	if id := c.do("GET", "/v1/runs/"+run, nil).text("interrupt", "interruptId"); !interruptID.MatchString(id) {
		t.Errorf("interrupt %q", id)
	}
	c.do("POST", "/v1/runs/"+run+"/approvals/gate", `{"action":"accept"}`).want(200)
	eventually(t, "the end", func() bool {
		return c.do("GET", "/v1/runs/"+run, nil).want(200).text("status") == "completed"
	})
	ofRun := []string{"run.started", "lease.acquired", "run.completed"}
	seen := map[string]bool{}
	for _, e := range c.do("GET", "/v1/runs/"+run+"/events/poll", nil).want(200).list("events") {
		typ, node := member(e, "type").(string), member(e, "nodeId")
		seen[typ] = true
		if of := slices.Contains(ofRun, typ); of && node != nil || !of && node != "gate" {
			t.Errorf("%s: node %v", typ, node)
		}
	}
	for _, typ := range []string{"run.interaction_required", "run.assistance_requested", "run.interaction_completed",
		"run.assistance_resolved", "interrupt.requested"} {
		if !seen[typ] {
			t.Errorf("no %s", typ)
		}
	}
}
