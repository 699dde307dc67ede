package run_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A spender is a browser in which a stored password was sent and no session came
// about, or one did.
type spender struct {
	racePage
	spent bool
}

func (p *spender) Spent() bool { return p.spent }

// A failer ends as a connector does that failed.
type failer struct{ *racer }

func (failer) Exit() sandbox.Exit { return sandbox.Exit{Kind: sandbox.ExitExited, Code: 1} }

// A session that failed after a stored password was sent is not made again by
// itself, whatever the connector says of its failure.
func TestSpentIsNotRetried(t *testing.T) {
	m, err := abi.ReadManifest([]byte(`{"protocol_version":"0.1.0","connector_id":"racer","version":"1","display_name":"Racer",
		"runtime_requirements":{"bindings":{"browser":{}}},
		"streams":[{"name":"items","semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, failure string
		spent         bool
		action        string
		retryable     bool
	}{
		{"no password was sent", `{"message":"network","retryable":true}`, false, abi.RetryByRuntime, true},
		{"it says retryable", `{"message":"network","retryable":true}`, true, abi.ManualActionRequired, false},
		{"it says retry", `{"message":"x","recovery_hint":"retry_by_runtime"}`, true, abi.ManualActionRequired, false},
		{"it says credentials", `{"message":"x","recovery_hint":"refresh_credentials"}`, true, abi.RefreshCredentials, false},
		{"it says nothing", `{"message":"x"}`, true, abi.ManualActionRequired, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, guest := &memory{}, newRacer(abi.KindManualAction)
				guest.done = `{"status":"failed","records_emitted":0,"error":` + c.failure + `}`
				close(guest.until)
				plan, err := run.Prepare(t.Context(), log, run.Input{
					Connector:  store.Connector{ID: "racer", Name: "racer"},
					Connection: store.Connection{ID: "racer", Enabled: true, Approved: store.Approved{Browser: true}},
					Manifest:   m, Transport: "abi", UsesABI: true, Interactive: true, Trigger: "manual",
					Kinds: kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
				})
				if err != nil {
					t.Fatal(err)
				}
				result, err := run.New(plan, run.Deps{
					Store: log, Owner: prompt{}, Bindings: []binding.Binding{&spender{racePage{asked: make(chan struct{})}, c.spent}},
					HostID: "host", BootEpoch: "boot",
					Launch: func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return failer{guest}, nil, nil },
				}).Do(t.Context())
				if err != nil || result.Status != abi.Failed || result.ConnectorError == nil {
					t.Fatalf("%+v, %v", result, err)
				}
				if r := result.ConnectorError.Retryable; c.spent && (r == nil || *r) {
					t.Errorf("the connector's error is %+v", result.ConnectorError)
				}
				for _, g := range result.KnownGaps {
					if g.Kind == "run_failed" && g.RecoveryHint == (run.Hint{Action: c.action, Retryable: c.retryable}) {
						return
					}
				}
				t.Errorf("%+v", result.KnownGaps)
			})
		})
	}
}
