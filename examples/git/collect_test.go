package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

// A repo is a repository that the git command makes.
type repo struct {
	t   *testing.T
	dir string
	now int64 // of the next commit
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	r := &repo{t: t, dir: t.TempDir(), now: 1_700_000_000}
	r.git("init", "-q", "-b", "main")
	return r
}

// git runs a command in the repository and returns its output.
func (r *repo) git(args ...string) string {
	r.t.Helper()
	return r.gitIn(nil, args...)
}

func (r *repo) gitIn(stdin []byte, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Stdin = bytes.NewReader(stdin)
	date := time.Unix(r.now, 0).UTC().Format("2006-01-02T15:04:05Z")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME=Con", "GIT_COMMITTER_EMAIL=con@example.org", "GIT_COMMITTER_DATE="+date)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func (r *repo) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits everything and returns the hash.
func (r *repo) commit(message string) string {
	r.t.Helper()
	r.now += 60
	r.git("add", "-A")
	r.gitIn([]byte(message), "commit", "-q", "--allow-empty", "--allow-empty-message", "-F", "-")
	return strings.TrimSpace(r.git("rev-parse", "HEAD"))
}

// collect runs the connector on the repository. It fails the test when the run
// does.
func (r *repo) collect(o guesttest.Options) *guesttest.Result {
	r.t.Helper()
	o.Manifest = manifest
	if o.Files == nil {
		o.Files = map[string]string{"repo": r.dir}
	}
	res := guesttest.Run(r.t, connector, o)
	if res.Status != abi.Succeeded {
		r.t.Fatalf("status %s, done %+v", res.Status, res.Done)
	}
	return res
}

// stateAfter is the state that a run leaves for the next one.
func stateAfter(res *guesttest.Result) map[string]any {
	state := map[string]any{}
	for stream, cursor := range res.States {
		state[stream] = cursor
	}
	return state
}

func keys(records []guesttest.Record) []string {
	var out []string
	for _, r := range records {
		key := r.Key
		if r.Deleted {
			key = "deleted " + key
		}
		out = append(out, key)
	}
	return out
}

// fields decodes a record.
func fields(t *testing.T, r guesttest.Record) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(r.Data, &m); err != nil {
		t.Fatalf("record %s: %v", r.Key, err)
	}
	return m
}
