//go:build !wasip1

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

const token = "github_pat_11REAL0TOKEN0aB3dE5gH7jK9"

// A jailed connector runs as owners run it.
type jailed struct {
	connection store.ConnectionID
	record     *app.Recorder // nil for none
	t          *testing.T
	host       *app.Host
	loaded     *app.Loaded
	data       string
	log        bytes.Buffer
	server     *httptest.Server
	approved   []string
	last       store.RunID
}

// jail builds the connector, gives it the address of a fake as the place where
// its token may go, and opens a host.
func jail(t *testing.T, f *fake) *jailed {
	t.Helper()
	j := &jailed{t: t, connection: "github", data: filepath.Join(t.TempDir(), "data"), server: httptest.NewServer(f)}
	t.Cleanup(j.server.Close)
	f.base, j.approved = "/api/v3", []string{j.server.URL}
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	j.host, err = app.Open(context.Background(), app.Options{
		Store: "badger:" + j.data + "?memory=small", CacheDir: cache, Log: slog.New(slog.NewTextHandler(&j.log, nil)),
		RateLimit: egress.RateLimit{PerSecond: 200, Burst: 50, AtOnce: 4, LongestStop: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := build.Connector("examples/github")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the module has %.1f MB", float64(len(wasm))/1e6)
	sidecar := strings.NewReplacer(`"hosts": ["api.github.com"]`, `"hosts": ["`+j.server.URL+`"]`,
		`"origin": "https://api.github.com"`, `"origin": "`+j.server.URL+`"`).Replace(string(manifest))
	if strings.Count(sidecar, j.server.URL) != 2 {
		t.Fatal("the manifest names api.github.com in another way")
	}
	module, beside := filepath.Join(t.TempDir(), "github.wasm"), filepath.Join(t.TempDir(), "manifest.json")
	for path, b := range map[string][]byte{module: wasm, beside: []byte(sidecar)} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Load refuses a module over the default limit of 32 MiB.
	if j.loaded, err = j.host.Load(context.Background(), module, beside); err != nil {
		t.Fatal(err)
	}
	return j
}

// collect does one run, which must succeed.
func (j *jailed) collect() *run.Result {
	j.t.Helper()
	began, result := time.Now(), j.ended()
	if result.Status != abi.Succeeded {
		j.t.Fatalf("ended as %s: %+v, %+v, %+v", result.Status, result.Failure, result.ConnectorError, result.Violation)
	}
	j.t.Logf("%d records in %s, peak memory of the guest %d MB", result.RecordsFlushed,
		time.Since(began).Round(time.Millisecond), result.Usage.PeakMemory/1e6)
	return result
}

// ended does one run.
func (j *jailed) ended() *run.Result {
	j.t.Helper()
	config, err := json.Marshal(object{"api": j.server.URL + "/api/v3"})
	if err != nil {
		j.t.Fatal(err)
	}
	r, err := j.host.Start(context.Background(), app.RunRequest{
		Connector: j.loaded, Approved: store.Approved{Hosts: j.approved}, Config: config,
		Secrets: map[string]string{"token": token}, Record: j.record,
	})
	if err != nil {
		j.t.Fatal(err)
	}
	result, err := r.Do(context.Background())
	if err != nil {
		j.t.Fatal(err)
	}
	j.last = result.RunID
	return result
}

// records are the current ones of all streams, by stream and key.
func (j *jailed) records() map[string]json.RawMessage {
	j.t.Helper()
	out := map[string]json.RawMessage{}
	for stream := range everything {
		page, err := j.host.Store.Records(context.Background(),
			store.RecordQuery{Connection: j.connection, Stream: store.Stream(stream), Limit: 1000})
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
