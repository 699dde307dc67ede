package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A record frame, little-endian, without padding:
//
//	frame   'S' 'R'  version u8  flags u8  count u32  record*
//	record  op u8  key kind u8  stream u16  emitted at i64  key length u32  data length u32  key  data
const (
	FrameVersion      = 1
	FrameHeaderSize   = 8
	RecordHeaderSize  = 20
	MaxFrameRecords   = 65_535         // records in a frame
	DefaultFrameBytes = 1<<20 + 64<<10 // bytes of a frame
)

// An Op says what a record does to its key.
type Op uint8

const (
	OpUpsert Op = 0
	OpDelete Op = 1
)

// A KeyKind says how the key of a record is encoded.
type KeyKind uint8

const (
	KeyString   KeyKind = 0 // the text
	KeyCompound KeyKind = 1 // a JSON array of strings without white space
)

// A FrameRecord is one record of a frame. When read from a frame, Key and Data alias it.
type FrameRecord struct {
	Op        Op
	KeyKind   KeyKind
	Stream    uint16 // index in START.scope.streams
	EmittedAt int64  // µs since 1970 UTC; 0 means the host's current time
	Key       []byte
	Data      []byte // one JSON object; may be empty for OpDelete only
}

// A FrameFault is an error in the layout of a frame.
type FrameFault uint8

const (
	FrameHeader   FrameFault = 1 // shorter than the header
	FrameMagic    FrameFault = 2 // does not begin with "SR"
	FrameVersions FrameFault = 3 // unknown version
	FrameFlags    FrameFault = 4 // flags that version 1 does not have
	FrameCount    FrameFault = 5 // more records than allowed, or than fit into its bytes
	FrameRecordAt FrameFault = 6 // ends within the header of a record
	FrameKey      FrameFault = 7 // ends within a key
	FrameData     FrameFault = 8 // ends within data
	FrameTrailing FrameFault = 9 // bytes after the last record
)

var frameFaultNames = [...]string{"none", "header", "magic", "version", "flags", "count", "record",
	"key", "data", "trailing"}

// String returns the name that abi/testdata uses, such as "trailing".
func (f FrameFault) String() string {
	if int(f) < len(frameFaultNames) {
		return frameFaultNames[f]
	}
	return fmt.Sprintf("frame fault(%d)", uint8(f))
}

// A FrameError is reported as frame_malformed.
type FrameError struct {
	Fault  FrameFault
	Record int // index of the record; -1 for the frame's header
	Offset int // of the field at fault
}

func (e *FrameError) Error() string {
	if e.Record < 0 {
		return fmt.Sprintf("malformed frame: %s at byte %d", e.Fault, e.Offset)
	}
	return fmt.Sprintf("malformed frame: %s of record %d at byte %d", e.Fault, e.Record, e.Offset)
}

// A FrameReader reads a frame in place. It checks only the layout; the caller checks the
// values of op, key kind and stream, and keys and data. It is not safe for concurrent use.
type FrameReader struct {
	frame  []byte
	offset int
	count  int
	next   int
	err    error
}

// NewFrameReader checks the header of a frame. The error is a *FrameError.
func NewFrameReader(frame []byte) (FrameReader, error) {
	fault := func(f FrameFault, at int) (FrameReader, error) {
		return FrameReader{}, &FrameError{f, -1, at}
	}
	if len(frame) < FrameHeaderSize {
		return fault(FrameHeader, len(frame))
	}
	if frame[0] != 'S' || frame[1] != 'R' {
		return fault(FrameMagic, 0)
	}
	if frame[2] != FrameVersion {
		return fault(FrameVersions, 2)
	}
	if frame[3] != 0 {
		return fault(FrameFlags, 3)
	}
	count := uint64(binary.LittleEndian.Uint32(frame[4:]))
	if count > MaxFrameRecords || count*RecordHeaderSize > uint64(len(frame)-FrameHeaderSize) {
		return fault(FrameCount, 4)
	}
	return FrameReader{frame: frame, offset: FrameHeaderSize, count: int(count)}, nil
}

// Count returns the number of records that the header announces.
func (r *FrameReader) Count() int { return r.count }

// Next reads the next record into rec. It returns false at the end of the frame and at the
// first error, which Err returns. Records before an error stay valid.
func (r *FrameReader) Next(rec *FrameRecord) bool {
	if r.err != nil {
		return false
	}
	if r.next == r.count {
		if r.offset < len(r.frame) {
			r.err = &FrameError{FrameTrailing, r.next, r.offset}
		}
		return false
	}
	b := r.frame[r.offset:]
	if len(b) < RecordHeaderSize {
		return r.fail(FrameRecordAt, 0)
	}
	key := uint64(binary.LittleEndian.Uint32(b[12:]))
	data := uint64(binary.LittleEndian.Uint32(b[16:]))
	rest := uint64(len(b) - RecordHeaderSize)
	if key > rest {
		return r.fail(FrameKey, 12)
	}
	if data > rest-key {
		return r.fail(FrameData, 16)
	}
	k, end := RecordHeaderSize+int(key), RecordHeaderSize+int(key+data)
	rec.Op = Op(b[0])
	rec.KeyKind = KeyKind(b[1])
	rec.Stream = binary.LittleEndian.Uint16(b[2:])
	rec.EmittedAt = int64(binary.LittleEndian.Uint64(b[4:]))
	rec.Key = b[RecordHeaderSize:k:k]
	rec.Data = b[k:end:end]
	r.offset += end
	r.next++
	return true
}

