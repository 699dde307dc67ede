// Command filer attaches files in every way that there is, and tries some that there are not.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

func main() { guest.Main(guest.Connector{Collect: collect}) }

type row struct {
	ID    string        `json:"id"`
	Note  string        `json:"note,omitempty"`
	File  *guest.File   `json:"file,omitempty"`
	Files []*guest.File `json:"files,omitempty"`
}

type settings struct {
	URL    string `json:"url"`
	Rounds int    `json:"rounds"` // 2: the second round drops what the first held
	Other  string `json:"other"`  // a digest that another connection holds
	Many   int    `json:"many"`
}

func collect(_ context.Context, run *guest.Run) error {
	var s settings
	if err := run.Config(&s); err != nil {
		return err
	}
	if s.Rounds == 2 {
		return errors.Join(run.Delete("rows", "parts"), run.Emit("rows", "short", row{ID: "short", Note: "no more"}))
	}
	if s.Other != "" {
		return run.Emit("rows", "other", row{ID: "other", File: &guest.File{Digest: s.Other}})
	}
	for n := range s.Many {
		f, err := run.Attach(guest.Attachment{Stream: "rows", Field: "file", Content: strings.NewReader(fmt.Sprintf("file %d", n))})
		if err != nil {
			return err
		}
		if err := run.Emit("rows", fmt.Sprint(n), row{ID: fmt.Sprint(n), File: f}); err != nil {
			return err
		}
	}
	return errors.Join(pieces(run), answer(run, s.URL), refused(run))
}

// pieces attaches from memory, whole and in parts.
func pieces(run *guest.Run) error {
	short, err := run.Attach(guest.Attachment{Stream: "rows", Field: "file", Name: "../../etc/pass\u202ewd", Content: strings.NewReader("%PDF-1.4 short")})
	if err != nil {
		return err
	}
	if short != nil {
		short.Size, short.Name = -1, "" // the host writes them
	}
	parts, err := run.Attach(guest.Attachment{
		Stream: "rows", Field: "files", Name: "parts.bin", MediaType: "Application/X-Parts; v=1", Content: io.LimitReader(zeros{}, 1_000_000),
	})
	if err != nil {
		return err
	}
	if err := run.Emit("rows", "short", row{ID: "short", File: short}); err != nil {
		return err
	}
	return run.Emit("rows", "parts", row{ID: "parts", Files: []*guest.File{parts, short}})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// answer attaches the answer of a server, whose bytes never come here.
func answer(run *guest.Run, url string) error {
	if url == "" {
		return nil
	}
	resp, err := run.Fetch(guest.Request{URL: url, Header: [][2]string{{"X-Key", run.Secret("token")}}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f, err := run.Attach(guest.Attachment{Stream: "rows", Field: "file", Name: "answer.txt", MediaType: "text/plain", Content: resp.Body})
	if err != nil {
		return err
	}
	return run.Emit("rows", "answer", row{ID: "answer", File: f})
}

// refused asks for what no host gives.
func refused(run *guest.Run) error {
	notes := []string{}
	try := func(a guest.Attachment) {
		if a.Content == nil {
			a.Content = strings.NewReader("x")
		}
		_, err := run.Attach(a)
		var e *guest.Error
		if !errors.As(err, &e) {
			notes = append(notes, fmt.Sprint(err))
			return
		}
		notes = append(notes, e.Errno.String()+" "+e.Code)
	}
	try(guest.Attachment{Stream: "rows", Field: "note"})
	try(guest.Attachment{Stream: "rows", Field: "file", Handle: 77})
	try(guest.Attachment{Stream: "rows", Field: "file", Handle: 1<<30 + 5})
	try(guest.Attachment{Stream: "rows", Field: "file", Content: strings.NewReader("it is " + run.Secret("plain") + "!")})
	split := append(bytes.Repeat([]byte("."), 256*abi.KiB-4), run.Secret("plain")...)
	try(guest.Attachment{Stream: "rows", Field: "file", Content: bytes.NewReader(split)})
	try(guest.Attachment{Stream: "rows", Field: "file", Name: run.Secret("plain")})
	if err := run.Emit("rows", "refused", row{ID: "refused", Note: strings.Join(notes, ", ")}); err != nil {
		return err
	}
	unknown := &guest.File{Digest: "sha256:" + strings.Repeat("0", 64), Size: 1, MediaType: "text/html"}
	for id, v := range map[string]any{"unknown": unknown, "no-digest": map[string]any{"digest": "../../../etc/passwd"}, "text": "sha256:" + strings.Repeat("0", 64)} {
		if err := run.Emit("rows", id, map[string]any{"id": id, "file": v}); err != nil {
			return err
		}
	}
	return nil
}
