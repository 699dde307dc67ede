package timeline

import (
	"slices"
	"strings"
)

// A Vocabulary says which specification defines a type.
type Vocabulary byte

const (
	Openwop     Vocabulary = 'O'
	RunProtocol Vocabulary = 'R'
)

// An Effect is the effect of a type on a values stream.
type Effect uint8

const (
	NoSnapshot Effect = 0
	AtOnce     Effect = 1 // a snapshot after every such event; all frames of updates
	Coalesced  Effect = 2 // at most one snapshot a second
)

// An Entry is one row of the catalogue.
type Entry struct {
	Type       Type
	Vocabulary Vocabulary
	// Required lists the members that the payload always has; for a closed payload Optional lists
	// all others.
	Required, Optional []string
	Closed             bool
	Modes              Modes  // updates, messages and debug, if it is a frame there
	Snapshot           Effect // in values
}

// Catalogue returns every event type in the order of docs/spec/api.md.
func Catalogue() []Entry { return slices.Clone(catalogue) }

// Lookup returns the row of a type. known is false for a type that is not in the catalogue, which
// readers have to tolerate; it is treated like one of the run protocol, in debug only.
func Lookup(t Type) (e Entry, known bool) {
	if i, ok := rows[t]; ok {
		return catalogue[i], true
	}
	return Entry{Type: t, Vocabulary: RunProtocol, Modes: Debug}, false
}

