//go:build !wasip1

package guest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// asking is a tape whose owner gives one response to everything.
func asking(response string) *tape {
	return &tape{reply: map[abi.Call]string{abi.CallInteract: response}}
}

// TestQuestions: the message of each kind, and its typed answer.
func TestQuestions(t *testing.T) {
	type ask func(ctx context.Context, run *guest.Run) (any, error)
	for _, c := range []struct {
		name, response, message string
		ask                     ask
		want                    any
	}{
		{"otp", `{"request_id":"otp-1","status":"success","data":{"code":"424242"}}`,
			`interact {"request_id":"otp-1","kind":"otp","message":"Code?","stream":"a","timeout_seconds":1.5}`,
			func(ctx context.Context, run *guest.Run) (any, error) {
				return run.OTP(ctx, "Code?", guest.OnStream("a"), guest.Timeout(1500*time.Millisecond))
			}, "424242"},
		{"otp with its own field", `{"request_id":"x","status":"success","data":{"pin":1234}}`,
			`interact {"request_id":"x","kind":"otp","message":"PIN?","schema":{"type":"object","properties":{"pin":{"type":"integer","title":"Your \"PIN\""}},"required":["pin"]}}`,
			func(ctx context.Context, run *guest.Run) (any, error) {
				return run.OTP(ctx, "PIN?", guest.RequestID("x"),
					guest.Form(guest.Field{Name: "pin", Type: "integer", Title: `Your "PIN"`}))
			}, "1234"},
		{"credentials", `{"status":"success","data":{"username":"ada","password":"sealed","tenant":"x"},"sealed_fields":["password"]}`,
			`interact {"request_id":"credentials-1","kind":"credentials","message":"Login","schema":{"type":"object","properties":{"username":{"type":"string","format":"email"},"password":{"type":"string","secret":true},"tenant":{"type":"string"}},"required":["username","password"]}}`,
			func(ctx context.Context, run *guest.Run) (any, error) {
				l, err := run.Credentials(ctx, "Login", guest.Form(guest.Field{Name: "username", Format: "email"},
					guest.Field{Name: "password", Secret: true}, guest.Field{Name: "tenant", Optional: true}))
				return []any{l.Username, l.Password, l.Answer.Text("tenant"), l.Answer.Sealed("password"),
					l.Answer.Sealed("username"), l.Answer.Has("none")}, err
			}, []any{"ada", "sealed", "x", true, false, false}},
		{"manual action", `{"status":"success"}`,
			`interact {"request_id":"manual_action-1","kind":"manual_action","message":"Click"}`,
			func(ctx context.Context, run *guest.Run) (any, error) { return nil, run.ManualAction(ctx, "Click") }, nil},
		{"accept", `{"status":"success","data":{"action":"accept","comment":"ok"}}`,
			`interact {"request_id":"approval-1","kind":"approval","message":"May I?"}`,
			func(ctx context.Context, run *guest.Run) (any, error) { return run.Approve(ctx, "May I?") },
			guest.Decision{Accepted: true, Comment: "ok"}},
		{"reject", `{"status":"success","data":{"action":"reject"}}`,
			`interact {"request_id":"approval-1","kind":"approval","message":"May I?"}`,
			func(ctx context.Context, run *guest.Run) (any, error) { return run.Approve(ctx, "May I?") }, guest.Decision{}},
		{"refine", `{"status":"success","data":{"action":"refine","comment":"shorter"}}`,
			`interact {"request_id":"approval-1","kind":"approval","message":"May I?","schema":{"type":"object","properties":{"action":{"enum":["accept","reject","refine"]}}}}`,
			func(ctx context.Context, run *guest.Run) (any, error) {
				return run.Approve(ctx, "May I?", guest.Refinable())
			}, guest.Decision{Refine: true, Comment: "shorter"}},
		{"edit", `{"status":"success","data":{"action":"edit-accept","edited":"Mine"}}`,
			`interact {"request_id":"approval-1","kind":"approval","message":"May I?","schema":{"type":"object","properties":{"action":{"enum":["accept","reject","refine","edit-accept"]},"edited":{"type":"string","default":"\"Yours\""}}}}`,
			func(ctx context.Context, run *guest.Run) (any, error) {
				return run.Approve(ctx, "May I?", guest.Refinable(), guest.Editable(`"Yours"`))
			}, guest.Decision{Accepted: true, Edited: "Mine"}},
		{"clarification", `{"status":"success","data":{"n":2,"s":["a"],"answer":"red"}}`,
			`interact {"request_id":"clarification-1","kind":"clarification","message":"Which?","schema":{"type":"object","properties":{"answer":{"type":"string","enum":["red","blue"]}},"required":["answer"]}}`,
			func(ctx context.Context, run *guest.Run) (any, error) {
				a, err := run.Clarify(ctx, "Which?", guest.Form(guest.Field{Name: "answer", Enum: []string{"red", "blue"}}))
				var v struct {
					N      int
					Answer string
				}
				err = errors.Join(err, a.Decode(&v))
				return []any{a.Text("answer"), a.Text("s"), v.N, v.Answer, a.Text("none")}, err
			}, []any{"red", `["a"]`, 2, "red", ""}},
	} {
		h := asking(c.response)
		h.drive(t, func(ctx context.Context, run *guest.Run) error {
			got, err := c.ask(ctx, run)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", c.name, err, diff)
			}
			return nil
		})
		if h.calls[1] != c.message {
			t.Errorf("%s: %s\nwant %s", c.name, h.calls[1], c.message)
		}
	}
}

