package abi

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// Files that records hold, since minor 2. A guest passes a file to the host whole, in
// parts, or as a stream handle whose bytes it never sees, and puts the reference that it
// gets back into a field of a record. Both requests are little-endian, without padding:
//
//	attach       size u32  size bytes of JSON  content         -> FileRef, or AttachHandle with "more"
//	attach_part  handle u32  flags u32  content                -> none, or FileRef with AttachLast
const (
	AttachMore uint32 = 0 // more parts follow
	AttachLast uint32 = 1
	AttachDrop uint32 = 2 // discard the file
)

// FileFormat is the format of a property that holds files: one if its type is object, a
// list if it is array.
const FileFormat = "file"

// Bounds of files.
const (
	MaxMediaType       = 127
	MaxFilesOfRecord   = 100
	MaxOpenAttachments = 8
)

type Attach struct {
	Stream    string `json:"stream"`
	Field     string `json:"field"`
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	From      uint32 `json:"from,omitempty"` // stream handle; 0 means Content
	More      bool   `json:"more,omitempty"` // Content is only the beginning
	Content   []byte `json:"-"`
}

// A FileRef represents a file in a record. Only the digest counts; the host replaces the
// other members.
type FileRef struct {
	Digest    string `json:"digest"` // sha256:…
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	Name      string `json:"name,omitempty"`
}

// An AttachHandle is the reply of attach for a file that is sent in parts.
type AttachHandle struct {
	Handle uint32 `json:"handle"`
}

var errAttach = errors.New(
	"malformed request: want a size, so many bytes of JSON with stream and field, and the content")

// ParseAttach decodes the request of attach. Content shares memory with b.
func ParseAttach(b []byte) (Attach, error) {
	var a Attach
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return a, errAttach
	}
	n := binary.LittleEndian.Uint32(b)
	v, err := strictjson.Parse(b[4:4+n], strictjson.ParseOptions{})
	if err != nil || !v.Is(strictjson.KindObject) {
		return a, errAttach
	}
	a.Content = b[4+n:]
	for name, m := range v.Members() {
		ok := true
		switch name {
		case "stream":
			a.Stream, ok = m.Text()
		case "field":
			a.Field, ok = m.Text()
		case "name":
			a.Name, ok = m.Text()
		case "media_type":
			a.MediaType, ok = m.Text()
		case "from":
			var h int64
			h, ok = m.SafeInteger()
			ok = ok && h >= 1 && h < 1<<31
			a.From = uint32(h)
		case "more":
			a.More, ok = m.Bool()
		}
		if !ok {
			return a, errAttach
		}
	}
	if a.Stream == "" || a.Field == "" || a.From != 0 && (a.More || len(a.Content) > 0) {
		return a, errAttach
	}
	return a, nil
}

// ParseAttachPart decodes the request of attach_part. The content shares memory with b.
func ParseAttachPart(b []byte) (handle, flags uint32, content []byte, err error) {
	if len(b) < 8 || binary.LittleEndian.Uint32(b[4:]) > AttachDrop {
		return 0, 0, nil, errors.New("malformed request: want a handle, flags and the content")
	}
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), b[8:], nil
}

// AppendAttach appends the request of attach: its JSON, then the content.
func AppendAttach(b, json, content []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(json)))
	return append(append(b, json...), content...)
}

// AppendAttachPart appends the request of attach_part.
func AppendAttachPart(b []byte, handle, flags uint32, content []byte) []byte {
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, handle), flags)
	return append(b, content...)
}

// HoldsFiles reports whether a property holds files.
func (p Property) HoldsFiles() bool {
	return p.Format == FileFormat &&
		slices.ContainsFunc(p.Types, func(t string) bool { return t == "object" || t == "array" })
}

// FileFields returns the properties of a stream that hold files, nil if there are none.
func (s StreamSpec) FileFields() map[string]bool {
	var out map[string]bool
	for name, p := range s.Properties {
		if p.HoldsFiles() {
			if out == nil {
				out = map[string]bool{}
			}
			out[name] = true
		}
	}
	return out
}
