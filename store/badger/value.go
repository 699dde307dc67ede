package badger

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A stored value is drawn as
//
//	form u8  payload  CRC-32 over key, form and payload
//
// The engine checks its blocks with another polynomial, so what slips through
// one check does not slip through the other. Binding the key to the sum
// uncovers a value that turns up under a key it was not written for (S123).
const (
	formPlain  = 0 // the payload is the value
	formChunks = 1 // the payload is u32 length, u64 commit and first part: chunk keys hold the value
	formExtent = 2 // the payload is a place: a bulk file holds the value
)

// chunkBytes is the size above which a value is split over several keys, so
// that none reaches the engine's value log (S117).
const chunkBytes = 512 << 10

const sealBytes = 5

var errBadValue = errors.New("value does not match its checksum")

// open a value for writing: the payload is appended to what it returns.
func newValue(size int) []byte {
	return append(make([]byte, 0, size+sealBytes), formPlain)
}

// seal closes a value made with newValue.
func seal(key, value []byte) []byte {
	return binary.LittleEndian.AppendUint32(value, checksum(key, value))
}

// unseal checks a stored value and returns its form and payload.
func unseal(key, value []byte) (form byte, payload []byte, err error) {
	if len(value) < sealBytes {
		return 0, nil, errBadValue
	}
	body, sum := value[:len(value)-4], binary.LittleEndian.Uint32(value[len(value)-4:])
	if checksum(key, body) != sum || body[0] > formExtent {
		return 0, nil, errBadValue
	}
	return body[0], body[1:], nil
}

func checksum(key, body []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(key), crc32.IEEETable, body)
}
