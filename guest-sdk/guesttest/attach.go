//go:build !wasip1

package guesttest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// An attachment is a file that arrives in parts.
type attachment struct {
	head    abi.Attach
	content []byte
}

// attach serves the calls attach and attach_part.
func (h *host) attach(call abi.Call, request []byte) ([]byte, error) {
	if v := h.protocol.Step(abi.StepSide); v != nil {
		return nil, h.violate(v)
	}
	if call == abi.CallAttachPart {
		return h.attachPart(request)
	}
	q, err := abi.ParseAttach(slices.Clone(request))
	if err != nil {
		return nil, guest.NewError(abi.EINVAL, "invalid_request", err.Error())
	}
	if !h.manifest.Stream(q.Stream).FileFields()[q.Field] {
		return nil, guest.NewError(abi.EINVAL, "invalid_request",
			q.Field+" of "+q.Stream+" holds no files: its property wants format file and type object or array")
	}
	if q.From != 0 {
		r := h.handles.readers[int32(q.From)]
		if r == nil {
			return nil, guest.NewError(abi.ENOENT, "unknown_handle", "there is no such handle")
		}
		delete(h.handles.readers, int32(q.From))
		if q.Content, err = io.ReadAll(r); err != nil {
			return nil, guest.NewError(abi.EUNAVAIL, "broken_off", err.Error())
		}
	}
	a := &attachment{q, q.Content}
	if !q.More {
		return h.attached(a)
	}
	if len(h.writing) >= abi.MaxOpenAttachments {
		return nil, guest.NewError(abi.ETOOBIG, "too_many_handles", "finish a file first")
	}
	h.written++
	h.writing[h.written] = a
	return json.Marshal(abi.AttachHandle{Handle: h.written})
}

func (h *host) attachPart(request []byte) ([]byte, error) {
	handle, flags, content, err := abi.ParseAttachPart(request)
	if err != nil {
		return nil, guest.NewError(abi.EINVAL, "invalid_request", err.Error())
	}
	a := h.writing[handle]
	if a == nil {
		return nil, guest.NewError(abi.ENOENT, "unknown_handle", "there is no such handle")
	}
	a.content = append(a.content, content...)
	if flags == abi.AttachMore {
		return nil, nil
	}
	delete(h.writing, handle)
	if flags == abi.AttachDrop {
		return nil, nil
	}
	return h.attached(a)
}

// attached keeps the content and returns its reference.
func (h *host) attached(a *attachment) ([]byte, error) {
	sum := sha256.Sum256(a.content)
	kind, _, _ := strings.Cut(http.DetectContentType(a.content), ";")
	f := abi.FileRef{
		Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(a.content)), Name: a.head.Name,
		MediaType: cmp.Or(a.head.MediaType, kind),
	}
	h.result.Files[f.Digest] = bytes.Clone(a.content)
	h.line("ATTACH %s.%s %s %d bytes", a.head.Stream, a.head.Field, f.MediaType, f.Size)
	return json.Marshal(f)
}
