//go:build wasip1

// Fetch is a guest that gets config.url config.requests times, one after the
// other, and reads the answers.
package main

import (
	"context"
	"io"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

type settings struct {
	URL      string `json:"url"`
	Requests int    `json:"requests"`
	MaxBytes int64  `json:"max_bytes"`
}

func main() { guest.Main(guest.Connector{Collect: collect}) }

func collect(_ context.Context, run *guest.Run) error {
	var s settings
	if err := run.Config(&s); err != nil {
		return err
	}
	client := guesthttp.Client(run)
	client.Transport.(*guesthttp.Transport).MaxBytes = s.MaxBytes
	for range s.Requests {
		resp, err := client.Get(s.URL)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
	}
	return run.Checkpoint("items", map[string]any{"after": s.Requests})
}
