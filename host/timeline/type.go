package timeline

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

// Names of frames that stand in no log.
const (
	StateSnapshot  Type = "state.snapshot"
	AIMessageChunk Type = "ai.message.chunk"
	Batch          Type = "batch"
)

// Terminal reports whether the type ends a run.
func (t Type) Terminal() bool { return t == RunCompleted || t == RunFailed || t == RunCancelled }
