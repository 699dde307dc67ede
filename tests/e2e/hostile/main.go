// Command hostile puts payloads wherever a connector can put text.
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/tests/e2e/payload"
)

func main() { guest.Main(guest.Connector{Collect: collect}) }

const stream = "items"

func collect(ctx context.Context, run *guest.Run) error {
	all := payload.All()
	for i, p := range all {
		if err := run.Emit(stream, p, map[string]any{"id": p, "text": p, "n": i}); err != nil {
			return err
		}
		if err := run.Progress(p, guest.OnStream(stream), guest.Count(i), guest.Total(len(all))); err != nil {
			return err
		}
		if err := run.Message(p); err != nil {
			return err
		}
	}
	if err := run.Checkpoint(stream, map[string]string{"after": all[0]}); err != nil {
		return err
	}
	// A reason must be a code; the message may be anything.
	if err := run.Skip(guest.Skip{Stream: stream, Reason: "hostile", Message: all[1]}); err != nil {
		return err
	}
	if _, err := run.Assist(guest.Assistance{Posture: guest.PostureRunning, Action: guest.ActionActElsewhere,
		Message: together(all[:40]), Stream: stream}); err != nil {
		return err
	}
	fields := make([]guest.Field, 0, 8)
	for i := range cap(fields) {
		fields = append(fields, guest.Field{Name: fmt.Sprintf("f%d", i), Title: all[i*13]})
	}
	fields[1].Enum = all[:60]
	fields[2].Name = `"><x-pwned>`
	if _, err := run.Clarify(ctx, together(all[40:]), guest.OnStream(stream), guest.Form(fields...)); err != nil {
		return err
	}
	return guest.Fail("hostile", false, guest.NotRetriable, "%s", together(all[:20]))
}

func together(list []string) string { return abi.Cut(strings.Join(list, " "), 2000) }
