// Command sealed sends a secret that it never sees to the URL of its settings,
// and records what came back.
package main

import (
	"context"
	"io"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

func main() { guest.Main(guest.Connector{Collect: collect}) }

func collect(_ context.Context, run *guest.Run) error {
	var s struct {
		URL   string `json:"url"`
		Quiet bool   `json:"quiet"` // record nothing of it
	}
	if err := run.Config(&s); err != nil {
		return err
	}
	resp, err := run.Fetch(guest.Request{URL: s.URL, Header: [][2]string{{"X-Key", run.Secret("token")}}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if s.Quiet {
		return run.Emit("answers", "1", map[string]any{"id": "1", "status": resp.Status, "length": len(body) - len(run.Secret("token"))})
	}
	return run.Emit("answers", "1", map[string]any{"id": "1", "status": resp.Status, "body": string(body), "secret": run.Secret("token")})
}
