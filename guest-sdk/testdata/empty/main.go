// Command empty is a connector that collects nothing: what the SDK alone costs.
package main

import (
	"context"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

func main() {
	guest.Main(guest.Connector{Collect: func(context.Context, *guest.Run) error { return nil }})
}
