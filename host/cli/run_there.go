package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// forHost refuses the flags that a run of a running host does not take: it has
// what its connection was given.
func (f *runFlags) forHost(connector string) error {
	name := orWord(f.connection, connector)
	for _, x := range []struct {
		flag    string
		given   bool
		instead string
	}{
		{"--mount", len(f.mounts) > 0, "sluice grant " + name + " --mount … gives it"},
		{"--allow-host", len(f.hosts) > 0, "sluice grant " + name + " --allow-host … gives it"},
		{"--secret-to", len(f.secretsTo) > 0, "sluice grant " + name + " --secret-to … gives it"},
		{"--plain", len(f.plain) > 0, "sluice grant " + name + " --plain … gives it"},
		{"--secret", len(f.secrets) > 0, "sluice secret set " + name + " NAME stores it"},
		{"--config", f.config != "", "sluice connect " + connector + " --config … makes a connection with it"},
		{"--state", f.state != "", "--reset-state starts afresh"},
		{"--manifest", f.manifest != "", "it is for files"},
		{"--require-isolation", f.require != "", "the host was started with it, or was not"},
		{"--record", f.record != "", "--store memory: runs a file beside the host"},
		{"--replay", f.replay != "", "--store memory: runs a file beside the host"},
		{"--timeline", f.timeline != "", "sluice events last --json prints the events"},
		{"--no-interactive", f.noInteractive, "nobody has to answer"},
	} {
		if x.given {
			return usagef("a running host has the store, and its runs take no %s; %s", x.flag, abi.Clean(x.instead))
		}
	}
	return nil
}

// runThere is sluice run on a running host: an installed connector or a
// connection.
func (c *command) runThere(ctx context.Context, k *client.Client, connector string, f *runFlags) error {
	if !app.IsName(connector) {
		return usagef("a running host has the store: install the connector there with sluice install %s, then run it by its name; or try it out with --store memory:", abi.Clean(connector))
	}
	if err := f.forHost(connector); err != nil {
		return err
	}
	q, err := c.runRequest(f)
	if err != nil {
		return err
	}
	out, err := openSinks(f)
	if err != nil {
		return err
	}
	defer out.abandon()
	to := served{k}
	m, id, err := to.workflow(ctx, connector, f.connection)
	if err != nil {
		return err
	}
	if f.reset {
		if err := k.ResetState(ctx, id, ""); err != nil {
			return err
		}
	}
	before, err := streamStats(ctx, to, id)
	if err != nil {
		return err
	}
	inputs := map[string]any{}
	if q.Mode != "" {
		inputs["collectionMode"] = q.Mode
	}
	if q.Scope != nil {
		inputs["scope"] = q.Scope
	}
	if q.NoPersist {
		inputs["persistState"] = false
	}
	if q.Trace {
		inputs["trace"] = true
	}
	if q.Narrow {
		inputs["narrow"] = true
	}
	started, err := startThere(ctx, k, id, inputs)
	if c.narrows(err) {
		inputs["narrow"] = true
		started, err = startThere(ctx, k, id, inputs)
	}
	if err != nil {
		return err
	}
	w := &watched{c: c, k: k, run: started.RunID, owner: q.Owner, progress: c.newProgress(m)}
	result, err := w.toTheEnd(ctx)
	if err != nil {
		return err
	}
	c.ran = true
	if s, ok := q.Owner.(*scripted); ok {
		s.unused()
	}
	ctx = context.WithoutCancel(ctx)
	after, err := streamStats(ctx, to, id)
	if err != nil {
		return err
	}
	done := &finished{result: result, changed: compare(before, after), logs: w.progress.logs}
	if err := out.finish(ctx, to, result, done.changed.since(result, m)); err != nil {
		return err
	}
	c.code = resultCode(result)
	return c.printResult(done)
}

func startThere(ctx context.Context, k *client.Client, id store.ConnectionID, inputs map[string]any) (client.Created, error) {
	raw, err := json.Marshal(inputs)
	if err != nil {
		return client.Created{}, fmt.Errorf("encode inputs: %w", err)
	}
	return k.StartRun(ctx, client.NewRun{WorkflowID: string(id), Inputs: raw})
}

