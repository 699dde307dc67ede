//go:build wasip1

// Ingest is a guest that emits config.records items through the SDK, as structs
// or with the builder.
package main

import (
	"context"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/tests/bench/item"
)

type settings struct {
	Records int    `json:"records"`
	First   int    `json:"first"`
	Path    string `json:"path"` // struct or builder
}

func main() { guest.Main(guest.Connector{Collect: collect}) }

func collect(_ context.Context, run *guest.Run) error {
	var s settings
	if err := run.Config(&s); err != nil {
		return err
	}
	emit := structs
	if s.Path == "builder" {
		emit = builder
	}
	if err := item.Pages(s.First, s.Records, func(it *item.Item) error { return emit(run, it) }); err != nil {
		return err
	}
	return run.Checkpoint("items", map[string]any{"after": s.First + s.Records})
}

func structs(run *guest.Run, it *item.Item) error { return run.Emit("items", it.ID, it) }

var rec = guest.NewRecord()

func builder(run *guest.Run, it *item.Item) error {
	rec.Reset()
	rec.String("id", it.ID).String("name", it.Name).String("email", it.Email).String("city", it.City).
		Float("amount", it.Amount).Int("count", int64(it.Count)).Bool("active", it.Active).
		String("created_at", it.Created).String("note", it.Note)
	return run.Emit("items", it.ID, rec)
}
