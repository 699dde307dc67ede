// Command sealed sends a secret that it never sees to the URL of its settings,
// and records what came back.
package main

import (
	"context"
	"io"
	"net/http"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

func main() { guest.Main(guest.Connector{Collect: collect}) }

func collect(ctx context.Context, run *guest.Run) error {
	var s struct {
		URL   string `json:"url"`
		Quiet bool   `json:"quiet"` // record nothing of it
	}
	if err := run.Config(&s); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Key", run.Secret("token"))
	resp, err := guesthttp.Client(run).Do(req)
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
