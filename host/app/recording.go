package app

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A Recorder records one run, for RunRequest.Record.
type Recorder struct {
	header   egress.Header
	recorder *egress.Recorder // nil until the run is started
}

// NewRecorder returns a Recorder with a random seed.
func NewRecorder() *Recorder {
	r := &Recorder{}
	rand.Read(r.header.Seed[:])
	return r
}

// begin returns a recorder of a client, and starts the guest's clock.
func (r *Recorder) begin(c *egress.Client, q RunRequest, plan *run.Plan) (*egress.Recorder, error) {
	start := plan.PartialStart()
	h, l := &r.header, q.Connector
	h.Clock = time.Now().UTC().Truncate(time.Millisecond)
	q.fixed.Start = uint64(h.Clock.UnixMilli())
	h.ConnectorID, h.Version, h.Module = string(l.Connector.ID), l.Manifest.Version, string(l.Connector.Digest)
	h.Connection, h.Mode, h.Config, h.Hosts = start.ConnectionID, start.CollectionMode, start.Config,
		start.Bindings.Network.Hosts
	for _, f := range run.SecretFields(l.Manifest) {
		if _, ok := plan.Secrets[f.Name]; ok || plan.Tokens[f.Name] != nil {
			h.Secrets = append(h.Secrets, f.Name)
		}
	}
	var err error
	if h.Scope, err = json.Marshal(start.Scope); err != nil {
		return nil, fmt.Errorf("encode scope: %w", err)
	}
	if start.State != nil {
		if h.State, err = json.Marshal(start.State); err != nil {
			return nil, fmt.Errorf("encode state: %w", err)
		}
	}
	r.recorder = egress.NewRecorder(c)
	return r.recorder, nil
}

// ErrNotRecorded is returned if the run ended before its connector did, since a replay could not finish either.
var ErrNotRecorded = errors.New("nothing was recorded: the run did not come to the end of its connector")

// Finish returns the recording of a run whose connector finished, as the content of a file, and what to review
// before it is shared.
func (r *Recorder) Finish(result *run.Result) ([]byte, *egress.Review, error) {
	if reason := result.TerminalReason; reason != nil && *reason != "connector_reported_failed" || r.recorder == nil {
		return nil, nil, ErrNotRecorded
	}
	return r.recorder.Finish(r.header)
}

// A Recording is a recorded run, for RunRequest.Replay.
type Recording struct {
	recording *egress.Recording
}

// OpenRecording reads a recording. The error names the damaged line and what is expected there.
func OpenRecording(path string) (*Recording, error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() { // a pipe would block
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, egress.MaxRecordedFile+1))
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	r, err := egress.ParseRecording(text)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", path, err)
	}
	return &Recording{r}, nil
}

// Module returns the digest of the recorded module.
func (r *Recording) Module() string { return r.recording.Header.Module }

// Connection returns the recorded connection, which is also that of a replay unless the request names another.
func (r *Recording) Connection() store.ConnectionID {
	return store.ConnectionID(r.recording.Header.Connection)
}

// repeatable fixes the clock and the random seed of a run that is recorded or replayed. A replay takes its
// inputs from the recording where the request does not set them.
func (q RunRequest) repeatable() (RunRequest, error) {
	if q.Record != nil && q.Replay != nil {
		return q, refusal("invalid_request", errors.New("a run is recorded or replayed, not both"))
	}
	if q.Record != nil {
		q.fixed = &abi.Fixed{Seed: q.Record.header.Seed} // its clock is set by Recorder.begin
	}
	if q.Replay == nil {
		return q, nil
	}
	h := &q.Replay.recording.Header
	if id := string(q.Connector.Connector.ID); h.ConnectorID != id {
		return q, refusal("invalid_request",
			fmt.Errorf("the recording is of connector %s, this is %s; record it with --record",
				abi.Clean(abi.Cut(h.ConnectorID, 200)), abi.Clean(id)))
	}
	given, secrets := q.Replay.recording.WithStandIns(q.secretsWithout(h.Secrets))
	q.fixed = &abi.Fixed{Start: uint64(h.Clock.UnixMilli()), Seed: h.Seed, Instant: true}
	q.Approved.Hosts = given.Hosts
	for _, f := range run.SecretFields(q.Connector.Manifest) { // values are stand-ins, so there is nothing to protect
		q.Approved.Plain = append(q.Approved.Plain, f.Name)
	}
	for name, value := range q.Secrets {
		secrets[name] = value
	}
	q.Secrets = secrets
	if q.Connection == "" {
		q.Connection = q.Replay.Connection()
	}
	if q.Mode == "" {
		q.Mode = given.Mode
	}
	if q.Scope == nil {
		q.Scope = given.Scope
	}
	if q.Config == nil {
		q.Config = json.RawMessage("{}")
		if given.Config != nil {
			q.Config = given.Config
		}
	}
	if q.State == nil && !q.ResetState {
		q.State, q.ResetState = given.State, given.State == nil
	}
	return q, nil
}

// secretsWithout returns the declared secrets that a replay needs and the request lacks: required ones, and
// those in there, which were present in the recording.
func (q RunRequest) secretsWithout(there []string) (out []string) {
	for _, f := range run.SecretFields(q.Connector.Manifest) {
		if _, given := q.Secrets[f.Name]; !given && (f.Required || slices.Contains(there, f.Name)) {
			out = append(out, f.Name)
		}
	}
	return out
}

// handles returns the source of random bytes for handles, nil without a fixed seed. It is derived from the seed,
// so that a replay has the same handles, but its bytes differ from those that the guest gets.
func (q RunRequest) handles() io.Reader {
	if q.fixed == nil {
		return nil
	}
	return mathrand.NewChaCha8(sha256.Sum256(append([]byte("handles "), q.fixed.Seed[:]...)))
}
