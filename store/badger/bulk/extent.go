package bulk

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

const (
	extentMagic  = 0x53_4c_45_31
	ExtentHeader = 4 + 2 + 4
)

// A Place is the location of an extent's payload, with its checksums.
type Place struct {
	File   uint32
	Offset uint64 // of the extent; the payload follows header and key
	length uint32 // of the payload
	ieee   uint32 // over key and payload
	casta  uint32
}

const PlaceBytes = 4 + 8 + 4 + 4 + 4

func (p Place) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, p.File)
	b = binary.LittleEndian.AppendUint64(b, p.Offset)
	b = binary.LittleEndian.AppendUint32(b, p.length)
	b = binary.LittleEndian.AppendUint32(b, p.ieee)
	return binary.LittleEndian.AppendUint32(b, p.casta)
}

func DecodePlace(b []byte) (Place, bool) {
	if len(b) != PlaceBytes {
		return Place{}, false
	}
	u := binary.LittleEndian.Uint32
	return Place{u(b), binary.LittleEndian.Uint64(b[4:]), u(b[12:]), u(b[16:]), u(b[20:])}, true
}

// Size returns the length of the extent in its file.
func (p Place) Size(key []byte) int64 { return int64(ExtentHeader+len(key)) + int64(p.length) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sums(key, payload []byte) (ieee, casta uint32) {
	return crc32.Update(crc32.ChecksumIEEE(key), crc32.IEEETable, payload),
		crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, payload)
}

// A Chunk is a sequence of extents to be written at the end of a file.
type Chunk struct {
	File   uint32
	Offset uint64 // of the first byte
	Bytes  []byte
}

// Add appends an extent; fill appends its payload.
func (c *Chunk) Add(key []byte, fill func([]byte) []byte) Place {
	was := len(c.Bytes)
	p := Place{File: c.File, Offset: c.Offset + uint64(was)}
	c.Bytes = binary.LittleEndian.AppendUint32(c.Bytes, extentMagic)
	c.Bytes = binary.LittleEndian.AppendUint16(c.Bytes, uint16(len(key)))
	c.Bytes = binary.LittleEndian.AppendUint32(c.Bytes, 0) // the length, below
	c.Bytes = append(c.Bytes, key...)
	body := len(c.Bytes)
	c.Bytes = fill(c.Bytes)
	payload := c.Bytes[body:]
	p.length = uint32(len(payload))
	binary.LittleEndian.PutUint32(c.Bytes[was+6:], p.length)
	p.ieee, p.casta = sums(key, payload)
	return p
}

// Payload returns a copy of the payload of an extent, or false if it is not in the chunk.
func (c *Chunk) Payload(key []byte, p Place) ([]byte, bool) {
	if c.File != p.File || p.Offset < c.Offset || p.Offset >= c.Offset+uint64(len(c.Bytes)) {
		return nil, false
	}
	body := c.Bytes[p.Offset-c.Offset+uint64(ExtentHeader+len(key)):]
	return bytes.Clone(body[:p.length]), true
}

// A File is the engine's accounting of a bulk file.
type File struct {
	Live int64  // bytes of referenced extents
	End  uint64 // bytes written
}

const FileBytes = 8 + 8

func (f File) Append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(f.Live)), f.End)
}

func DecodeFile(b []byte) (File, bool) {
	if len(b) != FileBytes {
		return File{}, false
	}
	return File{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}, true
}

// MostlyGarbage reports whether less than half of the file is referenced.
func (f File) MostlyGarbage() bool { return f.End > 0 && 2*uint64(f.Live) < f.End }

// A Tail is the current end of the bulk files.
type Tail struct {
	File  uint32
	Files map[uint32]File
}

// Wasteful returns a bulk file that is worth compacting.
func (t Tail) Wasteful() (uint32, bool) {
	for n, f := range t.Files {
		if n != t.File && f.Live > 0 && f.MostlyGarbage() {
			return n, true
		}
	}
	return 0, false
}
