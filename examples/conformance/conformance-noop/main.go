// Command conformance-noop succeeds at once.
package main

import (
	"context"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

func collect(context.Context, *guest.Run) error { return nil }
