package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// strict makes all records be checked against the schemas of the manifest, even where the manifest does not ask
// for that.
func (l *Loaded) strict() {
	m := *l.Manifest
	m.Streams = slices.Clone(m.Streams)
	for i := range m.Streams {
		m.Streams[i].CheckSchema = true
	}
	l.Manifest = &m
}

// applyOverrides adds to a request what its owner provides for this run only.
func (rs *runs) applyOverrides(r *RunRequest, g *host.Overrides) error {
	if g == nil {
		return nil
	}
	given, err := rs.bindings.approval(r.Connector.Manifest, g.Bindings)
	if err != nil {
		return err
	}
	r.Approved = given.Approved
	r.Config, r.Secrets, r.Accepted, r.ResetState = g.Settings, g.Secrets, g.Accepted, g.ResetState
	if g.State != nil {
		r.State = g.State
	}
	if g.NotInteractive {
		r.Owner = nil
	}
	if g.Record {
		r.Record = NewRecorder()
	}
	if len(g.Replay) > 0 {
		tape, err := egress.ParseRecording(g.Replay)
		if err != nil {
			return host.Refuse("invalid_request", "the recording is damaged: %s", abi.Clean(err.Error()))
		}
		r.Replay = &Recording{tape}
	}
	return nil
}

// maxRecordings bounds the recordings that are kept until they are fetched.
const maxRecordings = 4

// recordings keeps recordings of finished runs in memory until they are fetched, and drops the oldest above
// maxRecordings.
type recordings struct {
	mu   sync.Mutex // guards all below
	runs []store.RunID
	of   map[store.RunID]host.Recording
}

// add keeps the recording of a run, unless its connector did not finish.
func (r *recordings) add(id store.RunID, from *Recorder, result *run.Result) error {
	if from == nil || result == nil {
		return nil
	}
	text, review, err := from.Finish(result)
	if errors.Is(err, ErrNotRecorded) {
		return nil
	}
	if err != nil {
		return err
	}
	out := host.Recording{Text: string(text), Exchanges: review.Exchanges, Origins: maps.Clone(review.Origins),
		Scrubbed: append([]string{}, review.Lines()...)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[store.RunID]host.Recording{}
	}
	if len(r.runs) == maxRecordings {
		delete(r.of, r.runs[0])
		r.runs = r.runs[1:]
	}
	r.runs, r.of[id] = append(r.runs, id), out
	return nil
}

// Recording implements host.Runs.
func (rs *runs) Recording(ctx context.Context, id store.RunID) (host.Recording, error) {
	rec, err := rs.Store.Run(ctx, id)
	if err == nil && rec.Status != "active" { // the end of a run is stored shortly before its recording is added
		_, err = rs.controller.Wait(ctx, id)
	}
	if err != nil && !errors.Is(err, controller.ErrNotActive) {
		return host.Recording{}, err
	}
	out, ok := rs.recordings.take(id)
	if ok {
		return out, nil
	}
	if err := rs.hosts.awayFrom(ctx, id, "the recording of this run"); err != nil {
		return out, err
	}
	return out, notFound("recording")
}

// take hands a recording over, once.
func (r *recordings) take(id store.RunID) (host.Recording, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, ok := r.of[id]
	delete(r.of, id)
	r.runs = slices.DeleteFunc(r.runs, func(x store.RunID) bool { return x == id })
	return out, ok
}
