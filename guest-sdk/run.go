package guest

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// A Connector is what Main runs.
type Connector struct {
	// Collect does the whole run: nil ends it as succeeded, an error as failed
	// (see Fail), and any error once ctx is done as cancelled. ctx is done as
	// soon as a call finds out that the host cancels the run.
	Collect func(ctx context.Context, run *Run) error
	// Verbatim sends records as they are emitted. Without it Emit leaves out
	// members that the scope does not grant; with it the connector does, and one
	// that it forgets ends the run.
	Verbatim bool
}

// A Run is the connector's side of one run. Its methods may be called from
// several goroutines; calls to the host happen one at a time, and in a wasm
// build everything waits while one does.
type Run struct {
	start     *abi.Start
	streams   map[string]int // position in the scope
	cancel    context.CancelCauseFunc
	port      port
	exchanger exchanger // of network requests

	mu    sync.Mutex // guards all below, and is held during a call
	frame abi.FrameWriter
	// outlets has one entry per stream of the scope.
	outlets  []outlet
	last     *outlet // the one emitted to last, and by which name
	lastName string
	emitted  int64
	asked    int   // questions so far, for their ids
	ended    error // why no further call can have an effect
}

// An outlet is a stream of the scope, as records are sent through it.
type outlet struct {
	index   uint16
	encoder encode.Stream
}

// newRun returns the run that START describes. If verbatim, records keep the
// members that the scope does not grant.
func newRun(p port, start *abi.Start, cancel context.CancelCauseFunc, verbatim bool) *Run {
	r := &Run{start: start, port: p, cancel: cancel, streams: make(map[string]int, len(start.Scope.Streams))}
	for i, s := range start.Scope.Streams {
		r.streams[s.Name] = i
		granted := s.Fields
		if verbatim {
			granted = nil
		}
		r.outlets = append(r.outlets, outlet{uint16(i), encode.NewStream(granted)})
	}
	return r
}

// outlet returns that of a stream, nil for one that is not in scope. The same
// stream, most often the same string, comes many times in a row.
func (r *Run) outlet(stream string) *outlet {
	i, ok := r.streams[stream]
	if !ok {
		return nil
	}
	r.last, r.lastName = &r.outlets[i], stream
	return r.last
}

// Start returns START as the host sent it. It must not be changed.
func (r *Run) Start() *abi.Start { return r.start }

// Mode returns the collection mode, full_refresh or incremental.
func (r *Run) Mode() string { return r.start.CollectionMode }

// Incremental reports whether the run goes on from its state.
func (r *Run) Incremental() bool { return r.start.CollectionMode == abi.Incremental }

// Scope returns what the run may collect. It must not be changed.
func (r *Run) Scope() abi.Scope { return r.start.Scope }

// InScope reports whether the run may collect a stream.
func (r *Run) InScope(stream string) bool {
	_, ok := r.streams[stream]
	return ok
}

// Stream returns the scope's entry of a stream: its resources, fields and time
// range.
func (r *Run) Stream(stream string) (abi.ScopeStream, bool) {
	i, ok := r.streams[stream]
	if !ok {
		return abi.ScopeStream{}, false
	}
	return r.start.Scope.Streams[i], true
}

// Interactive reports whether there is somebody to ask.
func (r *Run) Interactive() bool { return r.start.Bindings.Interactive != nil }

// State reads a stream's cursor of the last successful run into v, and reports
// whether there is one.
func (r *Run) State(stream string, v any) (bool, error) {
	raw, ok := r.start.State[stream]
	if !ok || string(raw) == "null" {
		return false, nil
	}
	return true, json.Unmarshal(raw, v)
}

// Config reads the connection's settings into v, and leaves it alone when there
// are none.
func (r *Run) Config(v any) error {
	if len(r.start.Config) == 0 {
		return nil
	}
	return json.Unmarshal(r.start.Config, v)
}

// Secret returns a secret's value or, when it is delivered sealed, the handle
// that stands for it; "" when there is none.
func (r *Run) Secret(name string) string { return r.start.Secrets[name] }

// Mount returns where the run sees a directory that the manifest's filesystem
// binding names, and whether the owner granted it. os.Open, os.ReadDir and
// fs.WalkDir work there.
func (r *Run) Mount(name string) (dir string, ok bool) {
	if r.start.Bindings.Filesystem == nil {
		return "", false
	}
	for _, m := range r.start.Bindings.Filesystem.Mounts {
		if path.Base(m.Path) == name {
			return m.Path, true
		}
	}
	return "", false
}

// call sends what was emitted and then one message. It has the lock during both.
func (r *Run) call(function func([]byte) ([]byte, error), message []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.locked(function, message)
}

func (r *Run) locked(function func([]byte) ([]byte, error), message []byte) ([]byte, error) {
	if err := r.flush(); err != nil {
		return nil, err
	}
	reply, err := function(message)
	return reply, r.noticed(err)
}

// noticed looks whether an error means the end of the run: a violation ends it
// at once, and a cancelled run takes nothing more but DONE.
func (r *Run) noticed(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if e.Errno == abi.EPROTO || e.Errno == abi.ECANCELED {
		r.ended = err
		r.cancel(err)
	}
	return err
}
