package timeline

import (
	"cmp"
	"encoding/json"

	"github.com/sluicehost/sluice/store"
)

// About is what a snapshot shows of a run that neither its log nor its row contains. Everything is
// optional.
type About struct {
	ConnectorName    string
	ConnectorVersion string
	EngineVersion    string
	// RetentionFloor is the sequence after the terminal event once the log is deleted, 0 before.
	RetentionFloor uint64
	// Live is nil for a run that is not active in this process.
	Live *Live
}

// Live is the state that only the process of a run knows.
type Live struct {
	Phase           string // preparing, running, waiting, finishing, committing
	PauseRequested  bool
	CancelRequested bool
	HeldUp          string // what holds it up; "" if nothing does
}

// A Snapshot is a RunSnapshot without tokens, which the API adds for those who may answer.
type Snapshot struct {
	RunID                 store.RunID          `json:"runId"`
	WorkflowID            string               `json:"workflowId"`
	Status                Status               `json:"status"`
	CurrentNodeID         string               `json:"currentNodeId,omitempty"`
	StartedAt             string               `json:"startedAt,omitempty"`
	CompletedAt           string               `json:"completedAt,omitempty"`
	EngineVersion         string               `json:"engineVersion,omitempty"`
	EventLogSchemaVersion int                  `json:"eventLogSchemaVersion,omitempty"`
	Tags                  []string             `json:"tags,omitempty"`
	Metadata              json.RawMessage      `json:"metadata,omitempty"`
	Configurable          json.RawMessage      `json:"configurable,omitempty"` // redacted
	NodeStates            map[string]NodeState `json:"nodeStates,omitzero"`
	Variables             map[string]any       `json:"variables,omitzero"` // a connector declares none
	Channels              map[string]any       `json:"channels,omitzero"`  // nor any of these
	Error                 *Error               `json:"error,omitempty"`
	Interrupt             *OpenInterrupt       `json:"interrupt,omitempty"`
	Metrics               *Metrics             `json:"metrics,omitempty"`
	Sluice                Sluice               `json:"sluice"`
}

// Error is why a run failed.
type Error struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Author returns the failure code of the connector's author, otherwise the host's specific code
// below Code, or "".
func (e *Error) Author() string {
	d := membersOf(e.Details)
	for _, code := range []string{d.text("connector_error_code"), d.object("violation").text("subtype"),
		d.text("failure_code")} {
		if code != "" && code != e.Code {
			return code
		}
	}
	return ""
}

// OpenInterrupt is the interrupt by which a run is suspended. The API adds InterruptToken and
// CallbackURL for those who may answer; they are not set here or in streams.
type OpenInterrupt struct {
	InterruptID    string `json:"interruptId"`
	Kind           string `json:"kind"`
	NodeID         string `json:"nodeId"`
	ExpiresAt      string `json:"expiresAt,omitempty"`
	InterruptToken string `json:"interruptToken,omitempty"`
	CallbackURL    string `json:"callbackUrl,omitempty"`
}

// Sluice is the part of a snapshot that openwop does not define.
type Sluice struct {
	ConnectorID      store.ConnectorID  `json:"connectorId"`
	ConnectorName    string             `json:"connectorName"`
	ConnectorVersion string             `json:"connectorVersion"`
	ModuleDigest     store.Digest       `json:"moduleDigest"`
	ConnectionID     store.ConnectionID `json:"connectionId,omitempty"`
	TriggerKind      string             `json:"triggerKind"`
	Attempt          int                `json:"attempt"`
	RetryOf          store.RunID        `json:"retryOf,omitempty"`
	TraceID          store.TraceID      `json:"traceId"`
	Phase            *string            `json:"phase"`          // null once the run is over
	LastSequence     *uint64            `json:"lastSequence"`   // null while the log is empty and once it is deleted
	RetentionFloor   uint64             `json:"retentionFloor"` // 0 while the log is kept
	PauseRequested   bool               `json:"pauseRequested,omitempty"`
	CancelRequested  bool               `json:"cancelRequested,omitempty"`
	HeldUp           string             `json:"heldUp,omitempty"` // what holds it up, as a sentence
	// why a run that asked something, or is resumable, ends with its host
	HostBound      string          `json:"hostBound,omitempty"`
	Assistance     []Item          `json:"assistance"` // open ones
	Result         string          `json:"result,omitempty"`
	Outcome        string          `json:"outcome,omitempty"` // complete, partial, failed, cancelled
	TerminalReason string          `json:"terminalReason,omitempty"`
	Checkpoints    json.RawMessage `json:"checkpointSummary,omitempty"`
	KnownGaps      json.RawMessage `json:"knownGaps,omitempty"`
	ForkedFrom     *Fork           `json:"forkedFrom,omitempty"`
}

