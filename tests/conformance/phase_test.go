package conformance

import (
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// The whole table of docs/spec/protocol.md, "Phases", as the guest sees it: every phase,
// every step.
func TestPhases(t *testing.T) {
	phases := []abi.Phase{abi.Initializing, abi.Collecting, abi.Waiting, abi.Finishing, abi.Over}
	steps := map[abi.Step][]string{ // what each phase does with it, in that order
		abi.StepStart: {"collecting", "! abi_fault", "! abi_fault", "! message_after_done", "! message_after_done"},
		abi.StepMessage: {"! abi_fault", "collecting", "! output_while_waiting", "! message_after_done",
			"! message_after_done"},
		abi.StepInteraction: {"! abi_fault", "waiting_for_interaction", "! output_while_waiting", "! message_after_done",
			"! message_after_done"},
		abi.StepDone: {"! abi_fault", "done", "! output_while_waiting", "! message_after_done", "! message_after_done"},
		abi.StepSide: {"initializing", "collecting", "waiting_for_interaction", "! message_after_done",
			"! message_after_done"},
		abi.StepAnswer: {"! abi_fault", "! abi_fault", "collecting", "! message_after_done", "! message_after_done"},
		abi.StepExit:   {"exited", "exited", "exited", "exited", "exited"},
	}
	for step, row := range steps {
		for i, phase := range phases {
			next, bad := phase.Next(step)
			got := next.String()
			if bad != "" {
				got = "! " + string(bad)
				if next != abi.Over {
					t.Errorf("%s, step %d: a violation leads to %s", phase, step, next)
				}
			}
			if got != row[i] {
				t.Errorf("%s, step %d: %s, want %s", phase, step, got, row[i])
			}
		}
	}
	if len(steps)*len(phases) != 35 {
		t.Error("the table is not whole")
	}
}