// TestQuestionsWithoutAnswer: declined, late, nobody there, and already over.
func TestQuestionsWithoutAnswer(t *testing.T) {
	for response, want := range map[string]error{`{"status":"cancelled"}`: guest.ErrCancelled,
		`{"status":"timeout"}`: guest.ErrTimeout} {
		asking(response).drive(t, func(ctx context.Context, run *guest.Run) error {
			if _, err := run.OTP(ctx, "Code?"); !errors.Is(err, want) {
				t.Errorf("%s: %v", response, err)
			}
			if err := run.ManualAction(ctx, "Click"); !errors.Is(err, want) {
				t.Errorf("%s: %v", response, err)
			}
			return nil
		})
	}
	for _, response := range []string{"", "{}", `{"status":"maybe"}`} {
		asking(response).drive(t, func(ctx context.Context, run *guest.Run) error {
			if _, err := run.Approve(ctx, "May I?"); err == nil {
				t.Errorf("response %q is taken", response)
			}
			return nil
		})
	}
	h := &tape{start: strings.Replace(tapeStart, `"interactive":{}`, "", 1)}
	h.drive(t, func(ctx context.Context, run *guest.Run) error {
		if _, err := run.OTP(ctx, "Code?"); !errors.Is(err, guest.ErrNotInteractive) || run.Interactive() {
			t.Errorf("nobody there: %v", err)
		}
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := run.OTP(ctx, "Code?"); !errors.Is(err, context.Canceled) {
			t.Errorf("over: %v", err)
		}
		return nil
	})
	if len(h.calls) != 2 {
		t.Errorf("calls %q", h.calls)
	}
}

// TestDeadlineIsATimeout: the deadline of the context bounds a question, since
// nothing can interrupt a call.
func TestDeadlineIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := asking(`{"status":"success","data":{"code":"1"}}`)
		h.drive(t, func(ctx context.Context, run *guest.Run) error {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			_, err1 := run.OTP(ctx, "x", guest.Timeout(time.Minute))
			_, err2 := run.OTP(ctx, "x", guest.Timeout(time.Second))
			return errors.Join(err1, err2)
		})
		for i, want := range []string{`"request_id":"otp-1","kind":"otp","message":"x","timeout_seconds":30}`,
			`"request_id":"otp-2","kind":"otp","message":"x","timeout_seconds":1}`} {
			if !strings.HasSuffix(h.calls[i+1], want) {
				t.Errorf("%s\nwant %s", h.calls[i+1], want)
			}
		}
	})
}

// TestAskingFlushes: asking flushes first: what was emitted is safe while the owner thinks.
func TestAskingFlushes(t *testing.T) {
	h := asking(`{"status":"success"}`)
	h.drive(t, func(ctx context.Context, run *guest.Run) error {
		return errors.Join(run.Emit("a", "1", item{"1"}), run.ManualAction(ctx, "x"))
	})
	if h.calls[1] != "emit 1 records" {
		t.Errorf("calls %q", h.calls)
	}
}
