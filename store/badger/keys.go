package badger

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/sluicehost/sluice/store"
)

// Key kinds: the first byte of every key. Only append; changing the meaning of a kind makes a new format.
const (
	kindChain        = 'A' // the chain's head and the format
	kindNumber       = 'B' // head of the commit chain, and the format
	kindConnector    = 'C' // bundled, id
	kindConnection   = 'D' // id
	kindLease        = 'E' // connection
	kindFence        = 'F' // connection: last fence handed out
	kindRun          = 'G' // run id
	kindRunHead      = 'H' // run id: next sequence, ended
	kindRunOf        = 'I' // connection, run id
	kindEvent        = 'J' // run id, sequence
	kindPending      = 'K' // run id, interaction id
	kindStaged       = 'L' // run id, stream
	kindState        = 'M' // connection, grant, stream
	kindGap          = 'N' // connection, grant, identity
	kindCounters     = 'O' // connection, stream
	kindLayout       = 'P' // stream number
	kindSegment      = 'Q' // stream number, first version
	kindPage         = 'R' // stream number, index run, page
	kindFilter       = 'S' // stream number, index run, part
	kindDeadList     = 'T' // stream number, first version of the commit
	kindDeadChunk    = 'U' // stream number, chunk
	kindFile         = 'V' // bulk file
	kindPin          = 'W' // connector id
	kindDocument     = 'X' // kind, id
	kindErase        = 'Y' // kind and id of what is being erased: connection, stream or run
	kindChunk        = 'Z' // commit sequence, part of a long value
	kindDue          = 'a' // expiry of a document, its kind, its id
	kindHeld         = 'b' // connection, stream, record key: the files of a record
	kindFileOf       = 'c' // connection, digest: how many records refer to a content
	kindContent      = 'd' // connection, digest: a short content
	kindLocation     = 'e' // connection, digest: where a long content is; in an image, its pieces
	kindUsage        = 'f' // connection: number of contents and their bytes
	kindUnreferenced = 'g' // connection, digest: content of a run in progress that no record refers to
	kindJournal      = 'h' // run id, number: part of the run's journal; not in images
)

// key joins a kind and parts. Every part but the last is length-prefixed, so one name cannot pass for two. The last
// part is bare, so that keys sort by it.
func key(kind byte, parts ...string) []byte {
	n := 1
	for _, p := range parts {
		n += 2 + len(p)
	}
	k := append(make([]byte, 0, n), kind)
	for i, p := range parts {
		if i < len(parts)-1 {
			k = binary.BigEndian.AppendUint16(k, uint16(len(p)))
		}
		k = append(k, p...)
	}
	return k
}

// numbered returns a key of big-endian numbers, by which keys sort.
func numbered(kind byte, numbers ...uint64) []byte {
	k := append(make([]byte, 0, 1+8*len(numbers)), kind)
	for _, n := range numbers {
		k = binary.BigEndian.AppendUint64(k, n)
	}
	return k
}

// lastNumber returns the number at the end of k, which is a key from numbered.
func lastNumber(k []byte) uint64 {
	if len(k) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k[len(k)-8:])
}

// lastPart returns the last part of a key of two parts.
func lastPart(k []byte) string {
	if len(k) < 3 {
		return ""
	}
	return string(k[min(len(k), 3+int(binary.BigEndian.Uint16(k[1:]))):])
}

func eventKey(id store.RunID, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(key(kindEvent, string(id), ""), sequence)
}

func journalKey(id store.RunID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(key(kindJournal, string(id), ""), n)
}

func connectorKey(id store.ConnectorID, bundled bool) []byte {
	flag := "\x00"
	if bundled {
		flag = "\x01"
	}
	return key(kindConnector, flag, string(id))
}

func stateKey(c store.ConnectionID, g store.GrantID, s store.Stream) []byte {
	return key(kindState, string(c), string(g), string(s))
}

// A stored value consists of
//
//	form u8  payload  CRC-32 over key, form and payload
//
// The engine checksums its blocks with another polynomial, so damage that one check misses is unlikely to escape both.
// Because the sum covers the key, a value stored under a wrong key is detected.
const (
	formPlain  = 0 // the payload is the value
	formChunks = 1 // the payload is u32 length, u64 id of the first chunk key: chunks hold the value
	formExtent = 2 // the payload is a place: a bulk file holds the value
)

// chunkBytes is the size of the parts of a long value. Earlier versions split values that are bulk now; such values are
// still read and removed.
const chunkBytes = 512 << 10

const sealBytes = 5

var errBadValue = errors.New("value does not match its checksum")

// newValue starts a value, to which the caller appends size bytes of payload.
func newValue(size int) []byte {
	return append(make([]byte, 0, size+sealBytes), formPlain)
}

// seal completes a value started with newValue.
func seal(key, value []byte) []byte {
	return binary.LittleEndian.AppendUint32(value, checksum(key, value))
}

// unseal verifies a stored value and returns its form and payload.
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
