// Command guest does what its settings say, step by step, so that a test decides how a
// real run proceeds.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

func main() { guest.Main(guest.Connector{Collect: collect}) }

// A step is one entry of the setting steps.
type step struct {
	Do      string  `json:"do"` // emit, attach, progress, stamp, wait, otp, approval, fail
	N       int     `json:"n"`
	MS      float64 `json:"ms"` // between two of N, or to wait
	Text    string  `json:"text"`
	Content []byte  `json:"content"` // of a file to attach, which Text names
	Media   string  `json:"media"`
	Timeout float64 `json:"timeout"` // seconds
}

const stream = "items"

func collect(ctx context.Context, run *guest.Run) error {
	var s struct {
		Steps []step `json:"steps"`
	}
	if err := run.Config(&s); err != nil {
		return guest.Fail("settings_invalid", false, guest.NotRetriable, "read settings: %w", err)
	}
	for i, st := range s.Steps {
		if err := do(ctx, run, i, st); err != nil {
			return err
		}
	}
	return nil
}

func do(ctx context.Context, run *guest.Run, i int, s step) error {
	pause := time.Duration(s.MS * float64(time.Millisecond))
	switch s.Do {
	case "emit":
		for n := range max(s.N, 1) {
			id := strconv.Itoa(i) + "-" + fmt.Sprintf("%09d", n)
			if err := run.Emit(stream, id, map[string]any{"id": id, "n": n, "text": s.Text}); err != nil {
				return err
			}
		}
		return run.Checkpoint(stream, map[string]int{"step": i})
	case "attach":
		id := s.Text
		f, err := run.Attach(guest.Attachment{Stream: stream, Field: "file", Name: s.Text, MediaType: s.Media,
			Content: bytes.NewReader(s.Content)})
		if err != nil {
			return err
		}
		return run.Emit(stream, id, map[string]any{"id": id, "file": f})
	case "progress":
		for n := range max(s.N, 1) {
			time.Sleep(pause)
			if err := run.Progress(s.Text, guest.OnStream(stream), guest.Count(n), guest.Total(s.N)); err != nil {
				return err
			}
		}
		return nil
	case "stamp": // messages that say when they were sent
		for range max(s.N, 1) {
			time.Sleep(pause)
			if err := run.Message(strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
				return err
			}
		}
		return nil
	case "wait":
		for end := time.Now().Add(pause); time.Now().Before(end); {
			time.Sleep(min(time.Until(end), 200*time.Millisecond))
			if err := run.Progress("Waiting"); err != nil {
				return err
			}
		}
		return nil
	case "otp", "approval":
		return ask(ctx, run, s)
	}
	return guest.Fail("told_to", false, guest.NotRetriable, "%s", s.Text)
}

// ask asks a question. A question that gets no answer does not fail the run.
func ask(ctx context.Context, run *guest.Run, s step) error {
	options := []guest.Option{guest.OnStream(stream)}
	if s.Timeout > 0 {
		options = append(options, guest.Timeout(time.Duration(s.Timeout*float64(time.Second))))
	}
	var err error
	if s.Do == "otp" {
		_, err = run.OTP(ctx, s.Text, options...)
	} else {
		_, err = run.Approve(ctx, s.Text, options...)
	}
	if errors.Is(err, guest.ErrTimeout) || errors.Is(err, guest.ErrCancelled) {
		return ctx.Err()
	}
	return err
}
