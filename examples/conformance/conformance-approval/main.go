// Command conformance-approval asks for a decision. Either one completes the run.
package main

import (
	"context"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

func collect(ctx context.Context, run *guest.Run) error {
	_, err := run.Approve(ctx, "Shall the run complete as approved? It completes either way.")
	return err
}
