//go:build !wasip1

package main

import (
	_ "embed"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

// DONE failed, with a structured error.
func TestFails(t *testing.T) {
	res := guesttest.Run(t, connector, guesttest.Options{Manifest: manifest})
	if res.Status != abi.Failed || res.ExitCode == 0 {
		t.Fatal(res.Transcript)
	}
	e := res.Done.Error
	if e == nil || e.Code != "conformance_failure" || e.Message == "" || e.Retryable == nil || *e.Retryable ||
		e.RecoveryHint.Action != abi.NotRetriable {
		t.Errorf("error %+v", e)
	}
}
