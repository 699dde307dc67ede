// Command conformance-idempotent succeeds at once. Its setting nonce is there to make two requests to
// start it equal, or not.
package main

import (
	"context"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

func collect(context.Context, *guest.Run) error { return nil }
