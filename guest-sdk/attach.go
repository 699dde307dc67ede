package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/sluicehost/sluice/abi"
)

// A File represents an attached file in a record. Put it into a field of type object whose
// property has "format": "file", or a list of Files into one of type array. The host sets
// digest, size and media type; Name may be changed.
type File = abi.FileRef

// An Attachment is a file for a record.
type Attachment struct {
	Stream, Field string
	Name          string // the last path element, shown to people; may be ""
	MediaType     string // such as application/pdf; "" is detected from the first bytes
	// Content is read to its end. An unread body of a Response, or of a response of package
	// guesthttp, is stored within the host instead and does not pass through the connector.
	Content io.Reader
	// Handle is a stream handle to use instead of Content, such as that of a Download or a
	// Picture. The host takes it over.
	Handle int32
}

// attachPart is how much content one call carries, in bytes. Shorter content takes one
// call.
const attachPart = 256 * abi.KiB

// parts are buffers for content. A small file would otherwise cost the collector a whole one.
var parts = sync.Pool{New: func() any { return new([attachPart]byte) }}

// Attach passes a file to the host and returns its File for a record, or nil, without
// reading anything, if the scope does not grant the field. The host drops a file that no
// record holds at the end of the run. Errors other than EPROTO and ECANCELED do not end the
// run: ETOOBIG and ENOSPC are quotas, EDENIED means that the content has a secret in it,
// ENOTSUP that the host keeps no files.
func (r *Run) Attach(a Attachment) (*File, error) {
	f, ok := r.Filter(a.Stream)
	if !ok {
		return nil, ErrNotInScope
	}
	if !f.Wants(a.Field) {
		return nil, r.discard(a)
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

// discard closes the handle of an attachment that is not wanted.
func (r *Run) discard(a Attachment) error {
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
	part := parts.Get().(*[attachPart]byte)
	defer parts.Put(part)
	buf := part[:]
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
	return r.attachRemaining(open.Handle, from, buf)
}

func (r *Run) attachRemaining(handle uint32, from io.Reader, buf []byte) (*File, error) {
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
