// Pages is a guest that emits the pages from its cursor to config.until, with a
// checkpoint after each, and reports where it started.
package main

import (
	"context"
	"strings"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/tests/crash/page"
)

type settings struct {
	Until int `json:"until"`
	Pad   int `json:"pad"` // bytes to add to each note, to fill a disk
	// Files has the first item of a page and the record of latest hold one.
	Files bool `json:"files"`
	Pause int  `json:"pause"` // milliseconds before each page
}

type cursor struct {
	Page int `json:"page"`
}

// What is emitted, with the file that it holds.
type (
	item struct {
		page.Item
		File *guest.File `json:"file,omitempty"`
	}
	mark struct {
		page.Mark
		File *guest.File `json:"file,omitempty"`
	}
)

func attach(run *guest.Run, stream, content string) (*guest.File, error) {
	return run.Attach(guest.Attachment{Stream: stream, Field: "file", Content: strings.NewReader(content)})
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
		time.Sleep(time.Duration(s.Pause) * time.Millisecond)
		at.Page++
		var small, long *guest.File
		if s.Files {
			var err error
			if small, err = attach(run, "items", page.Small(at.Page)); err != nil {
				return err
			}
			if long, err = attach(run, "latest", page.Long(at.Page)); err != nil {
				return err
			}
		}
		for _, it := range page.Items(at.Page) {
			it.Note += pad
			if err := run.Emit("items", it.ID, item{it, small}); err != nil {
				return err
			}
			small = nil
		}
		if err := run.Emit("latest", page.Latest, mark{page.Mark{ID: page.Latest, Page: at.Page}, long}); err != nil {
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
