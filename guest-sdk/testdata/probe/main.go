// Command probe takes the SDK's way through the imports: args[1] says which.
package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

type note struct {
	ID   string `json:"id"`
	Text string `json:"text,omitempty"`
}

func main() { guest.Main(guest.Connector{Collect: collect}) }

func collect(ctx context.Context, run *guest.Run) error {
	switch os.Args[1] {
	case "all":
		code, err := run.OTP(ctx, "Code?")
		if err != nil {
			return err
		}
		for _, n := range []note{{"1", code}, {"2", ""}} {
			if err := run.Emit("messages", n.ID, &n); err != nil {
				return err
			}
		}
		return run.Checkpoint("messages", map[string]any{"after": "2", "large": strings.Repeat("x", 100_000)})
	case "panic":
		panic("as told")
	case "refused":
		err := run.Progress("p")
		e, ok := errors.AsType[*guest.Error](err)
		if !ok {
			return errors.New("no *guest.Error")
		}
		return guest.Fail("refused", true, guest.RetryByRuntime, "%s|%s|%s|%v", e.Code, e.Message, e.Detail, errors.Is(err, abi.EBUSY))
	default:
		err := run.Progress("p")
		if ctx.Err() == nil {
			return errors.New("ctx is not done")
		}
		return err
	}
}
