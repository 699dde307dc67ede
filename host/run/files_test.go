package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// A shelf keeps contents for the tests of files: those of known are there before the run.
type shelf struct {
	store.Store
	known map[store.Digest]store.File
	lie   int // staged and not discarded
}

type onShelf struct {
	bytes.Buffer
	of *shelf
}

func (s *shelf) StageFile(context.Context, store.ConnectionID) (store.StagedFile, error) {
	s.lie++
	return &onShelf{of: s}, nil
}

func (s *shelf) HasFile(_ context.Context, _ store.ConnectionID, d store.Digest) (store.File, error) {
	f, ok := s.known[d]
	if !ok {
		return f, store.ErrNotFound
	}
	return f, nil
}

func (s *shelf) OpenFile(context.Context, store.ConnectionID, store.Digest) (store.FileContent, error) {
	return nil, store.ErrNotFound
}

func (s *shelf) HeldFiles(context.Context, store.FileQuery) (store.FilePage, error) {
	return store.FilePage{}, nil
}

func (s *shelf) FileUsage(context.Context, store.ConnectionID) (u store.FileUsage, err error) {
	for _, f := range s.known {
		u.Files, u.Bytes = u.Files+1, u.Bytes+uint64(f.Size)
	}
	return u, nil
}

func (x *onShelf) Finish() (store.Digest, int64, error) {
	return digestOf(x.Bytes()), int64(x.Len()), nil
}
func (x *onShelf) Memory() int { return x.Len() }
func (x *onShelf) Discard()    { x.of.lie-- }

func digestOf(b []byte) store.Digest {
	sum := sha256.Sum256(b)
	return store.DigestOf(sum[:])
}

// attaching is the files of a run, and how a guest attaches one.
func attaching(t *testing.T, s *shelf, quotas FileQuotas) (*files, func(content string) string) {
	t.Helper()
	m, err := abi.ReadManifest([]byte(`{"protocol_version":"0.1.0","connector_id":"x","version":"1.0.0","display_name":"X","runtime_requirements":{"bindings":{}},
 "streams":[{"name":"rows","semantics":"append_only","primary_key":["id"],"schema":{"type":"object","properties":{"id":{"type":"string"},"file":{"type":"object","format":"file"}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	plan := &Plan{Input: Input{Files: quotas, Connection: store.Connection{ID: "one"}}, manifest: m,
		scope: abi.Scope{Streams: []abi.ScopeStream{{Name: "rows"}}}}
	f := newFiles(&parts{plan: plan, deps: Deps{Store: s}, ctx: t.Context()})
	return f, func(content string) string {
		t.Helper()
		head, err := json.Marshal(abi.Attach{Stream: "rows", Field: "file"})
		if err != nil {
			t.Fatal(err)
		}
		reply, errno := f.attach(&redact.Watch{}, nil)(t.Context(), abi.CallAttach,
			abi.AppendAttach(nil, head, []byte(content)))
		if errno == abi.OK {
			return "ok"
		}
		var no struct{ Code string }
		if err := json.Unmarshal(reply, &no); err != nil {
			t.Errorf("%s: %v", reply, err)
		}
		return errno.String() + " " + no.Code
	}
}

// TestForsaken: what a run gives up because the disk is full leaves no files behind.
func TestForsaken(t *testing.T) {
	s := &shelf{}
	f, attach := attaching(t, s, FileQuotas{File: 80, Run: 1000, Connection: 1000})
	var all []*attached
	for _, content := range []string{"one", "two"} {
		if got := attach(content); got != "ok" {
			t.Fatal(got)
		}
		all = append(all, f.ready[digestOf([]byte(content))])
	}
	var told error
	cs := &commits{parts: f.parts}
	cs.unsent = []*pendingCommit{cs.newPending(&store.Commit{Files: f.takeStaged(all)},
		func(_ store.Ack, err error) { told = err })}
	cs.abandon()
	f.discardUnheld()
	if told == nil || cs.unsettled() != 0 {
		t.Errorf("%d commits are left, and this was told: %v", cs.unsettled(), told)
	}
	if s.lie != 0 {
		t.Errorf("%d contents are left", s.lie)
	}
}

// TestFileQuotas: a file, a run and a connection have quotas. What the connection has already
// takes no room in it, however often a run that begins anew attaches it; and what is refused
// is thrown away.
func TestFileQuotas(t *testing.T) {
	old := strings.Repeat("o", 60)
	s := &shelf{known: map[store.Digest]store.File{digestOf([]byte(old)): {Digest: digestOf([]byte(old)), Size: 60}}}
	f, attach := attaching(t, s, FileQuotas{File: 80, Run: 1000, Connection: 100})
	for i, c := range []struct{ content, want string }{
		{strings.Repeat("x", 81), "ETOOBIG file_too_large"},
		{old, "ok"}, {old, "ok"}, {old, "ok"}, // 60 of 100 stay 60
		{strings.Repeat("a", 30), "ok"}, {strings.Repeat("a", 30), "ok"},
		{strings.Repeat("b", 11), "ENOSPC file_quota"},
		{strings.Repeat("c", 10), "ok"},
		{"d", "ENOSPC file_quota"}, {"", "ok"}, {old, "ok"},
	} {
		if got := attach(c.content); got != c.want {
			t.Errorf("%d: %d bytes: %s, want %s", i, len(c.content), got, c.want)
		}
	}
	if s.lie != 4 {
		t.Errorf("%d contents are staged, 4 may be named", s.lie)
	}
	f.discardUnheld()
	if s.lie != 0 {
		t.Errorf("%d contents are left", s.lie)
	}
	if got := attach(old); got != "ECANCELED run_cancelled" || s.lie != 0 {
		t.Errorf("after the end: %s, %d are left", got, s.lie)
	}
	_, attach = attaching(t, &shelf{}, FileQuotas{File: 80, Run: 100, Connection: 1000})
	if a, b, c := attach(old), attach(old[:40]), attach("x"); a != "ok" || b != "ok" || c != "ENOSPC file_quota" {
		t.Errorf("of a run: %s, %s, %s", a, b, c)
	}
}
