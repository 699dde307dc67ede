package guest

import (
	"strconv"
	"time"
	"unsafe"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// A frame is sent when it reaches either size.
const (
	frameBytes   = 64 * abi.KiB
	frameRecords = 1000
)

// Emit sends one record. v is a struct, a pointer to one, a map, JSON as json.RawMessage,
// or a *Record, and must encode to a JSON object. Structs and maps are encoded as by
// encoding/json. v may be reused when Emit returns. The record reaches the host with the
// next full frame or before the next other call.
//
// Members that the scope does not grant are left out (see Connector.Verbatim).
//
// ErrNotInScope, ErrKey, ErrTooLarge, ErrNotObject and encoding errors concern only this
// record; after an *Error the run is over.
func (r *Run) Emit(stream, key string, v any) error {
	return r.emit(stream, key, abi.KeyString, 0, v)
}

// A Record builds the data of one record member by member, for data without a struct. It is
// as fast as a struct and does not allocate once its buffer has grown:
//
//	rec := run.Record("messages")
//	for _, m := range page {
//		err := rec.Reset().String("id", m.ID).Int("size", m.Size).Emit(m.ID)
//		…
//	}
type Record = encode.Record

// NewRecord returns an empty record to pass to Run.Emit.
func NewRecord() *Record { return encode.NewRecord("", nil) }

// Record returns an empty record for a stream, to be sent with its own Emit.
func (r *Run) Record(stream string) *Record { return encode.NewRecord(stream, r.Emit) }

// EmitAt is Emit with an explicit time of emission.
func (r *Run) EmitAt(stream, key string, v any, at time.Time) error {
	return r.emit(stream, key, abi.KeyString, at.UnixMicro(), v)
}

// EmitKey is Emit with a compound key: at most 16 strings, none of them empty.
func (r *Run) EmitKey(stream string, key []string, v any) error {
	return r.emitKey(stream, key, 0, v)
}

// EmitKeyAt is EmitKey with an explicit time of emission.
func (r *Run) EmitKeyAt(stream string, key []string, v any, at time.Time) error {
	return r.emitKey(stream, key, at.UnixMicro(), v)
}

// Delete sends the deletion of a record.
func (r *Run) Delete(stream, key string) error {
	return r.emit(stream, key, abi.KeyString, 0, deletion{})
}

// DeleteKey is Delete with a compound key.
func (r *Run) DeleteKey(stream string, key []string) error {
	return r.emitKey(stream, key, 0, deletion{})
}

func (r *Run) emitKey(stream string, key []string, at int64, v any) error {
	k, err := compoundKey(key)
	if err != nil {
		return err
	}
	return r.emit(stream, k, abi.KeyCompound, at, v)
}

// deletion is the value of a record that is deleted.
type deletion struct{}

// Flush sends the records emitted so far. Every call other than Emit does this first.
func (r *Run) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flush()
}

// Emitted returns the number of records emitted, deletions included.
func (r *Run) Emitted() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.emitted
}

func (r *Run) emit(stream, key string, kind abi.KeyKind, at int64, v any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fatal != nil {
		return r.fatal
	}
	o := r.last
	if len(stream) != len(r.lastName) || unsafe.StringData(stream) != unsafe.StringData(r.lastName) || o == nil {
		if o = r.outlet(stream); o == nil {
			return &streamError{stream, r.start.Scope.Streams}
		}
	}
	if uint(len(key)-1) >= abi.MaxKeyBytes {
		return ErrKey
	}
	rec := abi.FrameRecord{KeyKind: kind, Stream: o.index, EmittedAt: at,
		Key: unsafe.Slice(unsafe.StringData(key), len(key))}
	if _, ok := v.(deletion); ok {
		rec.Op = abi.OpDelete
	}
	buf := r.frame.Open(&rec)
	start := len(buf)
	if rec.Op == abi.OpUpsert {
		var err error
		if buf, err = o.encoder.Append(buf, v); err != nil {
			return err
		}
	}
	if len(buf)-start > abi.MiB {
		return ErrTooLarge
	}
	if err := r.frame.Seal(buf); err != nil {
		rec.Data = buf[start:] // lies behind the frame, which is sent first
		if err = r.flushAndAppend(&rec, err); err != nil {
			return err
		}
	}
	r.emitted++
	if r.frame.Size() >= frameBytes || r.frame.Count() >= frameRecords {
		return r.flush()
	}
	return nil
}

// flushAndAppend sends the frame and puts a record that did not fit into the next one.
func (r *Run) flushAndAppend(rec *abi.FrameRecord, err error) error {
	if err != abi.ErrFrameFull {
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.frame.Append(rec)
}

// flush sends the frame unless it is empty. The caller holds the lock.
func (r *Run) flush() error {
	if r.frame.Count() == 0 {
		return r.fatal
	}
	if r.fatal != nil {
		return r.fatal
	}
	err := r.port.emit(r.frame.Finish())
	r.frame.Begin()
	return r.checkFatal(err)
}

// compoundKey returns the canonical form of a compound key.
func compoundKey(parts []string) (string, error) {
	if len(parts) == 0 || len(parts) > abi.MaxKeyParts {
		return "", ErrKey
	}
	b := []byte{'['}
	for i, p := range parts {
		if p == "" {
			return "", ErrKey
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendQuote(b, p)
	}
	return string(append(b, ']')), nil
}

// A streamError is ErrNotInScope with the stream's name and the streams in scope.
type streamError struct {
	stream string
	scope  []abi.ScopeStream
}

func (e *streamError) Error() string {
	names := ""
	for i, s := range e.scope {
		if i == maxNamed {
			names += ", …"
			break
		}
		if i > 0 {
			names += ", "
		}
		names += s.Name
	}
	return ErrNotInScope.Error() + ": " + strconv.Quote(e.stream) + "; this run has " + names
}

// maxNamed is the most streams that an error lists.
const maxNamed = 20

func (e *streamError) Unwrap() error { return ErrNotInScope }
