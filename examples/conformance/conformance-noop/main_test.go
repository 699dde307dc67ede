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

// The connector succeeds at once, whatever its settings.
func TestSucceeds(t *testing.T) {
	for _, config := range []any{nil, map[string]any{"nonce": "abc"}, map[string]any{"nonce": []int{1}, "other": 7}} {
		res := guesttest.Run(t, connector, guesttest.Options{Manifest: manifest, Config: config})
		if res.Status != abi.Succeeded || res.ExitCode != 0 || len(res.Records) > 0 || len(res.Progress) > 0 {
			t.Error(res.Transcript)
		}
	}
}
