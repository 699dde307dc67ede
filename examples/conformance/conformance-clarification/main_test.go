//go:build !wasip1

package main

import (
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

// One field called q1; answered, the run completes.
func TestAnswered(t *testing.T) {
	res := guesttest.Run(t, connector, guesttest.Options{
		Manifest: manifest, Answers: []guesttest.Answer{guesttest.Fields(map[string]any{"q1": "blue"})},
	})
	if res.Status != abi.Succeeded || len(res.Interactions) != 1 || res.Interactions[0].Kind != abi.KindClarification {
		t.Fatal(res.Transcript)
	}
	var schema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(res.Interactions[0].Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if len(schema.Properties) != 1 || schema.Properties["q1"] == nil || len(schema.Required) != 1 {
		t.Errorf("schema %s", res.Interactions[0].Schema)
	}
}
