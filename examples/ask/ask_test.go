//go:build !wasip1

package main

import (
	_ "embed"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

var update = flag.Bool("update", false, "write testdata/everything.txt anew")

func run(t *testing.T, o guesttest.Options) *guesttest.Result {
	o.Manifest = manifest
	return guesttest.Run(t, connector, o)
}

// TestEverything asks all there is without settings, on fake time.
func TestEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := run(t, guesttest.Options{Answers: []guesttest.Answer{
			{Kind: abi.KindCredentials,
				Data:   map[string]any{"username": "ada", "password": "sluice-sealed-v1-aaaaaaaaaaaaaaaaaaaaaaaaaa"},
				Sealed: []string{"password"}},
			guesttest.Code("424242"), guesttest.Done(), guesttest.Accept("Gladly"),
			guesttest.Fields(map[string]any{"answer": "autumn"}),
		}})
		const golden = "testdata/everything.txt"
		if *update {
			if err := os.WriteFile(golden, []byte(res.Transcript), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), res.Transcript); diff != "" {
			t.Error(diff)
		}
		if res.Status != abi.Succeeded {
			t.Errorf("status %s", res.Status)
		}
		if strings.Contains(res.Transcript, "424242") || strings.Contains(res.Transcript, "sluice-sealed") {
			t.Error("a secret is in the transcript")
		}
	})
}

// TestDeclined: a question without an answer is an outcome, not the end.
func TestDeclined(t *testing.T) {
	res := run(t, guesttest.Options{
		Config: map[string]any{"ask": []map[string]any{
			{"kind": "otp", "message": "Code", "timeout_seconds": 1.5}, {"kind": "credentials", "message": "Login"},
			{"kind": "manual_action", "message": "Move"}, {"kind": "approval", "message": "May I?"},
			{"kind": "clarification", "message": "Which?"},
		}},
		Answers: []guesttest.Answer{guesttest.TimeOut(), guesttest.Decline(), guesttest.Decline(), guesttest.Reject("No"),
			guesttest.Decline()},
	})
	var got []string
	for _, r := range res.Records[stream] {
		var o outcome
		if err := r.Decode(&o); err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Key+" "+o.Outcome)
	}
	want := []string{"1-otp timeout", "2-credentials cancelled", "3-manual_action cancelled", "4-approval rejected",
		"5-clarification cancelled"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s := *res.Interactions[0].TimeoutSeconds; s != 1.5 {
		t.Errorf("timeout_seconds %v", s)
	}
}

// TestEscalation: an external approval that never comes is closed before the
// question that replaces it.
func TestEscalation(t *testing.T) {
	res := run(t, guesttest.Options{
		Config: map[string]any{"pause_ms": 0,
			"ask": []map[string]any{{"kind": "external_approval", "message": "Approve elsewhere", "polls": 2, "never": true}}},
		Answers: []guesttest.Answer{guesttest.Accept("")},
	})
	if a := res.Assistances[0]; a.Status != "timed_out" || a.OwnerAction != abi.ActionActElsewhere {
		t.Errorf("assistance %+v", a)
	}
	if got := string(res.Records[stream][0].Data); got != `{"id":"1-external_approval","kind":"external_approval","outcome":"accepted","polls":2}` {
		t.Error(got)
	}
}

func TestUnknownKind(t *testing.T) {
	res := run(t, guesttest.Options{Config: map[string]any{"ask": []map[string]any{{"kind": "riddle"}}}})
	if len(res.Skips) != 1 || res.Skips[0].Reason != "unknown_kind" || res.Status != abi.Succeeded {
		t.Error(res.Transcript)
	}
}

func TestBadSettings(t *testing.T) {
	res := run(t, guesttest.Options{Config: map[string]any{"ask": []any{1}}})
	if res.Status != abi.Failed || res.Done.Error.Code != "settings_invalid" || res.ExitCode == 0 {
		t.Error(res.Transcript)
	}
}

// TestCancelWhilePolling: a poll finds out that the run is cancelled.
func TestCancelWhilePolling(t *testing.T) {
	calls := 0
	res := run(t, guesttest.Options{
		Config: map[string]any{"pause_ms": 0,
			"ask": []map[string]any{{"kind": "back_off", "message": "Busy", "polls": 1000}}},
		Cancel: func(abi.Call) bool { calls++; return calls > 5 },
	})
	if res.Status != abi.Cancelled || res.ExitCode == 0 || len(res.Progress) > 5 {
		t.Error(res.Transcript)
	}
}
