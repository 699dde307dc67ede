//go:build !wasip1

package guest

import (
	"context"
	"fmt"
	"os"

	"github.com/sluicehost/sluice/abi"
)

// Main ends the program with a word about how to run it: a native build has no
// host and no sandbox (G23).
func Main(Connector) {
	fmt.Fprint(os.Stderr, `This is a native build of a Sluice connector. It has no host and no sandbox.

  in a sandbox   sluice run DIR, which builds it with GOOS=wasip1 GOARCH=wasm
  in a debugger  go test, with guesttest.Run: unsandboxed, on this machine
`)
	os.Exit(2)
}

// Drive does one run of c against h and returns the exit code. It runs
// unsandboxed: the connector can do whatever this process can.
func Drive(ctx context.Context, c Connector, h Host) (exitCode int) { return drive(ctx, c, port{h}) }

// NewError is what a Host returns for a call that it refuses.
func NewError(errno abi.Errno, code, message string) *Error {
	return &Error{Errno: errno, Code: code, Message: message}
}
