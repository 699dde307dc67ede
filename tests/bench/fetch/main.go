//go:build wasip1

// Fetch is a guest that requests config.url config.requests times, config.at_once at a
// time, and reads the answers.
package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

type settings struct {
	URL      string `json:"url"`
	Requests int    `json:"requests"`
	AtOnce   int    `json:"at_once"`
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
	ended := make(chan error)
	for range s.AtOnce {
		go func() { ended <- gets(client, s.URL, s.Requests/s.AtOnce) }()
	}
	var err error
	for range s.AtOnce {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		return err
	}
	return run.Checkpoint("items", map[string]any{"after": s.Requests})
}

func gets(client *http.Client, url string, n int) error {
	for range n {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
