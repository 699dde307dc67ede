//go:build unix

package cluster

import (
	"bytes"
	"errors"
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

// A host that is drained puts the run that waits to sleep, and another one has it at once, with the
// same question: it is answered at the host that is drained, and goes on. So is one that asks while
// its host is drained.
func TestDrained(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	a.connect("asks", step{"do": "emit", "n": 3}, step{"do": "otp", "text": "Code?"}, step{"do": "emit", "n": 4})
	a.connect("later", step{"do": "wait", "ms": 6000}, step{"do": "otp", "text": "Code?"})
	id, later := a.begin("asks"), a.begin("later")
	asked := a.wait(id, served.Asks)
	if at := b.performer(id); at != a.id {
		t.Fatalf("the run is at %s", at)
	}
	b.do("POST", "/v1/hosts/"+a.id+"/drain", map[string]any{}, nil)
	until(t, "the run is at the other host", func() bool { return b.performer(id) == b.id })
	if again := b.wait(id, served.Asks); again.Interrupt.InterruptID != asked.Interrupt.InterruptID {
		t.Errorf("the question was %+v and is %+v", asked.Interrupt, again.Interrupt)
	}
	if err := a.Answer(soon(t), asked, map[string]any{"answers": map[string]string{"code": "123456"}}); err != nil {
		t.Fatal(err)
	}
	until(t, "the run that asked later is at the other host", func() bool { return b.performer(later) == b.id })
	if _, err := a.Cancel(soon(t), later); err != nil {
		t.Fatal(err)
	}
	for run, end := range map[store.RunID]timeline.Type{id: timeline.RunCompleted, later: timeline.RunCancelled} {
		b.wait(run, served.Over)
		if got := b.whole(run); got != end {
			t.Errorf("run %s ended with %s", run, got)
		}
	}
	var led *served.Failure
	_, err := a.Do(soon(t), "GET", "/v1/runs/"+string(id)+"/requests", nil, nil)
	if !errors.As(err, &led) || led.Details["hostId"] != b.id {
		t.Errorf("the requests of a run that went on at the other host: %v", err)
	}
	if len(a.list()) != 2 {
		t.Error("the host that is drained is gone")
	}
}

// A run is answered, paused, resumed and cancelled at the host that does not have it, and a host
// that is drained has another one start its runs.
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
	for _, key := range []string{"", "drained"} {
		passed, err := a.Start(soon(t), "asks", key)
		if at := b.performer(passed); err != nil || at != b.id {
			t.Errorf("a run started at a host that is drained is at host %q: %v", at, err)
		}
		if again, err := b.Start(soon(t), "asks", key); key != "" && (err != nil || again != passed) {
			t.Errorf("the key of run %s started %s: %v", passed, again, err)
		}
		if _, err := a.Cancel(soon(t), passed); err != nil {
			t.Fatal(err)
		}
		b.wait(passed, served.Over)
	}
	var fork struct{ RunID store.RunID }
	a.do("POST", "/v1/runs/"+string(id)+":fork", map[string]any{"fromSeq": 0, "mode": "branch"}, &fork, "Idempotency-Key", "fork")
	if at := b.performer(fork.RunID); at != b.id {
		t.Errorf("a branch started at a host that is drained is at host %q", at)
	}
	if _, err := a.Cancel(soon(t), fork.RunID); err != nil {
		t.Fatal(err)
	}
	b.wait(fork.RunID, served.Over)
	b.do("DELETE", "/v1/hosts/"+a.id+"/drain", nil, nil)
	until(t, "a starts runs again", func() bool {
		id := a.begin("asks")
		at := b.performer(id)
		if _, err := b.Cancel(soon(t), id); err != nil {
			t.Fatal(err)
		}
		b.wait(id, served.Over)
		return at == a.id
	})
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
