package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// ofGiven is a run of a module that need not be installed, or of an installed one
// whose connection is made if there is none.
func (s *Service) ofGiven(ctx context.Context, name string, g *host.Given) (w workflow, err error) {
	w.making = true
	switch {
	case len(g.Module) > 0:
		w.loaded, err = s.host.LoadBytes(g.Module, g.Manifest)
	default:
		w.loaded, err = s.host.installed(ctx, name, "")
		if err == nil && len(g.Manifest) > 0 {
			w.loaded, err = s.host.loadListed(w.loaded.Connector, g.Manifest)
		}
	}
	if err != nil {
		return w, err
	}
	if len(g.Signature) > 0 {
		if w.loaded.Signature, err = signature.Parse(g.Signature); err != nil {
			return w, host.Refuse(CodeSignatureInvalid, "this is no signature of minisign")
		}
	}
	if g.Strict {
		w.loaded.strict()
	}
	w.connection = store.ConnectionID(g.Connection)
	return w, nil
}

// strict has all records checked against the manifest, whether or not it asks hosts to.
func (l *Loaded) strict() {
	m := *l.Manifest
	m.Streams = slices.Clone(m.Streams)
	for i := range m.Streams {
		m.Streams[i].CheckSchema = true
	}
	l.Manifest = &m
}

// give adds to a request what its owner gave for this run.
func (s *Service) give(r *RunRequest, g *host.Given) error {
	if g == nil {
		return nil
	}
	given, err := s.host.approval(r.Connector.Manifest, g.Bindings)
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
		tape, err := network.ParseRecording(g.Replay)
		if err != nil {
			return host.Refuse("invalid_request", "the recording is damaged: %s", abi.Clean(err.Error()))
		}
		r.Replay = &Recording{tape}
	}
	return nil
}

// maxRecordings is how many recordings are kept until they are asked for.
const maxRecordings = 4

// recordings are those of runs that are over, newest last.
type recordings struct {
	mu   sync.Mutex // guards all below
	runs []store.RunID
	of   map[store.RunID]host.Recording
}

// add keeps the recording of a run whose connector came to its end.
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
	out := host.Recording{Text: string(text), Exchanges: review.Exchanges, Origins: maps.Clone(review.Origins), Scrubbed: review.Lines()}
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
func (s *Service) Recording(_ context.Context, id store.RunID) (host.Recording, error) {
	r := &s.recordings
	r.mu.Lock()
	defer r.mu.Unlock()
	out, ok := r.of[id]
	if !ok {
		return out, notFound("recording")
	}
	delete(r.of, id)
	r.runs = slices.DeleteFunc(r.runs, func(x store.RunID) bool { return x == id })
	return out, nil
}
