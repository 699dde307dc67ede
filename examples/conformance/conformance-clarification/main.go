// Command conformance-clarification asks one question, called q1. Any answer completes the run.
package main

import (
	"context"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

func collect(ctx context.Context, run *guest.Run) error {
	_, err := run.Clarify(ctx, "What should the run know?", guest.Form(guest.Field{Name: "q1", Title: "Any text"}))
	return err
}
