package run_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// ahead is a store whose clock is not that of this machine. It notes the times that are given to it.
type ahead struct {
	*memory
	times map[string]time.Time
}

const by = 10 * time.Minute

func (*ahead) Now() time.Time { return time.Now().Add(by) }

func (a *ahead) Acquire(ctx context.Context, r store.Run, host, boot string, ttl time.Duration,
	with ...store.Write) (store.Lease, error) {
	a.times["start"] = r.StartedAt
	if r.ID < run.NewRunID(time.Now().Add(by-time.Minute)) {
		a.times["id"] = time.Now() // it says so
	}
	return a.memory.Acquire(ctx, r, host, boot, ttl, with...)
}

func (a *ahead) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	for _, e := range c.Events {
		a.times[e.Type] = e.OccurredAt
	}
	if c.Run != nil && c.Run.FinishedAt != nil {
		a.times["end"] = *c.Run.FinishedAt
	}
	return a.memory.Submit(ctx, c)
}

// What is stored of a run goes by the clock of the store; how long it took does not.
func TestStoreClock(t *testing.T) {
	m, err := abi.ReadManifest([]byte(`{"protocol_version":"0.1.0","connector_id":"late","version":"1","display_name":"Late",
		"streams":[{"name":"items","semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	log := &ahead{&memory{}, map[string]time.Time{}}
	plan, err := run.Prepare(t.Context(), log, run.Input{
		Connector: store.Connector{ID: "late", Name: "late"}, Connection: store.Connection{ID: "late", Enabled: true},
		Manifest:  m,
		Transport: "abi", Trigger: "manual", Kinds: kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := run.New(plan, run.Deps{Store: log, HostID: "host", BootEpoch: "boot",
		Launch: func(context.Context, run.Launch) (run.Guest, binding.Binding, error) {
			return nil, nil, errors.New("not today")
		},
	}).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(log.times) < 3 || log.times["start"].IsZero() || log.times["end"].IsZero() {
		t.Errorf("times %v", log.times)
	}
	for what, at := range log.times {
		if d := at.Sub(log.Now()).Abs(); d > by/2 {
			t.Errorf("%s is at %s, off by %s", what, at, d)
		}
	}
	if d := time.Duration(result.Usage.Wall) * time.Millisecond; d < 0 || d > by/2 {
		t.Errorf("it took %s", d)
	}
}

// A grant expires by the clock of the store.
func TestGrantExpiresByStoreClock(t *testing.T) {
	m, err := abi.ReadManifest([]byte(`{"protocol_version":"0.1.0","connector_id":"late","version":"1","display_name":"Late",
		"streams":[{"name":"items","semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		in   time.Duration // of this machine's clock
		code string
	}{"expired": {by / 2, "grant_expired"}, "not expired": {by + time.Hour, ""}} {
		until := time.Now().Add(c.in)
		_, err := run.Prepare(t.Context(), &ahead{&memory{}, map[string]time.Time{}}, run.Input{
			Connector: store.Connector{ID: "late", Name: "late"},
			Connection: store.Connection{ID: "late", Enabled: true,
				Grant: &store.Grant{ID: "gra_1", AccessMode: "continuous", Status: "active", ExpiresAt: &until}},
			Manifest: m, Transport: "abi", Trigger: "manual", Kinds: kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
		})
		var refused *run.Refusal
		if errors.As(err, &refused); (c.code == "") != (err == nil) || refused != nil && refused.Code != c.code {
			t.Errorf("a grant that has %s: %v", what, err)
		}
	}
}
