//go:build !wasip1

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// The test binary is the worker, too.
func TestMain(m *testing.M) {
	if code, worker := host.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

const token = "github_pat_11REAL0TOKEN0aB3dE5gH7jK9"

// A jailed connector runs as owners run it.
type jailed struct {
	t        *testing.T
	host     *host.Host
	loaded   *host.Loaded
	data     string
	log      bytes.Buffer
	server   *httptest.Server
	approved []string
	last     store.RunID
}

// jail builds the connector, gives it the address of a fake as the place where
// its token may go, and opens a host.
func jail(t *testing.T, f *fake) *jailed {
	t.Helper()
	j := &jailed{t: t, data: filepath.Join(t.TempDir(), "data"), server: httptest.NewServer(f)}
	t.Cleanup(j.server.Close)
	f.base, j.approved = "/api/v3", []string{j.server.URL}
	cache := os.Getenv("SLUICE_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(user, "sluice-tests")
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	j.host, err = host.Open(context.Background(), host.Options{
		Store: "badger:" + j.data + "?memory=small", CacheDir: cache, Log: slog.New(slog.NewTextHandler(&j.log, nil)),
		Pace: network.Pace{PerSecond: 200, Burst: 50, AtOnce: 4, LongestStop: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := host.Build(context.Background(), ".")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the module has %.1f MB", float64(len(wasm))/1e6)
	sidecar := strings.NewReplacer(`"hosts": ["api.github.com"]`, `"hosts": ["`+j.server.URL+`"]`, `"origin": "https://api.github.com"`, `"origin": "`+j.server.URL+`"`).Replace(string(manifest))
	if strings.Count(sidecar, j.server.URL) != 2 {
		t.Fatal("the manifest names api.github.com in another way")
	}
	module, beside := filepath.Join(t.TempDir(), "github.wasm"), filepath.Join(t.TempDir(), "manifest.json")
	for path, b := range map[string][]byte{module: wasm, beside: []byte(sidecar)} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Load refuses a module over the default limit of 32 MiB (security.md, section 17).
	if j.loaded, err = j.host.Load(context.Background(), module, beside); err != nil {
		t.Fatal(err)
	}
	return j
}

// collect does one run, which must succeed.
func (j *jailed) collect() *run.Result {
	j.t.Helper()
	config, err := json.Marshal(object{"api": j.server.URL + "/api/v3"})
	if err != nil {
		j.t.Fatal(err)
	}
	r, err := j.host.Start(context.Background(), host.RunRequest{
		Connector: j.loaded, Approved: store.Approved{Hosts: j.approved}, Config: config, Secrets: map[string]string{"token": token},
	})
	if err != nil {
		j.t.Fatal(err)
	}
	began := time.Now()
	result, err := r.Do(context.Background())
	if err != nil {
		j.t.Fatal(err)
	}
	j.last = result.RunID
	if result.Status != abi.Succeeded {
		j.t.Fatalf("ended as %s: %+v, %+v, %+v", result.Status, result.Failure, result.ConnectorError, result.Violation)
	}
	j.t.Logf("%d records in %s, peak memory of the guest %d MB", result.RecordsFlushed, time.Since(began).Round(time.Millisecond), result.Usage.PeakMemory/1e6)
	return result
}

// records are the current ones of all streams, by stream and key.
func (j *jailed) records() map[string]json.RawMessage {
	j.t.Helper()
	out := map[string]json.RawMessage{}
	for stream := range everything {
		page, err := j.host.Store.Records(context.Background(), store.RecordQuery{Connection: "github", Stream: store.Stream(stream), Limit: 1000})
		if err != nil {
			j.t.Fatal(err)
		}
		for _, r := range page.Records {
			out[stream+" "+r.Key] = r.Data
		}
	}
	return out
}

// closed closes the host and looks for the token in everything that it leaves.
func (j *jailed) closed(result *run.Result) {
	j.t.Helper()
	for stream, data := range j.records() {
		if bytes.Contains(data, []byte(token)) {
			j.t.Errorf("the token is in record %s: %s", stream, data)
		}
	}
	events, err := j.host.Store.Events(context.Background(), j.last, 0, 1000)
	if err != nil || len(events) == 0 {
		j.t.Fatalf("%d events, %v", len(events), err)
	}
	said, err := json.Marshal([]any{events, result, j.log.String()})
	if err != nil {
		j.t.Fatal(err)
	}
	if bytes.Contains(said, []byte(token)) {
		j.t.Errorf("the token is in the events, the result or the log:\n%s", said)
	}
	if err := j.host.Close(); err != nil {
		j.t.Error(err)
	}
	files := 0
	err = filepath.WalkDir(j.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(token)) {
			j.t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil || files == 0 {
		j.t.Errorf("%d files, %v", files, err)
	}
}

// In the jail, go-github collects all there is with a token that it never sees;
// GitHub sees it, and nothing else does. A second run has what is new. On the
// way a server asks for a pause, repeats the token, cuts an answer short and
// redirects to somebody who would like to have the token (S80, S81).
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
		r, err := j.host.Start(context.Background(), host.RunRequest{
			Connector: j.loaded, Approved: store.Approved{Hosts: approved}, Config: json.RawMessage(`{"api":"` + other.URL + `"}`), Secrets: map[string]string{"token": token},
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
