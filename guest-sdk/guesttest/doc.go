//go:build !wasip1

// Package guesttest runs a connector against a host that exists for the test
// only: no sandbox, no worker, no store. Its protocol checks are those of
// a real host, abi.Protocol and host/scope, so what would end a run there fails
// the test here.
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
// The connector runs on the test's goroutine, unsandboxed: it can do whatever
// the test can. Back-offs and deadlines are real time, or fake time in a bubble
// of testing/synctest.
package guesttest
