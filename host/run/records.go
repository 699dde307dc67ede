package run

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// records holds what was admitted and not flushed yet, one buffer per stream,
// and the counts of R80 and R51.
type records struct {
	*parts
	buffers  []buffer
	order    []int // streams with a buffer, by first buffered record
	buffered int   // bytes in all buffers
	perRun   recordCounts
	// submitted is what accepted will be once all pending flushes are durable.
	submitted int64
	free      []*store.Batch
	freeBytes int // that free holds on to
}

// recordCounts are those of the whole run.
type recordCounts struct{ attempted, accepted, rejected, dropped int64 }

// open is how many are neither stored nor refused for good.
func (n recordCounts) open() int64 { return n.attempted - n.accepted - n.rejected }

func (rs *records) counts() recordCounts { return rs.perRun }

// streams are what is known of each stream, in the order of the scope.
func (rs *records) streams() []buffer { return rs.buffers }

type buffer struct {
	stream   string
	spec     abi.StreamSpec
	batch    *store.Batch
	met      []*store.DetailGap // pending gaps whose records are in batch
	rejected rejections         // records rejected alone since the last flush
	refused  rejections         // those of all flushes
	emitted  int64
	flushed  int64
}

func newRecords(all *parts) *records {
	rs := &records{parts: all}
	for _, s := range all.plan.scope.Streams {
		rs.buffers = append(rs.buffers, buffer{stream: s.Name, spec: all.plan.manifest.Stream(s.Name)})
	}
	return rs
}

func (b *buffer) len() int {
	if b.batch == nil {
		return b.rejected.count
	}
	return b.batch.Len() + b.rejected.count
}

func (b *buffer) size() int {
	if b.batch == nil {
		return 0
	}
	return b.batch.Size()
}

// admit takes a record that passed the protocol: identity, buffer.
func (rs *records) admit(m *abi.RecordMessage) {
	b := &rs.buffers[m.Stream]
	if b.len() == 0 {
		rs.order = append(rs.order, m.Stream)
	}
	b.emitted++
	if bad := b.reject(m); bad != nil {
		if len(b.rejected.first) < maxRejections {
			bad.Key = redact.Gap(rs.canary.Text(string(m.Key)), maxGapText)
		}
		b.rejected.add(*bad)
	} else {
		b.met = append(b.met, rs.gaps.seen(b.stream, m.Key)...)
		rs.buffer(b, m)
	}
	switch {
	case b.len() >= rs.plan.Limits.FlushRecords || b.size() >= rs.plan.Limits.FlushBytes:
		rs.flush(m.Stream)
	case rs.buffered >= 2*rs.plan.Limits.FlushBytes: // of many streams
		rs.flush(rs.fullest())
	}
}

// fullest is the stream with the largest buffer.
func (rs *records) fullest() int {
	return slices.MaxFunc(rs.order, func(a, b int) int { return cmp.Compare(rs.buffers[a].size(), rs.buffers[b].size()) })
}

func (rs *records) buffer(b *buffer, m *abi.RecordMessage) {
	if b.batch == nil {
		b.batch = rs.newBatch(b.stream)
	}
	c := store.Change{Compound: m.Compound, Key: m.Key, Data: m.Data, EmittedAt: m.EmittedAt}
	if m.Delete {
		c.Op, c.Data = store.Delete, nil
	}
	if c.EmittedAt == 0 {
		c.EmittedAt = time.Now().UnixMicro()
	}
	rs.buffered -= b.batch.Size()
	b.batch.Append(c)
	rs.buffered += b.batch.Size()
}

func (rs *records) newBatch(stream string) *store.Batch {
	if n := len(rs.free); n > 0 {
		b := rs.free[n-1]
		rs.free = rs.free[:n-1]
		rs.freeBytes -= cap(b.Packed())
		b.Reset(store.Stream(stream))
		return b
	}
	return &store.Batch{Stream: store.Stream(stream)}
}

// recycle keeps the memory of a batch that the store is done with, unless there
// is plenty already.
func (rs *records) recycle(b *store.Batch) {
	if n := cap(b.Packed()); rs.freeBytes+n <= windowBytes {
		rs.free, rs.freeBytes = append(rs.free, b), rs.freeBytes+n
	}
}

// protected is check 10 of RECORD, before the record counts.
func (rs *records) protected(m *abi.RecordMessage) *abi.Violation {
	if !rs.canary.Armed() {
		return nil
	}
	if rs.canary.LeaksText(m.Key) {
		return rs.outcome.leaked("RECORD", "", "/key", nil)
	}
	if rs.canary.Leaks(m.Data) {
		return rs.outcome.leaked("RECORD", "", "/data", m.Data)
	}
	return nil
}

// leak is R166: a protected value in a cursor, progress or gap.
func (o *outcome) leak(typ, stream, at string, raw []byte) {
	o.violate(o.leaked(typ, stream, at, raw))
}

// leaked says where in a message a protected value is, never the value.
func (o *outcome) leaked(typ, stream, at string, raw []byte) *abi.Violation {
	if v, err := abi.Parse(raw, abi.ParseOptions{AnyKind: true}); err == nil {
		at += o.canary.Locate(v)
	}
	return &abi.Violation{Subtype: abi.VSecretLeak, MessageType: typ, Stream: stream, Field: at}
}