// Fork identifies the run from which this one was branched.
type Fork struct {
	RunID   store.RunID `json:"runId"`
	FromSeq uint64      `json:"fromSeq"`
	Mode    string      `json:"mode"`
}

// Snapshot returns the run's state after the events read. row is its record. If the fold is empty
// because the log of a finished run was deleted, it shows what the row has.
func (f *Fold) Snapshot(row store.Run, a About) Snapshot {
	if row.Pruned && f.next == 0 {
		return SnapshotOfRow(row, a, 0)
	}
	s := base(row, a)
	s.Status, s.NodeStates, s.Variables, s.Channels = f.Status(), map[string]NodeState{},
		map[string]any{}, map[string]any{}
	for id, n := range f.nodes {
		s.NodeStates[id] = n.state()
	}
	if v := f.start.text("engineVersion"); v != "" {
		s.EngineVersion = v
	}
	if q := f.open(); q != nil && f.ended == nil {
		s.CurrentNodeID = q.NodeID
		s.Interrupt = &OpenInterrupt{InterruptID: q.ID, Kind: q.Kind, NodeID: q.NodeID}
		if q.ExpiresAt != nil {
			s.Interrupt.ExpiresAt = store.Time(*q.ExpiresAt)
		}
	}
	s.Metrics = f.counts.metrics()
	s.Sluice.Assistance = f.Assistance(true)
	if f.next > 0 {
		s.Sluice.LastSequence = new(f.next - 1)
	}
	s.Sluice.CancelRequested = s.Sluice.CancelRequested || f.cancel
	s.Sluice.Phase = f.phase(s.Status, a.Live)
	if f.ended != nil {
		f.over(&s)
	}
	return s
}

// WithoutStates returns the snapshot as a list shows it.
func (s Snapshot) WithoutStates() Snapshot {
	s.NodeStates, s.Variables, s.Channels = nil, nil, nil
	return s
}

// base returns the part of a snapshot that the row has.
func base(row store.Run, a About) Snapshot {
	q := row.Request
	s := Snapshot{
		RunID: row.ID, WorkflowID: q.WorkflowID, EngineVersion: a.EngineVersion, EventLogSchemaVersion: SchemaVersion,
		Tags: q.Tags, Metadata: q.Metadata, Configurable: RedactConfigurable(q.Configurable),
		Sluice: Sluice{
			ConnectorID: row.ConnectorID, ConnectorName: a.ConnectorName, ConnectorVersion: a.ConnectorVersion,
			ModuleDigest: row.Digest, ConnectionID: row.ConnectionID, TriggerKind: row.TriggerKind,
			Attempt: row.Attempt, RetryOf: row.RetryOf, TraceID: row.TraceID, Assistance: []Item{},
			RetentionFloor: a.RetentionFloor, HostBound: row.HostBound,
		},
	}
	s.WorkflowID = cmp.Or(s.WorkflowID, string(row.ConnectionID))
	if !row.StartedAt.IsZero() {
		s.StartedAt = store.Time(row.StartedAt)
	}
	if from := q.ForkedFrom; from != nil {
		s.Sluice.ForkedFrom = &Fork{from.RunID, from.FromSeq, from.Mode}
	}
	if a.Live != nil {
		s.Sluice.PauseRequested, s.Sluice.CancelRequested = a.Live.PauseRequested, a.Live.CancelRequested
		s.Sluice.HeldUp = a.Live.HeldUp
	}
	return s
}

// phase returns the phase of an active run. From the log alone it is only approximate.
func (f *Fold) phase(s Status, live *Live) *string {
	switch {
	case f.ended != nil:
		return nil
	case live != nil && live.Phase != "":
		return &live.Phase
	case !f.started:
		return new("preparing")
	case f.open() != nil:
		return new("waiting")
	}
	return new("running")
}

