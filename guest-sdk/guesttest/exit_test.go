//go:build !wasip1

package guesttest

import (
	"errors"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

const smallManifest = `{"protocol_version":"0.1.0","connector_id":"c","version":"1","display_name":"C",
 "streams":[{"name":"a","semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`

// TestAfterExit: what DONE said is held against records and exit, where a connector of the SDK cannot
// fail: here the guest speaks for itself.
func TestAfterExit(t *testing.T) {
	for _, c := range []struct {
		done string
		exit int
		want abi.Subtype
	}{
		{`{"status":"succeeded","records_emitted":0}`, 0, ""},
		{`{"status":"failed","records_emitted":0}`, 1, ""},
		{`{"status":"succeeded","records_emitted":0}`, 1, abi.VExitCodeMismatch},
		{`{"status":"failed","records_emitted":0}`, 0, abi.VExitCodeMismatch},
		{`{"status":"succeeded"}`, 0, abi.VDoneInvalidRecordsEmitted},
		{`{"status":"succeeded","records_emitted":1}`, 0, abi.VDoneRecordsEmittedMismatch},
	} {
		h, err := open(t, Options{Manifest: []byte(smallManifest)})
		if err != nil {
			t.Fatal(err)
		}
		_, err1 := h.Call(abi.CallStart, nil)
		_, err2 := h.Call(abi.CallDone, []byte(c.done))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		h.result.ExitCode = c.exit
		h.exited()
		got := abi.Subtype("")
		if h.result.Violation != nil {
			got = h.result.Violation.Subtype
		}
		if got != c.want || c.want != "" && h.result.Status != abi.Failed {
			t.Errorf("%s, exit %d: violation %q, status %s", c.done, c.exit, got, h.result.Status)
		}
	}
}

// TestOrder: calls in the wrong order end the run.
func TestOrder(t *testing.T) {
	h, err := open(t, Options{Manifest: []byte(smallManifest)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Call(abi.CallProgress, []byte(`{"message":"early"}`)); !errors.Is(err, abi.EPROTO) ||
		h.result.Violation.Subtype != abi.VAbiFault {
		t.Errorf("before start: %v", err)
	}
	if _, err := h.Call(abi.CallStart, nil); !errors.Is(err, abi.EPROTO) {
		t.Errorf("after a violation: %v", err)
	}
}
