package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/sluicehost/sluice/abi"
)

// A File stands for an attached file in a record: put it into a field whose property has
// "format": "file", of type object, or a list of them into one of type array. The host writes
// digest, size and media type itself; Name may be changed.
type File = abi.FileRef

// An Attachment is a file for a record of a stream.
type Attachment struct {
	Stream, Field string
	Name          string // for who looks at it: its last path element; may be ""
	MediaType     string // such as application/pdf; "" for what its first bytes show
	// Content is read to its end. The body of a Response, or of one of package guesthttp, that was not
	// read goes to the store within the host.
	Content io.Reader
	// Handle is, instead of Content, a stream handle: of a Download or a picture of the
	// browser. The host takes it over.
	Handle int32
}

// attachPart is how much of a content one call carries. What is shorter takes one call.
const attachPart = 256 * abi.KiB

// Attach gives a file to the host and returns what stands for it in a record; nil, without
// reading anything, where the scope does not grant the field. A file that no record holds by
// the end of the run is dropped. After an error the run goes on, unless it is EPROTO or
// ECANCELED: ETOOBIG and ENOSPC are quotas, EDENIED is a content with a secret in it, ENOTSUP
// a host that keeps no files.
func (r *Run) Attach(a Attachment) (*File, error) {
	f, ok := r.Filter(a.Stream)
	if !ok {
		return nil, ErrNotInScope
	}
	if !f.Wants(a.Field) {
		return nil, r.drop(a)
	}
	head := abi.Attach{Stream: a.Stream, Field: a.Field, Name: a.Name, MediaType: a.MediaType, From: uint32(a.Handle)}
	if a.Handle != 0 {
		return r.attach(head, nil)
	}
	if body, ok := a.Content.(interface{ TakeHandle() (int32, bool) }); ok {
		if handle, ok := body.TakeHandle(); ok {
			head.From = uint32(handle)
			return r.attach(head, nil)
		}
	}
	return r.attachContent(head, a.Content)
}

// drop gives back what is not wanted.
func (r *Run) drop(a Attachment) error {
	if a.Handle != 0 {
		return r.CloseHandle(a.Handle)
	}
	return nil
}

func (r *Run) attach(head abi.Attach, content []byte) (*File, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	reply, err := r.call(r.port.attach, abi.AppendAttach(make([]byte, 0, 4+len(text)+len(content)), text, content))
	return fileOf(reply, err)
}

func fileOf(reply []byte, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	f := &File{}
	return f, json.Unmarshal(reply, f)
}

func (r *Run) attachContent(head abi.Attach, from io.Reader) (*File, error) {
	if from == nil {
		from = bytes.NewReader(nil)
	}
	buf := make([]byte, attachPart)
	n, err := io.ReadFull(from, buf)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.attach(head, buf[:n])
	case err != nil:
		return nil, err
	}
	head.More = true
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	reply, err := r.call(r.port.attach, abi.AppendAttach(nil, text, buf))
	if err != nil {
		return nil, err
	}
	var open abi.AttachHandle
	if err := json.Unmarshal(reply, &open); err != nil {
		return nil, err
	}
	return r.attachRest(open.Handle, from, buf)
}

func (r *Run) attachRest(handle uint32, from io.Reader, buf []byte) (*File, error) {
	request := make([]byte, 0, 8+len(buf))
	for {
		n, err := io.ReadFull(from, buf)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case last:
			return fileOf(r.call(r.port.attachPart, abi.AppendAttachPart(request, handle, abi.AttachLast, buf[:n])))
		case err != nil:
			_, dropped := r.call(r.port.attachPart, abi.AppendAttachPart(request, handle, abi.AttachDrop, nil))
			return nil, errors.Join(err, dropped)
		}
		if _, err := r.call(r.port.attachPart, abi.AppendAttachPart(request, handle, abi.AttachMore, buf)); err != nil {
			return nil, err
		}
	}
}
