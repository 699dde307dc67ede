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
	// Collect performs the whole run. A nil result means succeeded, an error failed (see
	// Fail), and any error once ctx is done cancelled. ctx is done as soon as a call learns
	// that the host cancels the run.
	Collect func(ctx context.Context, run *Run) error
	// Verbatim sends records as they are emitted. By default Emit leaves out members that
	// the scope does not grant; with Verbatim the connector must do so, and a member that
	// it forgets ends the run.
	Verbatim bool
}

// A Run is the connector's side of one run. Its methods are safe for concurrent use. Calls
// to the host happen one at a time, and in a wasm build all goroutines wait during one.
type Run struct {
	start     *abi.Start
	streams   map[string]int // position in the scope
	cancel    context.CancelCauseFunc
	port      port
	exchanger exchanger // of network requests

	mu    sync.Mutex // guards the fields below; held during calls
	frame abi.FrameWriter
	// outlets has one entry per stream of the scope.
	outlets   []outlet
	last      *outlet // the one used last, and the name by which it was found
	lastName  string
	emitted   int64
	questions int   // number of questions so far, for their ids
	fatal     error // why further calls can have no effect
}

// An outlet sends the records of one stream of the scope.
type outlet struct {
	index   uint16
	encoder encode.Stream
}

// newRun returns the run that START describes. If verbatim, records keep members that the
// scope does not grant.
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

// outlet returns the outlet of a stream, or nil if it is not in scope, and remembers it
// because records of one stream mostly follow each other.
func (r *Run) outlet(stream string) *outlet {
	i, ok := r.streams[stream]
	if !ok {
		return nil
	}
	r.last, r.lastName = &r.outlets[i], stream
	return r.last
}

// Start returns START as the host sent it. The caller must not change it.
func (r *Run) Start() *abi.Start { return r.start }

// Mode returns the collection mode, full_refresh or incremental.
func (r *Run) Mode() string { return r.start.CollectionMode }

// Incremental reports whether the run continues from its state.
func (r *Run) Incremental() bool { return r.start.CollectionMode == abi.Incremental }

// Scope returns what the run may collect. The caller must not change it.
func (r *Run) Scope() abi.Scope { return r.start.Scope }

// InScope reports whether the run may collect a stream.
func (r *Run) InScope(stream string) bool {
	_, ok := r.streams[stream]
	return ok
}

// Stream returns the scope's entry of a stream: its resources, fields and time range.
func (r *Run) Stream(stream string) (abi.ScopeStream, bool) {
	i, ok := r.streams[stream]
	if !ok {
		return abi.ScopeStream{}, false
	}
	return r.start.Scope.Streams[i], true
}

// Interactive reports whether the owner can be asked.
func (r *Run) Interactive() bool { return r.start.Bindings.Interactive != nil }

// State unmarshals the stream's cursor of the last successful run into v, and reports
// whether there is one.
func (r *Run) State(stream string, v any) (bool, error) {
	raw, ok := r.start.State[stream]
	if !ok || string(raw) == "null" {
		return false, nil
	}
	return true, json.Unmarshal(raw, v)
}

// Config unmarshals the connection's settings into v, and leaves v unchanged if there are
// none.
func (r *Run) Config(v any) error {
	if len(r.start.Config) == 0 {
		return nil
	}
	return json.Unmarshal(r.start.Config, v)
}

// Secret returns the value of a secret, or its handle if it is delivered sealed, or "" if
// it is not set.
func (r *Run) Secret(name string) string { return r.start.Secrets[name] }

// Mount returns the path of a directory that the manifest's filesystem binding names, and
// whether the owner granted it. os.Open, os.ReadDir and fs.WalkDir work there.
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

// call flushes and then makes one call, holding the lock.
func (r *Run) call(function func([]byte) ([]byte, error), message []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.callLocked(function, message)
}

func (r *Run) callLocked(function func([]byte) ([]byte, error), message []byte) ([]byte, error) {
	if err := r.flush(); err != nil {
		return nil, err
	}
	reply, err := function(message)
	return reply, r.checkFatal(err)
}

// checkFatal cancels the run's context if err ends the run: a violation ends it at once, and
// after a cancel the host accepts only DONE.
func (r *Run) checkFatal(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if e.Errno == abi.EPROTO || e.Errno == abi.ECANCELED {
		r.fatal = err
		r.cancel(err)
	}
	return err
}