// reject is R78: why a record can never be stored, nil for one that can.
func (b *buffer) reject(m *abi.RecordMessage) *Rejection {
	if m.Rejected != "" {
		return &Rejection{Code: m.Rejected, Field: m.RejectedAt}
	}
	if !m.Compound && spellsArray(m.Key) {
		return &Rejection{Code: rejectKeyForm}
	}
	if len(m.Data) == 0 {
		return nil
	}
	if field, ok := b.identity(m); !ok {
		return &Rejection{Code: rejectIdentity, Field: field}
	}
	if b.spec.CheckSchema {
		return mismatch(b.spec, m)
	}
	return nil
}

// spellsArray reports whether a key that is a text spells what a compound key is
// kept as: the two would be one record.
func spellsArray(key []byte) bool {
	if len(key) < 2 || key[0] != '[' || key[len(key)-1] != ']' {
		return false
	}
	var s abi.Scanner
	if kind, err := s.Valid(key); err != nil || kind != abi.KindArray {
		return false
	}
	canonical, _, ok := abi.CanonicalKey(nil, key)
	return ok && bytes.Equal(canonical, key)
}

// identity compares the primary-key fields that data has with their parts of
// the key, and names the one that differs.
func (b *buffer) identity(m *abi.RecordMessage) (field string, ok bool) {
	if len(b.spec.PrimaryKey) == 1 && !m.Compound {
		v := memberOf(m.Members, b.spec.PrimaryKey[0])
		return b.spec.PrimaryKey[0], v.Kind == 0 || v.Kind == abi.KindNull || textEquals(v, m.Key)
	}
	if !m.Compound || len(b.spec.PrimaryKey) < 2 {
		return b.singlePart(m)
	}
	i := 0
	key := abi.Member{Value: m.Key, Kind: abi.KindArray}.Tree()
	for part := range key.Items() {
		if i < len(b.spec.PrimaryKey) {
			v := memberOf(m.Members, b.spec.PrimaryKey[i])
			text, _ := part.Text()
			if v.Kind != 0 && v.Kind != abi.KindNull && !textEquals(v, []byte(text)) {
				return b.spec.PrimaryKey[i], false
			}
		}
		i++
	}
	return "", i == len(b.spec.PrimaryKey)
}

// singlePart handles a key whose form differs from the declaration's: an array
// of one for one field. Anything else has the wrong number of parts.
func (b *buffer) singlePart(m *abi.RecordMessage) (field string, ok bool) {
	if !m.Compound || len(b.spec.PrimaryKey) != 1 {
		return "", false
	}
	key := abi.Member{Value: m.Key, Kind: abi.KindArray}.Tree()
	n, text := 0, ""
	for part := range key.Items() {
		text, _ = part.Text()
		n++
	}
	v := memberOf(m.Members, b.spec.PrimaryKey[0])
	return b.spec.PrimaryKey[0], n == 1 && (v.Kind == 0 || v.Kind == abi.KindNull || textEquals(v, []byte(text)))
}

func memberOf(members []abi.Member, name string) abi.Member {
	for _, m := range members {
		if string(m.Name) == name {
			return m
		}
	}
	return abi.Member{}
}

// textEquals compares a value as text with a part of a key.
func textEquals(v abi.Member, key []byte) bool {
	switch v.Kind {
	case abi.KindString:
		if inner := v.Value[1 : len(v.Value)-1]; bytes.Equal(inner, key) && bytes.IndexByte(inner, '\\') < 0 {
			return true
		}
		return abi.EqualText(v.Value, string(key))
	case abi.KindNumber:
		if bytes.Equal(v.Value, key) {
			return true
		}
		a, okA := abi.Int64(v.Value)
		k, okK := abi.Int64(key)
		return okA && okK && a == k && isInteger(key)
	default:
		return bytes.Equal(v.Value, key)
	}
}

func isInteger(key []byte) bool {
	return len(key) > 0 && !slices.ContainsFunc(key, func(c byte) bool { return (c < '0' || c > '9') && c != '-' })
}

// mismatch checks required members and the types of those present, and says
// what does not match.
func mismatch(spec abi.StreamSpec, m *abi.RecordMessage) *Rejection {
	for _, name := range spec.Required {
		if memberOf(m.Members, name).Kind == 0 {
			return &Rejection{Code: rejectSchema, Field: name, Received: "missing"}
		}
	}
	for _, v := range m.Members {
		if p, ok := spec.Properties[string(v.Name)]; ok && !hasType(p.Types, v) {
			return &Rejection{Code: rejectSchema, Field: string(v.Name), Expected: strings.Join(p.Types, " or "), Received: v.Kind.String()}
		}
	}
	return nil
}

func hasType(types []string, v abi.Member) bool {
	if len(types) == 0 {
		return true
	}
	for _, t := range types {
		switch {
		case t == "string" && v.Kind == abi.KindString,
			t == "number" && v.Kind == abi.KindNumber,
			t == "boolean" && v.Kind == abi.KindBool,
			t == "object" && v.Kind == abi.KindObject,
			t == "array" && v.Kind == abi.KindArray,
			t == "null" && v.Kind == abi.KindNull:
			return true
		case t == "integer" && v.Kind == abi.KindNumber:
			if _, ok := abi.Int64(v.Value); ok {
				return true
			}
		}
	}
	return false
}