var catalogue = []Entry{
	openwop(RunStarted, "workflowId", Updates, AtOnce),
	openwop(RunCompleted, "", Updates, AtOnce),
	openwop(RunFailed, "error", Updates, AtOnce),
	openwop(RunCancelled, "reason", Updates, AtOnce),
	openwop(RunPaused, "drainPolicy requestedBy", Updates, AtOnce),
	openwop(RunResumed, "cause", Updates, AtOnce),
	protocol(RunSuspended, "cause", NoSnapshot),
	openwop(NodeStarted, "nodeId typeId attempt", 0, Coalesced),
	openwop(NodeCompleted, "nodeId", Updates, AtOnce),
	openwop(NodeFailed, "nodeId error", Updates, AtOnce),
	openwop(NodeSkipped, "nodeId", Updates, AtOnce),
	openwop(NodeCancelled, "nodeId", 0, Coalesced),
	openwop(NodeSuspended, "nodeId interruptId kind key", Updates, AtOnce),
	openwop(NodeResumed, "nodeId interruptId", 0, Coalesced),
	openwop(NodeRetried, "nodeId attempt", 0, Coalesced),
	closed(InterruptRequested, "kind key data", "resumeSchema timeoutMs", Updates, AtOnce),
	openwop(InterruptResolved, "nodeId interruptId kind status", Updates, AtOnce),
	openwop(ApprovalRequested, "nodeId artifactId artifactType actions", Updates, AtOnce),
	openwop(ApprovalReceived, "nodeId action", Updates, AtOnce),
	openwop(ClarificationRequested, "nodeId questions", Updates, AtOnce),
	openwop(ClarificationResolved, "nodeId answers", Updates, AtOnce),
	openwop(ArtifactCreated, "artifactId artifactType", Updates, AtOnce),
	openwop(OutputChunk, "nodeId chunk isLast", Messages, NoSnapshot),
	openwop(LogAppended, "level message", 0, NoSnapshot),
	openwop(VersionPinned, "connectorId version moduleDigest", 0, NoSnapshot),
	openwop(CapBreached, "kind limit observed", 0, NoSnapshot),
	openwop(LeaseAcquired, "leaseId host", 0, NoSnapshot),
	openwop(LeaseRenewed, "leaseId host", 0, NoSnapshot),
	openwop(LeaseLost, "leaseId host", 0, NoSnapshot),
	protocol(RunProgressReported, "message", Coalesced),
	protocol(RunBatchIngested, "", Coalesced),
	protocol(RunStateStaged, "cursor checkpoint_mode state_commit_intent state_streams_staged", Coalesced),
	protocol(RunStateAdvanced, "cursor checkpoint_mode state_streams_committed", Coalesced),
	protocol(RunStateCommitFailed, "cursor checkpoint_mode error_message", Coalesced),
	protocol(RunStreamSkipped, "known_gap", Coalesced),
	protocol(RunDetailCoverageDeclared, "", Coalesced),
	protocol(RunDetailGapRecorded, "", Coalesced),
	protocol(RunDetailGapRecovered, "", Coalesced),
	protocol(RunInteractionRequired, "kind message", Coalesced),
	protocol(RunInteractionCompleted, "kind status", Coalesced),
	protocol(RunAssistanceRequested,
		"assistance_request_id progress_posture owner_action response_obligation sensitivity message", Coalesced),
	protocol(RunAssistanceUpdated, "assistance_request_id attachments", Coalesced),
	protocol(RunAssistanceResolved, "assistance_request_id status", Coalesced),
	protocol(RunAssistanceCancelled, "assistance_request_id status", Coalesced),
	protocol(RunAssistanceTimedOut, "assistance_request_id status", Coalesced),
	protocol(RunAssistanceEscalated, "assistance_request_id status", Coalesced),
	protocol(RunBrowserSurfaceRequested, "surface_id", Coalesced),
	protocol(RunBrowserSurfaceQueued, "surface_id", Coalesced),
	protocol(RunBrowserSurfaceStarting, "surface_id", Coalesced),
	protocol(RunBrowserSurfaceReady, "surface_id", Coalesced),
	protocol(RunBrowserSurfaceProbe, "surface_id", Coalesced),
	protocol(RunBrowserSurfaceFailed, "surface_id", Coalesced),
	protocol(RunBrowserSurfaceReleased, "surface_id", Coalesced),
	protocol(RunBrowserSurfaceLost, "interaction_id kind browser_surface_probe", Coalesced),
	protocol(RunBrowserAction, "", NoSnapshot),
	protocol(RunBrowserEgressDenied, "", NoSnapshot),
	protocol(RunBrowserCookieHandoff, "", NoSnapshot),
	protocol(RunStreamSessionRequested, "", NoSnapshot),
	protocol(RunStreamSessionOpened, "", NoSnapshot),
	protocol(RunStreamSessionResolved, "", NoSnapshot),
	protocol(RunStreamReachFailed, "", NoSnapshot),
	protocol(RunSealedValueUsed, "field origin placement", NoSnapshot),
	protocol(RunCancelRequested, "cancel_cause", Coalesced),
}

var rows = func() map[Type]int {
	m := make(map[Type]int, len(catalogue))
	for i, e := range catalogue {
		m[e.Type] = i
	}
	return m
}()

func openwop(t Type, required string, modes Modes, s Effect) Entry {
	return Entry{Type: t, Vocabulary: Openwop, Required: strings.Fields(required), Modes: modes | Debug, Snapshot: s}
}

func closed(t Type, required, optional string, modes Modes, s Effect) Entry {
	e := openwop(t, required, modes, s)
	e.Closed, e.Optional = true, strings.Fields(optional)
	return e
}

// protocol returns the entry of a type of the run protocol, which is never a frame of updates or
// messages.
func protocol(t Type, required string, s Effect) Entry {
	return Entry{Type: t, Vocabulary: RunProtocol, Required: strings.Fields(required), Modes: Debug, Snapshot: s}
}

// A Type names an event type of the catalogue.
type Type string

