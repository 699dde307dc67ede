package guest_test

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// The whole of a small connector.
func Example() {
	type Note struct {
		ID      string    `json:"id"`
		Text    string    `json:"text,omitempty"`
		Written time.Time `json:"written"`
	}
	notes := []Note{{"n1", "hello", time.Now()}, {"n2", "again", time.Now()}}

	collect := func(ctx context.Context, run *guest.Run) error {
		var cursor struct {
			Next int `json:"next"`
		}
		if _, err := run.State("notes", &cursor); err != nil {
			return err
		}
		for i := cursor.Next; i < len(notes); i++ {
			if err := run.Emit("notes", notes[i].ID, &notes[i]); err != nil {
				return err
			}
		}
		cursor.Next = len(notes)
		return run.Checkpoint("notes", cursor)
	}

	// func main() { guest.Main(connector) }
	connector := guest.Connector{Collect: collect}
	_ = connector
}

func ExampleRun_Record() {
	type message struct {
		id   string
		size int64
	}
	collect := func(_ context.Context, run *guest.Run) error {
		rec := run.Record("messages")
		for _, m := range []message{{"m1", 10}, {"m2", 20}} {
			if err := rec.Reset().String("id", m.id).Int("size", m.size).Emit(m.id); err != nil {
				return err
			}
		}
		return nil
	}
	_ = collect
}

func ExampleRun_OTP() {
	collect := func(ctx context.Context, run *guest.Run) error {
		code, err := run.OTP(ctx, "A code was sent to your phone.", guest.Timeout(5*time.Minute))
		switch {
		case errors.Is(err, guest.ErrNotInteractive):
			return guest.Fail("code_needed", false, guest.ManualActionRequired,
				"the service wants a code: start the run by hand")
		case err != nil:
			return err // declined and late have a code of their own in DONE
		}
		_ = code // a handle, if the manifest has it sealed: put it where its destination allows
		return nil
	}
	_ = collect
}

func ExampleRun_Assist() {
	approved := func() bool { return true }
	collect := func(ctx context.Context, run *guest.Run) error {
		id, err := run.Assist(guest.Assistance{
			Posture: guest.PostureRunning, Action: guest.ActionActElsewhere,
			Message:     "Approve the sign-in in the bank's app.",
			Attachments: []abi.Attachment{{Kind: "url", Label: "Open the app", URL: "https://bank.example/approve"}},
		})
		if err != nil {
			return err
		}
		for !approved() {
			time.Sleep(2 * time.Second)
			if err := run.Progress("Waiting for the approval"); err != nil {
				return err // also when the owner cancels the run meanwhile
			}
		}
		return run.AssistStatus(id, guest.Resolved, "")
	}
	_ = collect
}

func ExampleFail() {
	collect := func(context.Context, *guest.Run) error {
		return guest.Fail("rate_limited", true, guest.RetryByRuntime, "the service answered %d", 429)
	}
	_ = collect
}
