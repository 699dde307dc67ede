//go:build !wasip1

// Package guesttest runs a connector against a fake host: no sandbox, no worker, no store.
// It uses the protocol checks of a real host, abi.Protocol and host/scope, so what would
// end a real run fails the test.
//
//	func TestCollect(t *testing.T) {
//		res := guesttest.Run(t, connector, guesttest.Options{
//			Manifest: manifest, // go:embed manifest.json
//			Answers:  []guesttest.Answer{guesttest.Code("424242")},
//		})
//		if len(res.Records["messages"]) != 3 {
//			t.Error(res.Transcript)
//		}
//	}
//
// The connector runs on the test's goroutine without a sandbox: it can do whatever the test
// can. Back-offs and deadlines take real time, or fake time in a bubble of
// testing/synctest.
package guesttest
