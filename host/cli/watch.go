package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A runWatcher follows a run, shows its progress and puts its questions to the owner,
// until it ends.
type runWatcher struct {
	c            *command
	k            *client.Client
	run          store.RunID
	owner        run.Owner // nil: nobody
	progress     *progress
	out          *sinks
	onEvent      func(store.Event) // called with every event, or nil
	savedAnswers *savedAnswers     // keeps the answers, or nil
	next         uint64            // first sequence that is not in the timeline file

	asking sync.WaitGroup
	stop   map[string]context.CancelFunc // of open questions
}

// follow follows the run. The first interrupt cancels it.
func (w *runWatcher) follow(ctx context.Context) (*run.Result, error) {
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
	var looking sync.WaitGroup
	look, enough := context.WithCancel(following)
	looking.Go(func() { w.pollStall(look) })
	err := w.k.Follow(following, w.run, "debug", nil, func(f client.Frame) error { return w.frame(ctx, f) })
	cancelled()
	enough()
	looking.Wait()
	for _, stop := range w.stop {
		stop()
	}
	w.asking.Wait()
	w.progress.close()
	if err == nil {
		err = w.keepEvents(context.WithoutCancel(ctx))
	}
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

// stallPollInterval is the interval at which the host is asked what holds a run up, which no
// event says.
const stallPollInterval = time.Second

// pollStall shows what holds the run up until ctx ends.
func (w *runWatcher) pollStall(ctx context.Context) {
	t := time.NewTicker(stallPollInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		shot, err := w.k.Run(ctx, w.run)
		if err != nil || shot.Status.Terminal() {
			continue // follow reports it
		}
		w.progress.setStalled(shot.Sluice.HeldUp)
	}
}

// keepEvents writes the events that are new to the file of --timeline.
func (w *runWatcher) keepEvents(ctx context.Context) error {
	if !w.out.wantsEvents() {
		return nil
	}
	return w.k.Timeline(context.WithoutCancel(ctx), w.run, w.next, func(e store.Event) error {
		w.next = e.Sequence + 1
		return w.out.event(e)
	})
}

func (w *runWatcher) frame(ctx context.Context, f client.Frame) error {
	if err := w.keepEvents(ctx); err != nil {
		return err
	}
	var d timeline.Doc
	if err := json.Unmarshal(f.Data, &d); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	var x struct {
		Stream        store.Stream `json:"stream"`
		InteractionID string       `json:"interaction_id"`
	}
	_ = json.Unmarshal(d.Payload, &x) // an event without them
	e := store.Event{ID: d.EventID, Type: string(d.Type), Sequence: d.Sequence, RunID: d.RunID, Stream: x.Stream,
		InteractionID: x.InteractionID, Data: d.Payload}
	w.progress.event(e)
	if w.onEvent != nil {
		w.onEvent(e)
	}
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

// ask puts a question to the owner while the run is still followed.
func (w *runWatcher) ask(ctx context.Context, interaction string) {
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
			_, err = w.c.submitAnswer(ctx, w.k, w.savedAnswers.wrap(w.owner), *q)
		}
		if err != nil && ctx.Err() == nil {
			w.c.warnf("The answer was not taken: %v", err)
		}
	})
}

// show shows the owner at the keyboard what a connector wants opened. No event has it,
// so it fetches the open request.
func (w *runWatcher) show(ctx context.Context, payload json.RawMessage) {
	broker, ok := w.owner.(run.LiveOwner)
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
			return // closed, or hidden from this key
		}
		live := run.LiveAssistance{ID: x.ID, Message: a.Raw.Message}
		for _, l := range a.Raw.Attachments {
			live.Attachments = append(live.Attachments,
				abi.Attachment{Kind: l.Kind, Label: l.Label, URL: l.URL, Payload: l.Payload})
		}
		broker.AssistanceOpened(w.run, live)
	})
}
