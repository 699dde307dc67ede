//go:build !wasip1

package guest

import (
	"context"
	"fmt"
	"os"

	"github.com/sluicehost/sluice/abi"
)

// A Host takes the place of the imports in a native build. Package guesttest has one. The
// SDK makes one call at a time.
type Host interface {
	// Call performs the import with that number and returns the reply or an *Error. It must
	// not keep request.
	Call(call abi.Call, request []byte) (reply []byte, err error)
	// Read reads from a handle. It returns 0 at the end.
	Read(handle int32, dst []byte) (int, error)
	Close(handle int32) error
}

// A port is the connection to the host; see the wasm build.
type port struct{ h Host }

func (p port) start() ([]byte, error)                { return p.h.Call(abi.CallStart, nil) }
func (p port) checkpoint(m []byte) ([]byte, error)   { return p.h.Call(abi.CallCheckpoint, m) }
func (p port) progress(m []byte) ([]byte, error)     { return p.h.Call(abi.CallProgress, m) }
func (p port) skip(m []byte) ([]byte, error)         { return p.h.Call(abi.CallSkip, m) }
func (p port) gap(m []byte) ([]byte, error)          { return p.h.Call(abi.CallGap, m) }
func (p port) recovered(m []byte) ([]byte, error)    { return p.h.Call(abi.CallRecovered, m) }
func (p port) coverage(m []byte) ([]byte, error)     { return p.h.Call(abi.CallCoverage, m) }
func (p port) interact(m []byte) ([]byte, error)     { return p.h.Call(abi.CallInteract, m) }
func (p port) assist(m []byte) ([]byte, error)       { return p.h.Call(abi.CallAssist, m) }
func (p port) assistStatus(m []byte) ([]byte, error) { return p.h.Call(abi.CallAssistStatus, m) }
func (p port) message(m []byte) ([]byte, error)      { return p.h.Call(abi.CallMessage, m) }
func (p port) log(m []byte) ([]byte, error)          { return p.h.Call(abi.CallLog, m) }
func (p port) done(m []byte) ([]byte, error)         { return p.h.Call(abi.CallDone, m) }
func (p port) exchange(m []byte) ([]byte, error)     { return p.h.Call(abi.CallNetworkExchange, m) }
func (p port) browser(m []byte) ([]byte, error)      { return p.h.Call(abi.CallBrowser, m) }

func (p port) attach(m []byte) ([]byte, error)     { return p.h.Call(abi.CallAttach, m) }
func (p port) attachPart(m []byte) ([]byte, error) { return p.h.Call(abi.CallAttachPart, m) }

func (p port) emit(frame []byte) error {
	_, err := p.h.Call(abi.CallEmit, frame)
	return err
}

func (p port) read(handle int32, dst []byte) (int, error) { return p.h.Read(handle, dst) }
func (p port) close(handle int32) error                   { return p.h.Close(handle) }

// Main prints how to run a connector and exits: a native build has no host and no sandbox.
func Main(Connector) {
	fmt.Fprint(os.Stderr, `This is a native build of a Sluice connector. It has no host and no sandbox.

  in a sandbox   sluice run DIR, which builds it with GOOS=wasip1 GOARCH=wasm
  in a debugger  go test, with guesttest.Run: unsandboxed, on this machine
`)
	os.Exit(2)
}

// Drive performs one run of c against h and returns the exit code. It has no sandbox: the
// connector can do whatever this process can.
func Drive(ctx context.Context, c Connector, h Host) (exitCode int) { return drive(ctx, c, port{h}) }

// NewError returns the error with which a Host refuses a call.
func NewError(errno abi.Errno, code, message string) *Error {
	return &Error{Errno: errno, Code: code, Message: message}
}
