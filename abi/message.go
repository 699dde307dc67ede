package abi

// A Message is one message of a guest. The union is sealed: kinds lists all
// there are, and a switch over them handles the protocol.
type Message interface {
	// Type is the wire name, such as "PROGRESS".
	Type() string
	message()
}

// A kind is one type of message: everything the protocol has to know of it. It
// stands in one file with the Go type, and in kinds.
type kind struct {
	name string // on the wire
	call Call   // the function that carries it; 0 for one that is only a line of the stdio profile
	// step says in which phases it is allowed, and which comes next.
	step Step
	// limit is how many of them a run may send; nil for any number.
	limit func(Limits) int
	// read takes its members in the order of its checks; nil for RECORD, which
	// comes in frames.
	read func(*reader) Message
	// faults are its own violations, with the phrase that follows the message
	// type in a failure message. Neither ever changes.
	faults []fault
}

type fault struct {
	subtype Subtype
	phrase  string
}

// kinds are the messages of the protocol.
var kinds = [...]*kind{
	&recordKind, &stateKind, &progressKind, &skipKind, &gapKind, &recoveredKind, &coverageKind, &interactionKind,
	&assistanceKind, &assistanceStatusKind, &doneKind, &textKind, &requestKind, &readKind,
}

// kindOf returns the kind with a wire name, nil for an unknown one.
func kindOf(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}

// kindOfCall returns the kind that a function carries, nil for a function that
// takes no message.
func kindOfCall(c Call) *kind {
	for _, k := range kinds {
		if k.call == c && c != 0 {
			return k
		}
	}
	return nil
}

// MessageType names the message of a function, "" for one that takes none.
func MessageType(c Call) string {
	if k := kindOfCall(c); k != nil {
		return k.name
	}
	return ""
}

// The violations of any message. Those of one kind stand with it.
const (
	VAbiFault             Subtype = "abi_fault"
	VExitCodeMismatch     Subtype = "exit_code_mismatch"
	VExitTimeoutAfterDone Subtype = "exit_timeout_after_done"
	VFieldLimitExceeded   Subtype = "field_limit_exceeded"
	VFrameInvalidJson     Subtype = "frame_invalid_json"
	VFrameInvalidUtf8     Subtype = "frame_invalid_utf8"
	VFrameMalformed       Subtype = "frame_malformed"
	VFrameNotObject       Subtype = "frame_not_object"
	VFrameTooDeep         Subtype = "frame_too_deep"
	VFrameTooLarge        Subtype = "frame_too_large"
	VMessageAfterDone     Subtype = "message_after_done"
	VMessageLimitExceeded Subtype = "message_limit_exceeded"
	VOutputWhileWaiting   Subtype = "output_while_waiting"
	VSecretLeak           Subtype = "secret_leak"
	VUnknownMessageType   Subtype = "unknown_message_type"
)

var commonFaults = []fault{
	{VAbiFault, "made a call with a bad pointer or length, or in the wrong order"},
	{VExitCodeMismatch, "disagrees with the exit code"},
	{VExitTimeoutAfterDone, "was not followed by an exit in time"},
	{VFieldLimitExceeded, "has a member over its limit"},
	{VFrameInvalidJson, "is not well-formed JSON with unique member names"},
	{VFrameInvalidUtf8, "is not UTF-8"},
	{VFrameMalformed, "is not a well-formed record frame"},
	{VFrameNotObject, "is not a JSON object"},
	{VFrameTooDeep, "is nested too deeply"},
	{VFrameTooLarge, "is larger than a message may be"},
	{VMessageAfterDone, "was sent after DONE"},
	{VMessageLimitExceeded, "was sent more often than a run may"},
	{VOutputWhileWaiting, "was sent while an interaction was open"},
	{VSecretLeak, "contains a protected value"},
	{VUnknownMessageType, "is not a message type of the protocol"},
}

// Subtypes returns every subtype with the phrase that follows the message type
// in a failure message.
func Subtypes() map[Subtype]string {
	all := map[Subtype]string{}
	for _, f := range commonFaults {
		all[f.subtype] = f.phrase
	}
	for _, k := range kinds {
		for _, f := range k.faults {
			all[f.subtype] = f.phrase
		}
	}
	return all
}
