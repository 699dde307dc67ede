package abi

// A Message is one message of a guest. The set of types is closed; kinds lists them all.
type Message interface {
	// Type is the wire name, such as "PROGRESS".
	Type() string
	message()
}

// A kind is everything the protocol knows of one type of message. It is declared beside the
// Go type and listed in kinds.
type kind struct {
	name string // on the wire
	call Call   // the function that carries it; 0 for one that exists only in the stdio profile
	// step says in which phases it is allowed, and which phase follows.
	step Step
	// limit is how many of them a run may send; nil for no limit.
	limit func(Limits) int
	// read checks the members in their fixed order; nil for RECORD, which comes in frames.
	read func(*reader) Message
	// faults are the violations of this kind, with the phrase that follows the message type
	// in a failure message. Both are frozen.
	faults []fault
}

type fault struct {
	subtype Subtype
	phrase  string
}

var kinds = [...]*kind{
	&recordKind, &stateKind, &progressKind, &skipKind, &gapKind, &recoveredKind, &coverageKind, &interactionKind,
	&assistanceKind, &assistanceStatusKind, &doneKind, &textKind, &requestKind, &readKind,
}

// kindOf returns the kind with the given wire name, or nil.
func kindOf(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}

// kindOfCall returns the kind that a function carries, or nil if it takes no message.
func kindOfCall(c Call) *kind {
	for _, k := range kinds {
		if k.call == c && c != 0 {
			return k
		}
	}
	return nil
}

// MessageType returns the type of the message that a function carries, or "".
func MessageType(c Call) string {
	if k := kindOfCall(c); k != nil {
		return k.name
	}
	return ""
}

// The violations that any message can commit. Each kind lists its own.
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
