package badger

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

const (
	extentMagic  = 0x53_4c_45_31
	extentHeader = 4 + 2 + 4
)

// A place is where an extent's payload is and what it sums to.
type place struct {
	file   uint32
	offset uint64 // of the extent; the payload follows header and key
	length uint32 // of the payload
	ieee   uint32 // over key and payload
	casta  uint32
}

const placeBytes = 4 + 8 + 4 + 4 + 4

func (p place) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, p.file)
	b = binary.LittleEndian.AppendUint64(b, p.offset)
	b = binary.LittleEndian.AppendUint32(b, p.length)
	b = binary.LittleEndian.AppendUint32(b, p.ieee)
	return binary.LittleEndian.AppendUint32(b, p.casta)
}

func decodePlace(b []byte) (place, bool) {
	if len(b) != placeBytes {
		return place{}, false
	}
	u := binary.LittleEndian.Uint32
	return place{u(b), binary.LittleEndian.Uint64(b[4:]), u(b[12:]), u(b[16:]), u(b[20:])}, true
}

// size is what the extent takes in its file.
func (p place) size(key []byte) int64 { return int64(extentHeader+len(key)) + int64(p.length) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sums(key, payload []byte) (ieee, casta uint32) {
	return crc32.Update(crc32.ChecksumIEEE(key), crc32.IEEETable, payload),
		crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, payload)
}

// A chunk is extents on their way to the end of a file.
type chunk struct {
	file   uint32
	offset uint64 // of the first byte
	bytes  []byte
}

// add appends an extent whose payload fill appends.
func (c *chunk) add(key []byte, fill func([]byte) []byte) place {
	was := len(c.bytes)
	p := place{file: c.file, offset: c.offset + uint64(was)}
	c.bytes = binary.LittleEndian.AppendUint32(c.bytes, extentMagic)
	c.bytes = binary.LittleEndian.AppendUint16(c.bytes, uint16(len(key)))
	c.bytes = binary.LittleEndian.AppendUint32(c.bytes, 0) // the length, below
	c.bytes = append(c.bytes, key...)
	body := len(c.bytes)
	c.bytes = fill(c.bytes)
	payload := c.bytes[body:]
	p.length = uint32(len(payload))
	binary.LittleEndian.PutUint32(c.bytes[was+6:], p.length)
	p.ieee, p.casta = sums(key, payload)
	return p
}

// payload returns a copy of the payload of an extent; false when it is not in
// the chunk.
func (c *chunk) payload(key []byte, p place) ([]byte, bool) {
	if c.file != p.file || p.offset < c.offset || p.offset >= c.offset+uint64(len(c.bytes)) {
		return nil, false
	}
	body := c.bytes[p.offset-c.offset+uint64(extentHeader+len(key)):]
	return bytes.Clone(body[:p.length]), true
}