func (r *FrameReader) fail(f FrameFault, at int) bool {
	r.err = &FrameError{f, r.next, r.offset + at}
	return false
}

// Err returns the error that ended Next, a *FrameError, or nil.
func (r *FrameReader) Err() error { return r.err }

var (
	// ErrFrameFull is returned for a record that needs a new frame.
	ErrFrameFull = errors.New("frame is full")
	// ErrRecordTooLarge is returned for a record that fits into no frame.
	ErrRecordTooLarge = errors.New("record does not fit into a frame")
)

// A FrameWriter builds frames in one buffer that it reuses. The zero value is ready to use,
// with the limits of the contract. It is not safe for concurrent use.
//
//	w.Begin()
//	err := w.Append(&rec)       // or, to encode data in place:
//	buf := w.Open(&rec)
//	err = w.Seal(append(buf, data...))
//	send(w.Finish())
type FrameWriter struct {
	MaxBytes   int // 0 is DefaultFrameBytes
	MaxRecords int // 0, or more than MaxFrameRecords, is MaxFrameRecords

	buf   []byte
	count int
	key   int // length of the open record's key
}

// Begin starts an empty frame and discards the previous one.
func (w *FrameWriter) Begin() {
	w.buf = append(w.buf[:0], 'S', 'R', FrameVersion, 0, 0, 0, 0, 0)
	w.count = 0
}

// Count returns the number of records in the frame.
func (w *FrameWriter) Count() int { return w.count }

// Size returns the length of the frame in bytes, 0 before the first Begin.
func (w *FrameWriter) Size() int { return len(w.buf) }

// Append adds a record, or returns ErrFrameFull or ErrRecordTooLarge and
// leaves the frame as it was.
func (w *FrameWriter) Append(rec *FrameRecord) error {
	if err := w.fits(len(rec.Key) + len(rec.Data)); err != nil {
		return err
	}
	return w.Seal(append(w.Open(rec), rec.Data...))
}

// Open begins a record and returns the buffer to which the caller appends the data;
// rec.Data is ignored. Seal adds the record; a record that is never sealed is simply
// dropped.
func (w *FrameWriter) Open(rec *FrameRecord) []byte {
	if len(w.buf) == 0 {
		w.Begin()
	}
	// One bounds check covers the whole header, because checks are costly in guests.
	at := len(w.buf)
	b := slices.Grow(w.buf, RecordHeaderSize+len(rec.Key))[:at+RecordHeaderSize]
	h := b[at : at+RecordHeaderSize : at+RecordHeaderSize]
	h[0], h[1] = byte(rec.Op), byte(rec.KeyKind)
	binary.LittleEndian.PutUint16(h[2:], rec.Stream)
	binary.LittleEndian.PutUint64(h[4:], uint64(rec.EmittedAt))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(rec.Key)))
	w.key = len(rec.Key)
	return append(b, rec.Key...)
}

// Seal adds the record whose data the caller appended to the buffer that Open returned, or
// returns ErrFrameFull or ErrRecordTooLarge and leaves the frame as it was.
func (w *FrameWriter) Seal(b []byte) error {
	start := len(w.buf)
	body := len(b) - start - RecordHeaderSize
	if w.MaxBytes != 0 || w.MaxRecords != 0 || w.count >= MaxFrameRecords || len(b) > DefaultFrameBytes { // else it fits
		if err := w.fits(body); err != nil {
			return err
		}
	}
	binary.LittleEndian.PutUint32(b[start+16:], uint32(body-w.key))
	w.buf = b
	w.count++
	return nil
}

// fits reports whether a record with body bytes of key and data has room.
func (w *FrameWriter) fits(body int) error {
	limit, records := w.MaxBytes, w.MaxRecords
	if limit <= 0 {
		limit = DefaultFrameBytes
	}
	if records <= 0 || records > MaxFrameRecords {
		records = MaxFrameRecords
	}
	size := int64(RecordHeaderSize) + int64(body)
	if size > int64(limit)-FrameHeaderSize || size > math.MaxUint32 {
		return ErrRecordTooLarge
	}
	if w.count == records || size > int64(limit)-int64(max(len(w.buf), FrameHeaderSize)) {
		return ErrFrameFull
	}
	return nil
}

// Finish returns the frame. It is valid until the next Begin.
func (w *FrameWriter) Finish() []byte {
	if len(w.buf) == 0 {
		w.Begin()
	}
	binary.LittleEndian.PutUint32(w.buf[4:], uint32(w.count))
	return w.buf
}
