// Package guest is the Go SDK for connectors. The main function of a connector is one call:
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
// Built with GOOS=wasip1 GOARCH=wasm, the program speaks the ABI of docs/spec/abi.md with
// the host that runs it. In a native build the same code runs against package guesttest,
// without a sandbox and, if needed, under a debugger.
//
// The SDK counts records, packs them into frames, flushes them before every other call,
// sends DONE and exits with the matching code. It trusts its host. Its own checks only help
// the connector: where it can, it returns an error for a call to which the host would
// respond by ending the run.
package guest
