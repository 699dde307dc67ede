package timeline

import "github.com/sluicehost/sluice/store"

// A Status is where a run stands.
type Status string

const (
	Pending         Status = "pending"
	Running         Status = "running"
	Paused          Status = "paused"
	WaitingApproval Status = "waiting-approval"
	WaitingInput    Status = "waiting-input"
	WaitingExternal Status = "waiting-external"
	Completed       Status = "completed"
	Failed          Status = "failed"
	Cancelled       Status = "cancelled"
)

// Statuses are all of them, in the order of A69.
func Statuses() []Status {
	return []Status{Pending, Running, Paused, WaitingApproval, WaitingInput, WaitingExternal, Completed, Failed, Cancelled}
}

// Terminal reports whether a run with this status is over.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Waiting reports whether a run with this status is suspended by a question.
func (s Status) Waiting() bool {
	return s == WaitingApproval || s == WaitingInput || s == WaitingExternal
}

// waitingFor is the status of a run whose node holds an interrupt.
func waitingFor(kind string) Status {
	switch kind {
	case "approval":
		return WaitingApproval
	case "external-event":
		return WaitingExternal
	}
	return WaitingInput
}

// terminalStatus is what a terminal event makes of a run. A connector that
// reported cancellation failed.
func terminalStatus(t Type) Status {
	switch t {
	case RunCompleted:
		return Completed
	case RunCancelled:
		return Cancelled
	}
	return Failed
}

// TerminalStatus is the status of a run after e, "" if e does not end one.
func TerminalStatus(e store.Event) Status {
	if t := Type(e.Type); t.Terminal() {
		return terminalStatus(t)
	}
	return ""
}
