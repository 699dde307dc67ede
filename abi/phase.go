package abi

// A Phase is the state of a guest in the protocol.
type Phase uint8

const (
	Initializing Phase = iota // before START is delivered
	Collecting
	Waiting   // an interaction is open
	Finishing // DONE was accepted
	Over      // the guest has exited, or committed a violation
)

// String returns the name used in transcripts.
func (p Phase) String() string {
	return [...]string{"initializing", "collecting", "waiting_for_interaction", "done", "exited"}[p]
}

// A Step is what can change a Phase: a kind of guest output, or an event of the host.
type Step uint8

const (
	StepStart       Step = iota // START delivered
	StepMessage                 // any message but INTERACTION and DONE
	StepInteraction             // INTERACTION
	StepDone                    // DONE
	StepSide                    // network, browser and handle calls; message and log
	StepAnswer                  // the host closed the open interaction
	StepExit                    // the guest exited
)

// Next returns the phase after a step, or the subtype of the violation that the step is. It
// is a pure function, defined for all pairs.
func (p Phase) Next(s Step) (Phase, Subtype) {
	if s == StepExit {
		return Over, ""
	}
	switch p {
	case Initializing:
		switch s {
		case StepStart:
			return Collecting, ""
		case StepSide:
			return Initializing, ""
		}
		return Over, VAbiFault
	case Collecting:
		switch s {
		case StepMessage, StepSide:
			return Collecting, ""
		case StepInteraction:
			return Waiting, ""
		case StepDone:
			return Finishing, ""
		}
		return Over, VAbiFault
	case Waiting:
		switch s {
		case StepAnswer:
			return Collecting, ""
		case StepSide:
			return Waiting, ""
		case StepStart:
			return Over, VAbiFault
		}
		return Over, VOutputWhileWaiting
	default:
		return Over, VMessageAfterDone
	}
}
