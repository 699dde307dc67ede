package worker

import (
	"errors"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/sluicehost/sluice/abi"
)

// exitOf turns the end of _start, or of instantiation, into an exit (G19, R39).
func exitOf(err error) abi.Exit {
	var left *sys.ExitError
	switch {
	case err == nil:
		return abi.Exit{Kind: abi.ExitExited}
	case errors.As(err, &left):
		return abi.Exit{Kind: abi.ExitExited, Code: left.ExitCode()}
	default:
		return abi.Exit{Kind: abi.ExitTrapped, TrapKind: trapKind(err), Detail: err.Error()}
	}
}

// trapKind classifies by the engine's own text, which is the innermost error:
// the texts around it contain names that the guest chose.
func trapKind(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	switch text := err.Error(); {
	case text == "unreachable":
		return abi.TrapUnreachable
	case text == "out of bounds memory access", strings.HasPrefix(text, "data[") && strings.Contains(text, "out of bounds"):
		return abi.TrapMemory
	case text == "integer overflow", text == "integer divide by zero", text == "invalid conversion to integer":
		return abi.TrapInteger
	case text == "invalid table access", text == "indirect call type mismatch":
		return abi.TrapIndirectCall
	case text == "stack overflow":
		return abi.TrapStack
	}
	return abi.TrapOther
}
