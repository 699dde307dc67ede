//go:build wasip1

// Pages is a guest that emits the pages from its cursor to config.until, with a
// checkpoint after each, and reports where it started.
package main

import (
	"context"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/tests/crash/page"
)

type settings struct {
	Until int `json:"until"`
	Pad   int `json:"pad"` // bytes to add to each note, to fill a disk
}

type cursor struct {
	Page int `json:"page"`
}

func main() { guest.Main(guest.Connector{Collect: collect}) }

func collect(_ context.Context, run *guest.Run) error {
	var s settings
	if err := run.Config(&s); err != nil {
		return err
	}
	var at cursor
	if _, err := run.State("items", &at); err != nil {
		return err
	}
	if err := run.Progress("from", guest.Count(int64(at.Page))); err != nil {
		return err
	}
	pad := strings.Repeat("x", s.Pad)
	for at.Page < s.Until {
		at.Page++
		for _, it := range page.Items(at.Page) {
			it.Note += pad
			if err := run.Emit("items", it.ID, it); err != nil {
				return err
			}
		}
		if err := run.Emit("latest", page.Latest, page.Mark{ID: page.Latest, Page: at.Page}); err != nil {
			return err
		}
		for _, stream := range []string{"items", "latest"} {
			if err := run.Checkpoint(stream, at); err != nil {
				return err
			}
		}
	}
	return nil
}
