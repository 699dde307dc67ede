package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/store"
)

// traced is "traced RUN CONNECTION [nothing]": a run that is over is in the store,
// with the trace of one action or without.
func traced(ts *testscript.TestScript, _ bool, args []string) {
	h, err := app.Open(context.Background(),
		app.Options{Store: "badger:" + filepath.Join(ts.Getenv("XDG_DATA_HOME"), "sluice"), NoSandbox: true})
	ts.Check(err)
	defer h.Close()
	now := time.Now()
	id, of := store.RunID(args[0]), store.ConnectionID(args[1])
	event := func(typ string, data any) store.Event {
		raw, err := json.Marshal(data)
		ts.Check(err)
		return store.Event{ID: "evt_0000000000000001", Type: typ, OccurredAt: now, RunID: id, ConnectionID: of,
			NodeID: "collect", Data: raw}
	}
	var events []store.Event
	if len(args) == 2 {
		a, err := browser.BeginTrace(browser.Traces(h.DataDir), args[0])
		ts.Check(err)
		a.Action(engine.Click, engine.Trace{ActionID: "act_1", Outcome: "success"})
		s, err := a.Finish(context.Background())
		ts.Check(err)
		events = append(events, event("artifact.created",
			map[string]any{"artifactId": "art_1", "artifactType": "browser-trace", "nodeId": "collect",
				"summary": "Browser trace, 1 actions", "mediaType": "application/zip", "size": s.Bytes, "digest": s.Digest}))
	}
	row := store.Run{ID: id, ConnectionID: of, TraceID: "trc_0123456789abcdef", Status: "active", StartedAt: now,
		TriggerKind: "manual", Attempt: 1}
	lease, err := h.Store.Acquire(context.Background(), row, h.ID, h.Epoch, time.Minute)
	ts.Check(err)
	row.Status, row.FinishedAt, row.Result = "succeeded", &now,
		json.RawMessage(`{"status":"succeeded","run_id":"`+args[0]+`"}`)
	receipt, err := h.Store.Submit(context.Background(),
		&store.Commit{Lease: lease, Run: &row, End: true, Events: append(events, event("run.completed", struct{}{}))})
	ts.Check(err)
	_, err = receipt.Result()
	ts.Check(err)
}

// spoil is "spoil FILE": one bit of it changes.
func spoil(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	b[len(b)/2] ^= 1
	ts.Check(os.WriteFile(path, b, 0o600))
}
