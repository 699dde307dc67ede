// Package guest is the Go SDK for connectors. A connector is a
// program whose main function is one call:
//
//	func main() {
//		guest.Main(guest.Connector{Collect: collect})
//	}
//
//	func collect(ctx context.Context, run *guest.Run) error {
//		if err := run.Emit("notes", "n1", Note{ID: "n1", Text: "hello"}); err != nil {
//			return err
//		}
//		return run.Checkpoint("notes", map[string]any{"after": "n1"})
//	}
//
// Built with GOOS=wasip1 GOARCH=wasm it speaks the ABI of docs/spec/abi.md to the host
// that runs it. Built for the developer's own machine the same code runs
// against package guesttest, under a debugger if need be, without a sandbox.
//
// The SDK counts records, packs them into frames, flushes before every other
// call, sends DONE and ends with the matching exit code. It trusts its host and
// checks for the connector's sake only: a call that the host would answer by
// ending the run returns an error instead where the SDK can know.
package guest
