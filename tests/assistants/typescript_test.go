package assistants_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/tests/assistants"
	"github.com/sluicehost/sluice/tests/npm"
)

type calls [][2]any

// TestTypeScript is the client of another maker, in each revision that is spoken: what it
// may see it gets in the shape that the tools promise, which it checks, and nothing else.
func TestTypeScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: apt install nodejs")
	}
	url, token := assistants.Open(t, 20)
	dir := t.TempDir()
	for _, p := range npm.ModelContextProtocol {
		p.Unpack(t, dir)
	}
	script, err := os.ReadFile("testdata/client.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	of := func(key string) map[string]any {
		return map[string]any{"connection": "mail", "stream": "messages", "key": key}
	}
	stream := map[string]any{"connection": "mail", "stream": "messages"}
	good := calls{{"data", map[string]any{}}, {"get_record", of("k2")}, {"list_records", stream},
		{"changes_since", stream},
		{"search", map[string]any{"words": "order 4"}},
		{"query", map[string]any{"sql": "SELECT count(*) FROM mail.messages"}}, {"runs", map[string]any{}}}
	bad := calls{{"get_record", of("k1")}, {"query", map[string]any{"sql": "SELECT salary FROM mail.messages"}},
		{"query", map[string]any{"sql": "ATTACH 'x' AS x"}},
		{"run_connection", map[string]any{"connection": "mail"}}, {"nothing", map[string]any{}}}
	versions := []string{"2025-06-18", "2025-11-25", "2026-07-28"}
	in, err := json.Marshal(map[string]any{"url": url, "token": token, "calls": append(good[:len(good):len(good)], bad...),
		"versions": versions})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "client.mjs")
	var said bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, bytes.NewReader(in), &said
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if strings.Contains(string(text), assistants.Secret) {
		t.Error("it tells of what is out of scope")
	}
	var got map[string]struct {
		Tools, Resources   []string
		Negotiated, Server string
		Answers            []struct {
			Error      bool
			Structured map[string]any
			Text       string
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, version := range versions {
		v := got[version]
		if diff := cmp.Diff([]string{"changes_since", "data", "get_record", "list_records", "query", "runs", "search"},
			v.Tools); diff != "" {
			t.Error(version, diff)
		}
		if diff := cmp.Diff([]string{"sluice://schemas/mail/messages"}, v.Resources); diff != "" || v.Negotiated != version ||
			v.Server != "sluice" {
			t.Error(version, v.Negotiated, v.Server, diff)
		}
		for i, a := range v.Answers {
			if a.Error != (i >= len(good)) || a.Error == (a.Structured != nil) {
				t.Errorf("%s: call %d: %s", version, i, a.Text)
			}
		}
		if len(v.Answers) != len(good)+len(bad) || !strings.Contains(v.Answers[5].Text, `"rows":[[10]]`) {
			t.Errorf("%s: %d answers", version, len(v.Answers))
		}
	}
}
