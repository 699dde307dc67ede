package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/audit"
)

func requests(t *testing.T, q *audit.Requests, run string) (out []audit.Request) {
	t.Helper()
	for r, err := range q.All(context.Background(), run) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// One line a hop, of which the oldest files go.
func TestRequests(t *testing.T) {
	dir := t.TempDir()
	q := audit.OpenRequests(dir)
	q.SetRoll(4096)
	if got := requests(t, q, ""); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	want := audit.Request{At: audit.Time{Time: time.UnixMilli(1_700_000_000_123).UTC()}, Run: "run_1", Connection: "mail",
		Method: "GET", Origin: "https://example.com",
		Path: "/a", Status: 200, Sent: 1, Received: 2, Millis: 3, Family: "ipv6"}
	if err := q.Add(want); err != nil {
		t.Fatal(err)
	}
	if err := q.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := requests(t, q, "run_1"); len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
	const n = 400
	for i := range n {
		r := want
		r.Run, r.Path = "run_2", fmt.Sprintf("/%d\x1b]0;x\n%s", i, strings.Repeat("p", 1000))
		if err := q.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "audit", "requests", "*"))
	got := requests(t, q, "run_2")
	if len(names) != 8 || len(got) < 50 || len(got) >= n || len(requests(t, q, "run_1")) != 0 {
		t.Errorf("%d files, %d lines", len(names), len(got))
	}
	for i, r := range got {
		if want := fmt.Sprintf("/%d]0;x p", n-len(got)+i); !strings.HasPrefix(r.Path, want) || len(r.Path) > 256 {
			t.Fatalf("line %d: %q, want %q", i, r.Path, want)
		}
	}

	// A killed process left half a line; the next goes on behind it.
	last := names[len(names)-1]
	write(t, last, append(read(t, last), `{"run_id":"run_3"`...))
	q = audit.OpenRequests(dir)
	want.Run = "run_3"
	if err := q.Add(want); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if got := requests(t, q, "run_3"); len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
	if fi, err := os.Stat(last); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	sound(t, open(t, dir), 0) // it is no part of the chain
}

func BenchmarkRequest(b *testing.B) {
	q := audit.OpenRequests(b.TempDir())
	r := audit.Request{At: audit.Time{Time: time.Now()}, Run: "run_01J9ZK0000000000000000000", Connection: "mail",
		Method: "GET", Origin: "https://example.com", Path: "/a/b/c", Status: 200}
	for b.Loop() {
		if err := q.Add(r); err != nil {
			b.Fatal(err)
		}
	}
	if err := q.Close(); err != nil {
		b.Fatal(err)
	}
}
