package abi

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// RecordMessage is a RECORD; in the ABI, one record of a frame. Key, Data and Members alias
// the bytes that were read.
type RecordMessage struct {
	Stream    int // index in START.scope.streams
	Delete    bool
	Compound  bool
	Key       []byte // canonical
	Data      []byte // one JSON object; empty only for a delete
	EmittedAt int64  // µs since 1970 UTC; 0 means the host's current time
	Members   []strictjson.Member
	// Rejected is RejectedText for a record with a string that is not valid text, and
	// RejectedAt is the member that holds it, or "" for the key. Such a record counts as
	// emitted but is never stored.
	Rejected   string
	RejectedAt string
}

// Type returns RECORD.
func (*RecordMessage) Type() string { return recordKind.name }
func (*RecordMessage) message()     {}

var recordKind = kind{
	name: "RECORD",
	step: StepMessage,
	call: CallEmit,
	faults: []fault{
		{VRecordFieldsOutsideScope, "has a member that the scope does not grant"},
		{VRecordForUndeclaredStream, "named a stream that is not in scope"},
		{VRecordInvalidData, "has data that is not an object"},
		{VRecordInvalidEmittedAt, "needs an emitted_at text"},
		{VRecordInvalidKey, "needs a key: a text or a list of texts, none empty"},
		{VRecordInvalidOp, "has an unknown op"},
		{VRecordKeyTooLong, "has a key over the limit"},
		{VRecordOutsideResources, "is not one of the granted resources"},
		{VRecordOutsideTimeRange, "is outside of the granted time range"},
		{VRecordTooLarge, "has data over the limit"},
	},
}

const (
	VRecordFieldsOutsideScope  Subtype = "record_fields_outside_scope"
	VRecordForUndeclaredStream Subtype = "record_for_undeclared_stream"
	VRecordInvalidData         Subtype = "record_invalid_data"
	VRecordInvalidEmittedAt    Subtype = "record_invalid_emitted_at"
	VRecordInvalidKey          Subtype = "record_invalid_key"
	VRecordInvalidOp           Subtype = "record_invalid_op"
	VRecordKeyTooLong          Subtype = "record_key_too_long"
	VRecordOutsideResources    Subtype = "record_outside_resources"
	VRecordOutsideTimeRange    Subtype = "record_outside_time_range"
	VRecordTooLarge            Subtype = "record_too_large"
)

// RejectedText is the code of a record with an escape of NUL or of half a surrogate pair.
// Only that record is rejected.
const RejectedText = "invalid_record_text"

// Frame checks the header of a record frame and the phase, and returns the reader of its
// records, which the caller passes to Record.
func (p *Protocol) Frame(frame []byte) (FrameReader, *Violation) {
	if len(frame) > p.Limits.FrameBytes {
		return FrameReader{}, p.Fault(VFrameTooLarge, "RECORD", "")
	}
	fr, err := NewFrameReader(frame)
	if err == nil && fr.Count() > p.Limits.FrameRecords {
		err = &FrameError{FrameCount, -1, 4}
	}
	if err != nil {
		return FrameReader{}, p.Fault(VFrameMalformed, "RECORD", err.Error())
	}
	if v := p.step(StepMessage, "RECORD"); v != nil {
		return FrameReader{}, p.fail(v)
	}
	return fr, nil
}

// FrameFault returns the violation for an error of a FrameReader.
func (p *Protocol) FrameFault(err error) *Violation {
	return p.Fault(VFrameMalformed, "RECORD", err.Error())
}

