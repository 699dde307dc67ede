// Command bench emits records of 200 bytes: args are what to emit and how many.
package main

import (
	"context"
	"os"
	"strconv"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

type thread struct {
	ID string `json:"id"`
}

// A message is 200 bytes as JSON.
type message struct {
	ID        string   `json:"id"`
	CreatedAt string   `json:"created_at"`
	From      string   `json:"from"`
	Subject   string   `json:"subject"`
	Size      int      `json:"size"`
	Read      bool     `json:"read"`
	Labels    []string `json:"labels"`
	Thread    thread   `json:"thread"`
}

func main() {
	guest.Main(guest.Connector{Collect: collect})
}

func collect(_ context.Context, run *guest.Run) error {
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	m := &message{
		ID: "msg-000000123456", CreatedAt: "2026-03-04T05:06:07.891Z", From: "ada@example.org", Subject: "Notes on the engine",
		Size: 18234, Read: true, Labels: []string{"inbox", "work"}, Thread: thread{"t-99881"},
	}
	rec := run.Record("messages")
	asMap := map[string]any{
		"id": m.ID, "created_at": m.CreatedAt, "from": m.From, "subject": m.Subject, "size": m.Size, "read": m.Read,
		"labels": m.Labels, "thread": map[string]any{"id": m.Thread.ID},
	}
	for range n {
		switch os.Args[1] {
		case "struct":
			err = run.Emit("messages", m.ID, m)
		case "value":
			err = run.Emit("messages", m.ID, *m)
		case "map":
			err = run.Emit("messages", m.ID, asMap)
		case "record":
			err = rec.Reset().String("id", m.ID).String("created_at", m.CreatedAt).String("from", m.From).
				String("subject", m.Subject).Int("size", int64(m.Size)).Bool("read", m.Read).
				Strings("labels", m.Labels).String("thread", m.Thread.ID).Emit(m.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
