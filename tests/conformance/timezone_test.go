package conformance

import (
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timezone"
)

// A run answers the calls of a binding that it was lent, and denies them otherwise.
func TestTimezone(t *testing.T) {
	for want, approved := range map[string]string{"reply 2 OK": "true", "reply 2 EDENIED": "false"} {
		d := faultStage(t).drive(t, func(in *run.Input, deps *run.Deps) {
			in.Manifest = itemsManifest(t)
			in.Manifest.Bindings = map[string]abi.Binding{"timezone": {Members: json.RawMessage(`{}`)}}
			in.Connection.Approved.Other = map[string]json.RawMessage{"timezone": json.RawMessage(approved)}
			b, err := timezone.New().Open(in.Manifest, in.Connection)
			if err != nil {
				t.Fatal(err)
			}
			if b != nil {
				deps.Bindings = append(deps.Bindings, b)
			}
		}).started()
		d.guest.does(fakeCall{call: abi.CallTimezone})
		d.heard(want)
	}
}
