// Fetch is a guest that requests config.url config.requests times, config.at_once at a
// time, and reads the answers; or, with config.attach, has them kept as files. With
// config.small it emits so many records, from config.first, that hold a small file each, or
// with config.inline as much text instead.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

type settings struct {
	URL      string `json:"url"`
	Requests int    `json:"requests"`
	AtOnce   int    `json:"at_once"`
	MaxBytes int64  `json:"max_bytes"`
	Attach   bool   `json:"attach"`
	Small    int    `json:"small"`
	First    int    `json:"first"`
	Inline   bool   `json:"inline"`
}

type item struct {
	ID   string      `json:"id"`
	Text string      `json:"text,omitempty"`
	File *guest.File `json:"file,omitempty"`
}

func main() { guest.Main(guest.Connector{Collect: collect}) }

func collect(_ context.Context, run *guest.Run) error {
	var s settings
	if err := run.Config(&s); err != nil {
		return err
	}
	client := guesthttp.Client(run)
	client.Transport.(*guesthttp.Transport).MaxBytes = s.MaxBytes
	switch {
	case s.Small > 0:
		return small(run, s)
	case s.Attach:
		return attach(run, client, s.URL)
	}
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

func attach(run *guest.Run, client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f, err := run.Attach(guest.Attachment{Stream: "items", Field: "file", Content: resp.Body})
	if err != nil {
		return err
	}
	return run.Emit("items", url, item{ID: url, File: f})
}

func small(run *guest.Run, s settings) error {
	for i := range s.Small {
		one := item{ID: fmt.Sprint(s.First + i)}
		text := fmt.Sprintf("%0200d", s.First+i)
		if s.Inline {
			one.Text = text
		} else {
			var err error
			if one.File, err = run.Attach(guest.Attachment{Stream: "items", Field: "file", MediaType: "text/plain",
				Content: strings.NewReader(text)}); err != nil {
				return err
			}
		}
		if err := run.Emit("items", one.ID, one); err != nil {
			return err
		}
	}
	return nil
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