// Record checks one record of a frame. The message is valid until the next call.
func (p *Protocol) Record(rec *FrameRecord) (*RecordMessage, *Violation) {
	m := &p.record
	*m = RecordMessage{Stream: int(rec.Stream), Delete: rec.Op == OpDelete, Compound: rec.KeyKind == KeyCompound,
		Key: rec.Key, Data: rec.Data, EmittedAt: rec.EmittedAt}
	p.tooManyValues = false
	if !utf8.Valid(rec.Key) {
		return nil, p.recordFault(VFrameInvalidUtf8, "key")
	}
	if bytes.IndexByte(rec.Key, 0) >= 0 {
		m.Rejected = RejectedText // as in the JSON of a line
	}
	object := m.Delete
	if len(rec.Data) > 0 {
		var bad *Violation
		if object, bad = p.members(m); bad != nil {
			return nil, bad
		}
	}
	if bad := p.checkRecordLimit(); bad != nil {
		return nil, bad
	}
	if bad := p.frameKey(rec); bad != "" {
		return nil, p.recordFault(bad, "key")
	}
	if rec.Op > OpDelete {
		return nil, p.recordFault(VRecordInvalidOp, "op")
	}
	if !object {
		return nil, p.recordFault(VRecordInvalidData, "data")
	}
	if m.Stream >= len(p.names) {
		v := &Violation{Subtype: VRecordForUndeclaredStream, MessageType: "RECORD",
			Received: "stream index " + itoa(int64(m.Stream)), Expected: slices.Clone(p.names)}
		return nil, p.fail(v.Bound())
	}
	return p.admit(m)
}

// checkRecordLimit enforces the limit of records per run, which comes before the other
// checks of a message.
func (p *Protocol) checkRecordLimit() *Violation {
	if max := p.Limits.RecordsPerRun; max > 0 && p.records >= max {
		return p.fail(&Violation{Subtype: VMessageLimitExceeded, MessageType: "RECORD", Detail: "limit " + itoa(max)})
	}
	return nil
}

// members scans m.Data, keeps its top-level members and reports whether it is an object.
// Malformed JSON is a violation before all other checks.
func (p *Protocol) members(m *RecordMessage) (object bool, bad *Violation) {
	members, err := p.data.Object(m.Data)
	sub := Subtype("")
	if err != nil {
		sub = faultSubtype(err)
	}
	p.tooManyValues = sub == VRecordTooLarge
	if err == nil || p.tooManyValues {
		m.Members = members
		if p.data.Misspelt != nil {
			m.Rejected, m.RejectedAt = RejectedText, p.misspelt(members)
		}
		return true, nil
	}
	if sub == VFrameNotObject {
		return false, nil
	}
	v := p.recordFault(sub, "data")
	v.Detail = err.Error()
	return false, v
}

// misspelt returns the member whose value holds a string that is not valid text.
func (p *Protocol) misspelt(members []strictjson.Member) string {
	for _, m := range members {
		if _, err := p.scan.Valid(m.Value); err != nil {
			return string(m.Name)
		}
	}
	return ""
}

func (p *Protocol) frameKey(rec *FrameRecord) Subtype {
	if len(rec.Key) == 0 || rec.KeyKind > KeyCompound {
		return VRecordInvalidKey
	}
	if rec.KeyKind == KeyCompound {
		// The frame's key must already be canonical, so the key is what is stored.
		if kind, err := p.line.Valid(rec.Key); err != nil || kind != strictjson.KindArray {
			return VRecordInvalidKey
		}
		if p.line.Misspelt != nil {
			p.record.Rejected = RejectedText
		}
		key, parts, ok := CanonicalKey(p.key[:0], rec.Key)
		p.key = key
		if !ok || parts == 0 || p.record.Rejected == "" && !bytes.Equal(key, rec.Key) {
			return VRecordInvalidKey
		}
		if parts > MaxKeyParts {
			return VRecordKeyTooLong
		}
	}
	if len(rec.Key) > MaxKeyBytes {
		return VRecordKeyTooLong
	}
	return ""
}

