// Command conformance-delay waits for a while, then succeeds.
package main

import (
	"context"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

// slice is how long one wait in the host is. The call that follows each is where
// the connector finds out that its run is cancelled, and stands while it is
// paused: a pause does not count as waiting.
const slice = 500 * time.Millisecond

func collect(ctx context.Context, run *guest.Run) error {
	settings := struct {
		DelayMS float64 `json:"delayMs"`
	}{1000}
	if err := run.Config(&settings); err != nil {
		return guest.Fail("settings_invalid", false, guest.NotRetriable, "read settings: %w", err)
	}
	total := time.Duration(settings.DelayMS * float64(time.Millisecond))
	for waited := time.Duration(0); waited < total; {
		next := min(slice, total-waited)
		time.Sleep(next)
		waited += next
		if err := run.Progress("Waiting", guest.Count(waited.Milliseconds()), guest.Total(total.Milliseconds())); err != nil {
			return err
		}
	}
	return ctx.Err()
}
