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

// Either decision completes the run.
func TestDecided(t *testing.T) {
	for _, answer := range []guesttest.Answer{guesttest.Accept(""), guesttest.Reject("no")} {
		res := guesttest.Run(t, connector, guesttest.Options{Manifest: manifest, Answers: []guesttest.Answer{answer}})
		if res.Status != abi.Succeeded || len(res.Interactions) != 1 || res.Interactions[0].Kind != abi.KindApproval {
			t.Error(res.Transcript)
		}
	}
}

// Without a decision there is nothing to complete.
func TestUndecided(t *testing.T) {
	for _, answer := range []guesttest.Answer{guesttest.Decline(), guesttest.TimeOut()} {
		res := guesttest.Run(t, connector, guesttest.Options{Manifest: manifest, Answers: []guesttest.Answer{answer}})
		if res.Status != abi.Failed || res.Done.Error == nil {
			t.Error(res.Transcript)
		}
	}
}