// The types of openwop's vocabulary.
const (
	RunStarted             Type = "run.started"
	RunCompleted           Type = "run.completed"
	RunFailed              Type = "run.failed"
	RunCancelled           Type = "run.cancelled"
	RunPaused              Type = "run.paused"
	RunResumed             Type = "run.resumed"
	RunSuspended           Type = "run.suspended"
	NodeStarted            Type = "node.started"
	NodeCompleted          Type = "node.completed"
	NodeFailed             Type = "node.failed"
	NodeSkipped            Type = "node.skipped"
	NodeCancelled          Type = "node.cancelled"
	NodeSuspended          Type = "node.suspended"
	NodeResumed            Type = "node.resumed"
	NodeRetried            Type = "node.retried"
	InterruptRequested     Type = "interrupt.requested"
	InterruptResolved      Type = "interrupt.resolved"
	ApprovalRequested      Type = "approval.requested"
	ApprovalReceived       Type = "approval.received"
	ClarificationRequested Type = "clarification.requested"
	ClarificationResolved  Type = "clarification.resolved"
	ArtifactCreated        Type = "artifact.created"
	OutputChunk            Type = "output.chunk"
	LogAppended            Type = "log.appended"
	VersionPinned          Type = "version.pinned"
	CapBreached            Type = "cap.breached"
	LeaseAcquired          Type = "lease.acquired"
	LeaseRenewed           Type = "lease.renewed"
	LeaseLost              Type = "lease.lost"
)

// The types of the run protocol.
const (
	RunProgressReported        Type = "run.progress_reported"
	RunBatchIngested           Type = "run.batch_ingested"
	RunStateStaged             Type = "run.state_staged"
	RunStateAdvanced           Type = "run.state_advanced"
	RunStateCommitFailed       Type = "run.state_commit_failed"
	RunStreamSkipped           Type = "run.stream_skipped"
	RunDetailCoverageDeclared  Type = "run.detail_coverage_declared"
	RunDetailGapRecorded       Type = "run.detail_gap_recorded"
	RunDetailGapRecovered      Type = "run.detail_gap_recovered"
	RunInteractionRequired     Type = "run.interaction_required"
	RunInteractionCompleted    Type = "run.interaction_completed"
	RunAssistanceRequested     Type = "run.assistance_requested"
	RunAssistanceUpdated       Type = "run.assistance_updated"
	RunAssistanceResolved      Type = "run.assistance_resolved"
	RunAssistanceCancelled     Type = "run.assistance_cancelled"
	RunAssistanceTimedOut      Type = "run.assistance_timed_out"
	RunAssistanceEscalated     Type = "run.assistance_escalated"
	RunBrowserSurfaceRequested Type = "run.browser_surface_requested"
	RunBrowserSurfaceQueued    Type = "run.browser_surface_queued"
	RunBrowserSurfaceStarting  Type = "run.browser_surface_starting"
	RunBrowserSurfaceReady     Type = "run.browser_surface_ready"
	RunBrowserSurfaceProbe     Type = "run.browser_surface_probe_failed"
	RunBrowserSurfaceFailed    Type = "run.browser_surface_failed"
	RunBrowserSurfaceReleased  Type = "run.browser_surface_released"
	RunBrowserSurfaceLost      Type = "run.browser_surface_lost"
	RunBrowserAction           Type = "run.browser_action"
	RunBrowserEgressDenied     Type = "run.browser_egress_denied"
	RunBrowserCookieHandoff    Type = "run.browser_cookie_handoff"
	RunStreamSessionRequested  Type = "run.stream_session_requested"
	RunStreamSessionOpened     Type = "run.stream_session_opened"
	RunStreamSessionResolved   Type = "run.stream_session_resolved"
	RunStreamReachFailed       Type = "run.stream_reach_failed"
	RunSealedValueUsed         Type = "run.sealed_value_used"
	RunCancelRequested         Type = "run.cancel_requested"
)

// Frames that are not in the log.
const (
	StateSnapshot  Type = "state.snapshot"
	AIMessageChunk Type = "ai.message.chunk"
	Batch          Type = "batch"
)

// Terminal reports whether the type ends a run.
func (t Type) Terminal() bool { return t == RunCompleted || t == RunFailed || t == RunCancelled }
