//go:build !wasip1

package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
)

//go:embed manifest.json
var manifestJSON []byte

// TestMain lets the test binary act as the connector: a process with three pipes and
// nothing else.
func TestMain(m *testing.M) {
	if os.Getenv("STDIO_CONNECTOR") != "" {
		main()
	}
	os.Exit(m.Run())
}

// A result is what came out of one run.
type result struct {
	lines  []string // every line of fd 1
	data   []string // of the records
	cursor string   // of the last STATE
	skips  []string // reasons
	done   *abi.DoneMessage
	exit   int
	stderr string
}

// play runs the connector as a process and speaks the host's side of the stdio
// profile with the protocol checks of a real host. answer is what the owner
// chooses; empty cancels.
func play(t *testing.T, start map[string]any, answer string) *result {
	t.Helper()
	m, err := abi.ReadManifest(manifestJSON)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{"STDIO_CONNECTOR=1", "TZ=UTC"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(start)
	if err != nil {
		t.Fatal(err)
	}
	var s abi.Start
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	p := abi.NewProtocol(abi.Contract{Scope: s.Scope, Manifest: m, Interactive: s.Bindings.Interactive != nil, Stdio: true,
		Limits: abi.DefaultLimits()})
	if v := p.Step(abi.StepStart); v != nil {
		t.Fatal(v)
	}
	if _, err := in.Write(append(raw, '\n')); err != nil {
		t.Fatal(err)
	}
	r := &result{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		r.lines = append(r.lines, lines.Text())
		message, v := p.Line(lines.Bytes())
		if v != nil {
			t.Fatalf("violation %s: %v in %s", v.Subtype, v, lines.Text())
		}
		r.take(t, p, in, message, answer)
	}
	if err := cmd.Wait(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		r.exit = exit.ExitCode()
	}
	r.stderr = stderr.String()
	if r.done == nil || r.done.RecordsEmitted == nil || *r.done.RecordsEmitted != p.Records() {
		t.Fatalf("DONE %+v after %d records\n%s", r.done, p.Records(), r.stderr)
	}
	if (r.done.Status == abi.Succeeded) != (r.exit == 0) {
		t.Errorf("DONE %s and exit code %d", r.done.Status, r.exit)
	}
	return r
}

// take does what the host does about one message.
func (r *result) take(t *testing.T, p *abi.Protocol, in io.WriteCloser, message abi.Message, answer string) {
	switch m := message.(type) {
	case *abi.RecordMessage:
		r.data = append(r.data, string(m.Data))
	case *abi.StateMessage:
		r.cursor = string(m.Cursor)
	case *abi.SkipMessage:
		r.skips = append(r.skips, m.Reason)
	case *abi.InteractionMessage:
		if v := p.Step(abi.StepAnswer); v != nil {
			t.Fatal(v)
		}
		response := fmt.Sprintf(`{"type":"INTERACTION_RESPONSE","request_id":%q,"status":"success","data":{"answer":%q}}`,
			m.RequestID, answer)
		if answer == "" {
			response = fmt.Sprintf(`{"type":"INTERACTION_RESPONSE","request_id":%q,"status":"cancelled"}`, m.RequestID)
		}
		if _, err := io.WriteString(in, response+"\n"); err != nil {
			t.Fatal(err)
		}
	case *abi.DoneMessage:
		r.done = m
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// starting is a START with a table and a scope of rows.
func starting(config map[string]any, grant map[string]any) map[string]any {
	entry := map[string]any{"name": "rows"}
	for k, v := range grant {
		entry[k] = v
	}
	return map[string]any{
		"type": "START", "run_id": "run_1", "connection_id": "stdio", "connector_id": "https://connectors.sluice.dev/stdio",
		"collection_mode": "full_refresh", "scope": map[string]any{"streams": []any{entry}}, "state": nil,
		"bindings": map[string]any{"network": map[string]any{"hosts": []string{}}}, "detail_gaps": []any{}, "config": config,
	}
}

const book = "id,date,note\na,2026-01-01,first\nb,2026-02-01,second\nbroken\nc,2026-03-01,\"third, and last\"\n"

func TestTable(t *testing.T) {
	r := play(t, starting(map[string]any{"csv": book}, nil), "")
	want := []string{
		`{"date":"2026-01-01","id":"a","line":2,"values":{"date":"2026-01-01","id":"a","note":"first"}}`,
		`{"date":"2026-02-01","id":"b","line":3,"values":{"date":"2026-02-01","id":"b","note":"second"}}`,
		`{"date":"2026-03-01","id":"c","line":5,"values":{"date":"2026-03-01","id":"c","note":"third, and last"}}`,
	}
	if diff := cmp.Diff(want, r.data); diff != "" {
		t.Error(diff)
	}
	if r.cursor != `{"line":5}` || !cmp.Equal(r.skips, []string{"malformed_row"}) || r.exit != 0 {
		t.Errorf("cursor %s, skips %q, exit %d", r.cursor, r.skips, r.exit)
	}
}

// TestIncremental: a run continues behind the cursor of the last one, and a table that
// has not grown gives no records.
func TestIncremental(t *testing.T) {
	s := starting(map[string]any{"csv": book}, nil)
	s["state"] = map[string]any{"rows": map[string]any{"line": 3}}
	if r := play(t, s, ""); len(r.data) != 1 || r.cursor != `{"line":5}` {
		t.Errorf("records %q, cursor %s", r.data, r.cursor)
	}
	s["state"] = map[string]any{"rows": map[string]any{"line": 5}}
	if r := play(t, s, ""); len(r.data) != 0 || r.cursor != `{"line":5}` {
		t.Errorf("records %q, cursor %s", r.data, r.cursor)
	}
}

// TestSample: the sample table is the same every time and holds as many rows as
// are asked for.
func TestSample(t *testing.T) {
	first := play(t, starting(map[string]any{"sample_rows": 2500}, nil), "")
	second := play(t, starting(map[string]any{"sample_rows": 2500}, nil), "")
	if len(first.data) != 2500 || !cmp.Equal(first.data, second.data) {
		t.Errorf("%d and %d records", len(first.data), len(second.data))
	}
	if r := play(t, starting(nil, nil), ""); len(r.data) != 100 {
		t.Errorf("%d records without settings", len(r.data))
	}
}

// TestScope: fields, resources and the time range of the grant are kept to.
func TestScope(t *testing.T) {
	r := play(t, starting(map[string]any{"csv": book},
		map[string]any{"fields": []string{"id", "line"}, "resources": []string{"a", "c"}}), "")
	if diff := cmp.Diff([]string{`{"id":"a","line":2}`, `{"id":"c","line":5}`}, r.data); diff != "" {
		t.Error(diff)
	}
	r = play(t, starting(map[string]any{"csv": book}, map[string]any{"fields": []string{"id", "line", "date"},
		"time_range": map[string]any{"since": "2026-01-15", "until": "2026-03-01T00:00:00Z"}}), "")
	if diff := cmp.Diff([]string{`{"date":"2026-02-01","id":"b","line":3}`}, r.data); diff != "" {
		t.Error(diff)
	}
}

// TestKeyIsAskedFor: without a column called id the owner says which one it is.
func TestKeyIsAskedFor(t *testing.T) {
	s := starting(map[string]any{"csv": "name,born\nAda,1815\nAlan,1912\n"}, map[string]any{"fields": []string{"id"}})
	s["bindings"] = map[string]any{"interactive": map[string]any{}}
	r := play(t, s, "name")
	if diff := cmp.Diff([]string{`{"id":"Ada"}`, `{"id":"Alan"}`}, r.data); diff != "" {
		t.Error(diff)
	}
	if r := play(t, s, ""); r.done.Status != abi.Failed || !strings.Contains(r.done.Error.Message, "no answer") {
		t.Errorf("cancelled: %+v", r.done)
	}
	delete(s, "bindings")
	if r := play(t, s, "name"); r.done.Status != abi.Failed ||
		!strings.Contains(r.done.Error.Message, "set key to one of") {
		t.Errorf("nobody to ask: %+v", r.done)
	}
}

// TestNoStart: without START there is nothing to be done, and no DONE.
func TestNoStart(t *testing.T) {
	for _, in := range []string{"", "{}\n", "no JSON\n"} {
		var out, diagnostics bytes.Buffer
		if code := run(strings.NewReader(in), &out, &diagnostics); code == 0 || out.Len() > 0 || diagnostics.Len() == 0 {
			t.Errorf("%q: exit %d, output %q, diagnostics %q", in, code, out.String(), diagnostics.String())
		}
	}
}