// workflow finds what is to run (A63): a connection, or a connector, whose
// connection has its name unless another is said.
func (s served) workflow(ctx context.Context, name, connection string) (*abi.Manifest, store.ConnectionID, error) {
	id := store.ConnectionID(orWord(connection, name))
	conn, err := s.Client.Connection(ctx, id)
	of := name
	switch {
	case err == nil:
		of = conn.ConnectorName
	case !client.IsNotFound(err):
		return nil, "", err
	}
	k, lookErr := s.connectorNamed(ctx, of)
	if lookErr != nil {
		return nil, "", lookErr
	}
	if err != nil && !k.Conformance {
		if len(k.Connections) == 0 || connection != "" {
			return nil, "", missingf("connection_not_found", "there is no connection %s; sluice connect %s makes one", abi.Clean(string(id)), abi.Clean(k.Name))
		}
		id = store.ConnectionID(k.Name) // its only one, or the host says which there are
		if len(k.Connections) == 1 {
			id = store.ConnectionID(k.Connections[0].ConnectionID)
		}
	}
	m, err := abi.ReadManifest(k.Manifest)
	if err != nil {
		return nil, "", fmt.Errorf("read manifest of %s: %w", k.Name, err)
	}
	return m, id, nil
}

// A watched run is shown, and asked about, until it is over.
type watched struct {
	c        *command
	k        *client.Client
	run      store.RunID
	owner    run.Owner // nil: nobody
	progress *progress

	asking sync.WaitGroup
	stop   map[string]context.CancelFunc // of questions that stand
}

// toTheEnd follows the run. The first interrupt cancels it.
func (w *watched) toTheEnd(ctx context.Context) (*run.Result, error) {
	w.stop = map[string]context.CancelFunc{}
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	cancelled := context.AfterFunc(ctx, func() {
		w.progress.cancelling()
		within, done := context.WithTimeout(following, 10*time.Second)
		defer done()
		if _, err := w.k.CancelRun(within, w.run, "interrupted at the terminal"); err != nil {
			w.c.warnf("The run could not be cancelled: %v", err)
			end()
		}
	})
	err := w.k.Follow(following, w.run, "debug", nil, func(f client.Frame) error { return w.frame(ctx, f) })
	cancelled()
	for _, stop := range w.stop {
		stop()
	}
	w.asking.Wait()
	w.progress.close()
	if err != nil {
		return nil, err
	}
	raw, err := w.k.Result(context.WithoutCancel(ctx), w.run)
	if err != nil {
		return nil, err
	}
	var result run.Result
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, fmt.Errorf("read result of %s: %w", w.run, err)
	}
	return &result, nil
}

func (w *watched) frame(ctx context.Context, f client.Frame) error {
	var d timeline.Doc
	if err := json.Unmarshal(f.Data, &d); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	var x struct {
		Stream        store.Stream `json:"stream"`
		InteractionID string       `json:"interaction_id"`
	}
	_ = json.Unmarshal(d.Payload, &x) // an event without them
	w.progress.event(store.Event{ID: d.EventID, Type: string(d.Type), Sequence: d.Sequence, RunID: d.RunID, Stream: x.Stream, InteractionID: x.InteractionID, Data: d.Payload})
	switch d.Type {
	case timeline.RunInteractionRequired:
		w.ask(ctx, x.InteractionID)
	case timeline.RunAssistanceRequested:
		w.show(ctx, d.Payload)
	case timeline.RunInteractionCompleted:
		if stop := w.stop[x.InteractionID]; stop != nil {
			stop()
			delete(w.stop, x.InteractionID)
		}
	}
	return nil
}

// ask puts a question to the owner, while the run is followed on.
func (w *watched) ask(ctx context.Context, interaction string) {
	if w.owner == nil {
		w.c.warnf("It waits for an answer: sluice answer %s", w.run)
		return
	}
	ctx, stop := context.WithCancel(ctx) // #nosec G118 -- called when the question is closed, and when the run is over
	w.stop[interaction] = stop
	w.asking.Go(func() {
		q, err := question(ctx, w.k, w.run, interaction)
		if err == nil && q != nil {
			q.DisplayName = w.progress.name
			_, err = w.c.give(ctx, w.k, w.owner, *q)
		}
		if err != nil && ctx.Err() == nil {
			w.c.warnf("The answer was not taken: %v", err)
		}
	})
}

// show has the owner at the keyboard see what a connector wants opened, which no event
// has: it is asked for while the request is open.
func (w *watched) show(ctx context.Context, payload json.RawMessage) {
	desk, ok := w.owner.(run.Desk)
	if !ok {
		return
	}
	var x struct {
		ID string `json:"assistance_request_id"`
	}
	if json.Unmarshal(payload, &x) != nil || x.ID == "" {
		return
	}
	w.asking.Go(func() {
		a, err := w.k.Assistance(ctx, timeline.AssistanceID(w.run, x.ID))
		if err != nil || a.Raw == nil {
			return // it is closed, or not for this key to see
		}
		live := run.LiveAssistance{ID: x.ID, Message: a.Raw.Message}
		for _, l := range a.Raw.Attachments {
			live.Attachments = append(live.Attachments, abi.Attachment{Kind: l.Kind, Label: l.Label, URL: l.URL, Payload: l.Payload})
		}
		desk.AssistanceOpened(w.run, live)
	})
}
