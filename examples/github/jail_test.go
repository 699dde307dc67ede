//go:build !wasip1

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// The test binary is the worker, too.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// In the jail, go-github collects everything with a token that it never sees and that
// reaches GitHub only. A second run collects what is new. On the way the server asks
// for a pause, echoes the token, cuts an answer short and redirects to a host that must
// not get the token.
func TestInTheJail(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles go-github for wasm")
	}
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody else is asked, with %q", r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	f := recorded(t)
	j := jail(t, f)
	j.approved = append(j.approved, thief.URL) // even then
	f.instead[tide+"issues"] = times(1, says(403, `{"message":"secondary rate limit"}`, "Retry-After", "1"))
	f.instead[tide+"pulls"] = times(1, func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", "5000")
		_, _ = w.Write([]byte(`[{"id":190`))
		panic(http.ErrAbortHandler)
	})
	f.instead[tide+"releases"] = says(302, ``, "Location", thief.URL+"/collect")
	f.change(t, tide+"issues", 2800000001, object{"title": "I found " + token})
	first := j.collect()
	want := map[string]bool{}
	for stream, keys := range everything {
		for _, k := range keys {
			want[stream+" "+k] = stream != "releases"
		}
	}
	got := map[string]bool{}
	for k := range want {
		_, got[k] = j.records()[k]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	f.mu.Lock()
	tokens := maps.Clone(f.tokens)
	f.mu.Unlock()
	if diff := cmp.Diff(map[string]bool{"Bearer " + token: true}, tokens); diff != "" {
		t.Errorf("authorizations (-want +got):\n%s", diff)
	}
	if g := first.KnownGaps; len(g) != 1 || g[0].Reason != "redirected" {
		t.Errorf("gaps %+v", g)
	}
	title := string(j.records()["issues 2800000001"])
	if !strings.Contains(title, `"I found sluice-sealed-`) {
		t.Errorf("the echo became %.300s", title)
	}

	f.mu.Lock()
	f.instead, f.asked = nil, nil
	f.change(t, tide+"issues/comments", 3000000002, object{"updated_at": "2026-02-12T00:00:00Z", "body": "Brest!"})
	f.mu.Unlock()
	second := j.collect()
	if n := second.RecordsFlushed; n != 3 { // the comment and two releases
		t.Errorf("the second run collects %d records", n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var whole []string
	for _, a := range f.asked {
		if !strings.HasSuffix(a, " 304") {
			whole = append(whole, a)
		}
	}
	if diff := cmp.Diff([]string{tide + "issues/comments", tide + "releases"}, whole); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	j.closed(second)
}

// A run that a rate limit ends keeps the cursors of the streams that were done: the
// next run asks for what is new in those.
func TestLimitInTheJail(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles go-github for wasm")
	}
	f := recorded(t)
	j := jail(t, f)
	f.instead[tide+"pulls"] = says(403, `{"message":"secondary rate limit"}`, "Retry-After", "1800")
	result := j.ended()
	if e := result.ConnectorError; result.Status != abi.Failed || e == nil || e.Code != abi.CodeStreamFailed ||
		e.Retryable == nil || !*e.Retryable {
		t.Fatalf("%s, %+v, %+v", result.Status, result.ConnectorError, result.Violation)
	}
	if n := result.CheckpointSummary.StateStreamsCommitted; n != 3 {
		t.Errorf("%+v", result.CheckpointSummary)
	}
	f.mu.Lock()
	f.instead, f.asked = nil, nil
	f.mu.Unlock()
	second := j.collect()
	f.mu.Lock()
	defer f.mu.Unlock()
	want := []string{"/user/repos 304", "/user/starred 304", "/repos/ada/notes/issues 304", tide + "issues 304"}
	if diff := cmp.Diff(want, f.asked[:len(want)]); diff != "" {
		t.Error(diff)
	}
	j.closed(second)
}

// A host that its owner did not approve, and an API that the token may not be
// sent to, end the run before anything is sent.
func TestDeniedInTheJail(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles go-github for wasm")
	}
	f := recorded(t)
	j := jail(t, f)
	other := httptest.NewServer(f)
	defer other.Close()
	for _, approved := range [][]string{{j.server.URL}, {j.server.URL, other.URL}} {
		r, err := j.host.Start(context.Background(), app.RunRequest{
			Connector: j.loaded, Approved: store.Approved{Hosts: approved},
			Config: json.RawMessage(`{"api":"` + other.URL + `"}`), Secrets: map[string]string{"token": token},
		})
		if err != nil {
			t.Fatal(err)
		}
		result, err := r.Do(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if j.last = result.RunID; result.ConnectorError == nil || result.ConnectorError.Code != "host_not_granted" {
			t.Errorf("%s, %+v", result.Status, result.ConnectorError)
		}
		f.mu.Lock()
		if len(f.asked) > 0 {
			t.Errorf("asked %v", f.asked)
		}
		f.mu.Unlock()
		if len(approved) == 2 {
			j.closed(result)
		}
	}
}

// TestReplayInTheJail: a recorded run is had again without GitHub and token, record
// by record, and its recording does not have the token.
func TestReplayInTheJail(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles go-github for wasm")
	}
	j := jail(t, recorded(t))
	j.record = app.NewRecorder()
	result := j.collect()
	text, review, err := j.record.Finish(result)
	if err != nil || review.Exchanges < 5 || bytes.Contains(text, []byte(token)) {
		t.Fatalf("%+v, %v", review, err)
	}
	live := j.records()
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	j.server.Close()
	recording, err := app.OpenRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.host.Start(context.Background(),
		app.RunRequest{Connector: j.loaded, Connection: "again", Replay: recording})
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Do(context.Background())
	if err != nil || again.Status != abi.Succeeded || again.RecordsEmitted != result.RecordsEmitted {
		t.Fatalf("%+v, %v", again, err)
	}
	j.connection = "again"
	if d := cmp.Diff(live, j.records()); d != "" || len(live) == 0 {
		t.Error(d)
	}
	if err := j.host.Close(); err != nil {
		t.Error(err)
	}
}