// recordLine checks a RECORD that arrived as a stdio line.
func (p *Protocol) recordLine(members []strictjson.Member) (Message, *Violation) {
	if v := p.step(StepMessage, "RECORD"); v != nil {
		return nil, p.fail(v)
	}
	if bad := p.checkRecordLimit(); bad != nil {
		return nil, bad
	}
	m := &p.record
	*m, p.tooManyValues = RecordMessage{Stream: -1}, false
	if p.line.Misspelt != nil {
		m.Rejected = RejectedText
	}
	var key, op, data, emitted, stream strictjson.Member
	for _, f := range members {
		switch string(f.Name) {
		case "key":
			key = f
		case "op":
			op = f
		case "data":
			data = f
		case "emitted_at":
			emitted = f
		case "stream":
			stream = f
		}
	}
	name := ""
	if stream.Kind == strictjson.KindString {
		name = strictjson.String(stream.Value)
		if i, ok := p.streams[name]; ok {
			m.Stream = i
		}
	}
	if bad := p.lineKey(m, key); bad != "" {
		return nil, p.recordFault(bad, "key")
	}
	if bad := lineOp(m, op); bad {
		return nil, p.recordFault(VRecordInvalidOp, "op")
	}
	if bad := p.lineData(m, data); bad != nil {
		return nil, bad
	}
	if emitted.Kind != strictjson.KindString || len(emitted.Value) <= 2 {
		return nil, p.recordFault(VRecordInvalidEmittedAt, "emitted_at")
	}
	m.EmittedAt, _ = TimeOf(emitted.Value)
	switch {
	case len(name) > MaxStreamName:
		v := p.recordFault(VFieldLimitExceeded, "stream")
		v.Detail = "limit " + itoa(MaxStreamName)
		return nil, v
	case m.Stream < 0:
		v := &Violation{Subtype: VRecordForUndeclaredStream, MessageType: "RECORD", Stream: name, Received: name,
			Expected: slices.Clone(p.names)}
		return nil, p.fail(v.Bound())
	}
	out, v := p.admit(m)
	if v != nil {
		return nil, v
	}
	return out, nil
}

func (p *Protocol) lineKey(m *RecordMessage, key strictjson.Member) Subtype {
	if key.Kind != strictjson.KindString && key.Kind != strictjson.KindArray {
		return VRecordInvalidKey
	}
	k, parts, ok := CanonicalKey(p.key[:0], key.Value)
	p.key = k
	if !ok || len(k) == 0 || key.Kind == strictjson.KindArray && parts == 0 {
		return VRecordInvalidKey
	}
	if len(k) > MaxKeyBytes || parts > MaxKeyParts {
		return VRecordKeyTooLong
	}
	m.Key, m.Compound = k, key.Kind == strictjson.KindArray
	return ""
}

func lineOp(m *RecordMessage, op strictjson.Member) (bad bool) {
	if op.Value == nil || op.Kind == strictjson.KindNull {
		return false
	}
	v := op.Tree()
	m.Delete = v.Equal("delete")
	return !m.Delete && !v.Equal("upsert")
}

func (p *Protocol) lineData(m *RecordMessage, data strictjson.Member) *Violation {
	if data.Value == nil || data.Kind == strictjson.KindNull {
		if m.Delete {
			return nil
		}
		return p.recordFault(VRecordInvalidData, "data")
	}
	if data.Kind != strictjson.KindObject {
		return p.recordFault(VRecordInvalidData, "data")
	}
	m.Data = data.Value
	_, bad := p.members(m)
	return bad
}

// admit makes the remaining checks of a record whose shape, key and stream are valid.
func (p *Protocol) admit(m *RecordMessage) (*RecordMessage, *Violation) {
	if p.Contract.Records != nil {
		if v := p.Contract.Records.Admit(m); v != nil {
			v.MessageType, v.Stream = "RECORD", p.names[m.Stream]
			return nil, p.fail(v.Bound())
		}
	}
	if len(m.Data) > p.Limits.RecordBytes || p.tooManyValues {
		v := p.recordFault(VRecordTooLarge, "data")
		v.Detail = "limits: " + itoa(int64(p.Limits.RecordBytes)) + " bytes, " + itoa(MaxRecordValues) + " values"
		return nil, v
	}
	if p.Contract.Protected != nil {
		if v := p.Contract.Protected(m); v != nil {
			v.MessageType, v.Stream = "RECORD", p.names[m.Stream]
			return nil, p.fail(v.Bound())
		}
	}
	p.records++
	return m, nil
}

// recordFault returns a violation by p.record, with its stream if that is in scope.
func (p *Protocol) recordFault(s Subtype, field string) *Violation {
	v := &Violation{Subtype: s, MessageType: "RECORD", Field: field}
	if i := p.record.Stream; i >= 0 && i < len(p.names) {
		v.Stream = p.names[i]
	}
	return p.fail(v.Bound())
}
