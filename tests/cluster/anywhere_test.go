//go:build unix

package cluster

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// A run is answered, paused, resumed and cancelled at the host that does not have it, and a host
// that is drained starts none.
func TestFromAnywhere(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	c := start(t, server, "a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	a.connect("asks", step{"do": "otp", "text": "Code?"}, step{"do": "stamp", "n": 100_000, "ms": 50})
	id := a.begin("asks")
	asked := b.wait(id, served.Asks)
	var open struct {
		Data []struct{ AssistanceID string }
	}
	b.do("GET", "/v1/assistance?connectionId=asks", nil, &open)
	var question struct{ Raw host.RawAssistance }
	b.do("GET", "/v1/assistance/"+open.Data[0].AssistanceID, nil, &question)
	if question.Raw.Message != "Code?" {
		t.Errorf("the question at another host: %+v", question)
	}
	const canary = "731906428855"
	if err := b.Answer(soon(t), asked, map[string]any{"answers": map[string]string{"code": canary}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Answer(soon(t), asked, map[string]any{"answers": map[string]string{"code": canary}}); err == nil {
		t.Error("a question is answered twice")
	}
	a.wait(id, func(s timeline.Snapshot) bool { return s.Interrupt == nil })
	b.do("POST", "/v1/runs/"+string(id)+":pause", map[string]any{}, nil)
	b.wait(id, func(s timeline.Snapshot) bool { return s.Status == timeline.Paused })
	b.do("POST", "/v1/runs/"+string(id)+":resume", map[string]any{}, nil)
	b.wait(id, func(s timeline.Snapshot) bool { return s.Status == timeline.Running })
	if _, err := b.Cancel(soon(t), id); err != nil {
		t.Fatal(err)
	}
	if s := a.wait(id, served.Over); s.Status != timeline.Cancelled {
		t.Errorf("the run is %s", s.Status)
	}
	a.whole(id)
	b.do("POST", "/v1/hosts/"+a.id+"/drain", map[string]any{}, nil)
	until(t, "b leads", func() bool {
		for _, m := range b.list() {
			if m.Self {
				return m.Leads
			}
		}
		return false
	})
	if _, err := a.Start(soon(t), "asks", ""); err == nil {
		t.Error("a host that is drained started a run")
	}
	b.do("DELETE", "/v1/hosts/"+a.id+"/drain", nil, nil)
	until(t, "a starts runs again", func() bool { id, err := a.Start(soon(t), "asks", ""); _, _ = b.Cancel(soon(t), id); return err == nil })
	a.connect("keyed", step{"do": "emit", "n": 1})
	var both sync.WaitGroup
	ids := make([]store.RunID, 8)
	for i := range ids { // at both hosts at once
		both.Go(func() {
			var err error
			if ids[i], err = []*member{a, b}[i%2].Start(soon(t), "keyed", "one"); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if n := len(slices.Compact(slices.Sorted(slices.Values(ids)))); n != 1 {
		t.Errorf("one key made %d runs: %v", n, ids)
	}
	for _, m := range c.hosts {
		m.kill()
	}
	for _, dir := range []string{server.Dir, a.dir, b.dir, filepath.Dir(a.said.Name())} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // it went meanwhile
			}
			text, err := os.ReadFile(path)
			if err == nil && bytes.Contains(text, []byte(canary)) {
				t.Errorf("an answer is in %s", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