// over adds how the run ended, from its terminal event.
func (f *Fold) over(s *Snapshot) {
	m := f.final
	s.CompletedAt = store.Time(f.ended.OccurredAt)
	s.Sluice.PauseRequested, s.Sluice.CancelRequested, s.Sluice.HeldUp = false, false, ""
	s.Sluice.Result, s.Sluice.Outcome, s.Sluice.TerminalReason = f.ended.Status, m.text("outcome"), m.text("reason")
	s.Sluice.Checkpoints, s.Sluice.KnownGaps = checkpointsOf(m), m.raw("known_gaps")
	if s.Status != Failed {
		return
	}
	e := m.object("error")
	s.Error = &Error{Code: e.text("code"), Message: e.text("message")}
	if e.object("details") != nil {
		s.Error.Details = e.raw("details")
	}
	s.Error.Code = cmp.Or(s.Error.Code, s.Sluice.TerminalReason)
	s.Error.Message = cmp.Or(s.Error.Message, m.text("failure_message"))
}

// checkpointsOf returns the checkpoint_summary of a result, whose members a terminal event has
// individually.
func checkpointsOf(m members) json.RawMessage {
	out := members{}
	for name, from := range map[string]string{
		"mode": "checkpoint_mode", "commit_status": "checkpoint_commit_status",
		"state_streams_staged": "state_streams_staged", "state_streams_committed": "state_streams_committed",
		"state_streams_withheld": "state_streams_withheld", "buffered_records_dropped": "buffered_records_dropped",
		"records_attempted": "records_attempted", "records_accepted": "records_accepted",
		"records_flushed": "records_flushed", "records_permanently_rejected": "records_permanently_rejected",
		"records_unresolved_retryable": "records_unresolved_retryable",
	} {
		if v, ok := m[from]; ok {
			out[name] = v
		}
	}
	if out["commit_status"] == nil {
		return nil
	}
	if out["state_streams_withheld"] == nil {
		out["state_streams_withheld"] = json.RawMessage(`[]`)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return raw
}

// SnapshotOfRow returns the snapshot of a finished run from its row, which outlives the log. next
// is the sequence after the last stored event, or 0. It has no states of nodes.
func SnapshotOfRow(row store.Run, a About, next uint64) Snapshot {
	s, r := base(row, a), membersOf(row.Result)
	var c counts
	c.final(r)
	if n, ok := r.object("usage").number("wall_ms"); ok {
		c.DurationMs = &n
	}
	s.NodeStates, s.Variables, s.Channels, s.Metrics = map[string]NodeState{}, map[string]any{},
		map[string]any{}, c.metrics()
	s.Sluice.Result, s.Sluice.Outcome, s.Sluice.TerminalReason = row.Status, r.text("outcome"), r.text("terminal_reason")
	s.Sluice.Checkpoints, s.Sluice.KnownGaps = r.raw("checkpoint_summary"), r.raw("known_gaps")
	s.Sluice.PauseRequested, s.Sluice.CancelRequested, s.Sluice.HeldUp = false, false, ""
	s.Status = RowStatus(row)
	if next > 0 && !row.Pruned {
		s.Sluice.LastSequence = new(next - 1)
	}
	if row.FinishedAt != nil {
		s.CompletedAt = store.Time(*row.FinishedAt)
	}
	if s.Status == Failed {
		s.Error = &Error{Code: s.Sluice.TerminalReason, Message: r.object("failure").text("message"), Details: detailsOf(r)}
	}
	return s
}

// detailsOf returns error.details as far as a result has it.
func detailsOf(r members) json.RawMessage {
	failure, out := r.object("failure"), members{}
	for name, v := range map[string]string{"failure_origin": failure.text("origin"), "deadline": r.text("deadline"),
		"connector_error_code": r.object("connector_error").text("code")} {
		out.fill(name, v)
	}
	if v := failure.text("subtype"); v != "" {
		out["violation"] = json.RawMessage(`{"subtype":` + string(quoted(v)) + `}`)
	}
	if len(out) == 0 {
		return nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return raw
}

// RowStatus returns the status of a run according to its row: exact once it is over, pending or
// running before.
func RowStatus(row store.Run) Status {
	switch row.Status {
	case "succeeded":
		return Completed
	case "failed":
		return Failed
	case "cancelled":
		r := membersOf(row.Result)
		// older hosts wrote no cancel_cause
		if r.text("terminal_reason") == "connector_reported_cancelled" && r.text("cancel_cause") == "" {
			return Failed
		}
		return Cancelled
	}
	if row.Phase == "preparing" {
		return Pending
	}
	return Running
}
