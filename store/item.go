package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// An Item is one thing in a store, in a form that all drivers read and write. Items are the
// content of a copy, and of a backup if the driver has no backup format of its own.
//
// Items are ordered by kind, then by key.
type Item struct {
	Kind  ItemKind
	Key   []byte // made by ItemKey
	Value []byte
}

// An ItemKind is the kind of an item. The numbers are stored in archives: append only.
type ItemKind byte

// The kinds, with the parts of their keys, and their values. JSON is that of encoding/json.
const (
	ConnectorItem  ItemKind = iota + 1 // "\x01" for a bundled one or "\x00", id: a Connector
	PinItem                            // connector: a Pin
	ConnectionItem                     // id: a Connection
	DocumentItem                       // kind, id: a DocumentValue
	FenceItem                          // connection: the last fence, a number
	RunItem                            // id: a RunValue
	LeaseItem                          // connection: a Lease
	EventItem                          // run, sequence: an Event
	StagedItem                         // run, stream: a State
	QuestionItem                       // run, id: a SealedInteraction
	StateItem                          // connection, grant, stream: a State
	GapItem                            // connection, grant, DetailGap.Identity: a KeptGap
	StreamItem                         // connection, stream: a StreamValue
	RecordItem                         // connection, stream, version: made by RecordValue
	FileItem                           // connection, digest: a FileValue
	PieceItem                          // connection, digest, number: PieceBytes of it, or the rest; none for an empty file
	HeldItem                           // connection, stream, record key: a list of Held
	itemKinds
)

// PieceBytes is the size of a piece of a file.
const PieceBytes = 512 << 10

var itemNames = [itemKinds]string{
	"", "connectors", "pins", "connections", "documents", "fences", "runs", "leases", "events", "staged cursors",
	"questions", "cursors", "gaps", "streams", "records", "files", "pieces of files", "holders of files",
}

func (k ItemKind) String() string {
	if k >= itemKinds {
		return "things of an unknown kind"
	}
	return itemNames[k]
}

// ItemKinds lists all kinds in order.
func ItemKinds() (all []ItemKind) {
	for k := ConnectorItem; k < itemKinds; k++ {
		all = append(all, k)
	}
	return all
}

// ItemKey joins parts. All but the last have a prefix with their length in two bytes, big
// endian, so that keys are unambiguous; the last has none, so that it sorts.
func ItemKey(parts ...string) []byte {
	var k []byte
	for i, p := range parts {
		if i < len(parts)-1 {
			k = binary.BigEndian.AppendUint16(k, uint16(len(p))) // #nosec G115 -- names are short
		}
		k = append(k, p...)
	}
	return k
}

// ItemNumber returns a number as the last part of a key.
func ItemNumber(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// Parts splits the key into n parts: *DamageError.
func (i Item) Parts(n int) ([]string, error) {
	parts, k := make([]string, 0, n), i.Key
	for len(parts) < n-1 {
		if len(k) < 2 || len(k) < 2+int(binary.BigEndian.Uint16(k)) {
			return nil, Corrupt("key %.60q of %s cannot be", i.Key, i.Kind)
		}
		end := 2 + int(binary.BigEndian.Uint16(k))
		parts, k = append(parts, string(k[2:end])), k[end:]
	}
	return append(parts, string(k)), nil
}

// Numbered splits a key of n parts, the last of which is a number.
func (i Item) Numbered(n int) (parts []string, number uint64, err error) {
	parts, err = i.Parts(n)
	if err == nil && len(parts[n-1]) != 8 {
		err = Corrupt("key %.60q of %s ends with no number", i.Key, i.Kind)
	}
	if err != nil {
		return nil, 0, err
	}
	return parts[:n-1], binary.BigEndian.Uint64([]byte(parts[n-1])), nil
}

// NewItem returns an item whose value is v as JSON, with every json.RawMessage normalised
// by encoding/json.
func NewItem(kind ItemKind, v any, key []byte) (Item, error) {
	text, err := json.Marshal(v)
	if err != nil {
		err = Corrupt("%s %.60q: %v", kind, key, err)
	}
	return Item{kind, key, text}, err
}

// Decode decodes a value of NewItem: *DamageError.
func (i Item) Decode(v any) error {
	if err := json.Unmarshal(i.Value, v); err != nil {
		return Corrupt("%s %.60q: %v", i.Kind, i.Key, err)
	}
	return nil
}

// A DocumentValue is a document without its name.
type DocumentValue struct {
	Revision uint64          `json:"revision"`
	Expires  int64           `json:"expires,omitempty"` // µs since 1970; 0 is never
	Data     json.RawMessage `json:"data"`
}

// ExpiresAt returns when the document expires; zero means never.
func (v DocumentValue) ExpiresAt() (at time.Time) {
	if v.Expires != 0 {
		at = time.UnixMicro(v.Expires).UTC()
	}
	return at
}

// A RunValue is a run record with the state of its timeline.
type RunValue struct {
	Next  uint64          `json:"next"`
	Ended bool            `json:"ended"`
	Run   json.RawMessage `json:"run"`
}

// A KeptGap is a DetailGap with its Ref, which its JSON form leaves out.
type KeptGap struct {
	DetailGap
	Ref string `json:"ref"`
}

// Gap returns the gap with its Ref.
func (g KeptGap) Gap() DetailGap {
	g.DetailGap.Ref = g.Ref
	return g.DetailGap
}

// A StreamValue is the counters of a stream.
type StreamValue struct {
	Live       uint64 `json:"records"`
	Tombstones uint64 `json:"deleted"`
	Last       uint64 `json:"last_version"`
	Bytes      uint64 `json:"bytes"`
	Updated    int64  `json:"updated"` // µs since 1970
}

// A FileValue describes a content and the number of records that hold it.
type FileValue struct {
	Refs int64 `json:"refs"` // 0 means none, while its run goes on
	File
}

// RecordValue returns the value of a record or tombstone:
//
//	ingested i64 (µs)  run_len u16  run  change      little-endian; change as in a Batch
func RecordValue(ingested int64, run string, packed []byte) []byte {
	b := make([]byte, 0, 10+len(run)+len(packed))
	b = binary.LittleEndian.AppendUint64(b, uint64(ingested))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(run))) // #nosec G115 -- ids are short
	return append(append(b, run...), packed...)
}

// Record decodes a RecordValue. Its results alias the value.
func (i Item) Record() (ingested int64, run string, c Change, packed []byte, err error) {
	v := i.Value
	if len(v) >= 10 && len(v) >= 10+int(binary.LittleEndian.Uint16(v[8:])) {
		end := 10 + int(binary.LittleEndian.Uint16(v[8:]))
		packed = v[end:]
		if change, n := Unpack(packed); n == len(packed) {
			return int64(binary.LittleEndian.Uint64(v)), string(v[10:end]), change, packed, nil
		}
	}
	return 0, "", Change{}, nil, Corrupt("record %.60q cannot be", i.Key)
}

// A file of items has the form
//
//	"sluice store items\n"
//	item   kind u8  key_len u16  value_len u32  key  value     little-endian
//	end    0 u8  0 u16  0 u32  items u64
const (
	itemsMagic = "sluice store items\n"
	itemHead   = 1 + 2 + 4

	maxItemValue = 64 << 20
)

// WriteItems writes all items of an image. Equal content gives equal bytes with every
// driver.
func WriteItems(ctx context.Context, w io.Writer, from Image) error {
	b := bufio.NewWriterSize(w, 256<<10)
	_, _ = b.WriteString(itemsMagic) // the error comes again
	var head []byte
	count := uint64(0)
	for _, kind := range ItemKinds() {
		err := from.Items(ctx, kind, nil, func(i Item) error {
			count++
			head = binary.LittleEndian.AppendUint16(append(head[:0], byte(kind)), uint16(len(i.Key))) // #nosec G115 -- parts of keys are bounded
			head = binary.LittleEndian.AppendUint32(head, uint32(len(i.Value)))                       // #nosec G115 -- at most 64 MiB
			for _, part := range [][]byte{head, i.Key, i.Value} {
				if _, err := b.Write(part); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, _ = b.Write(binary.LittleEndian.AppendUint64(make([]byte, itemHead), count)) // the error comes again
	return b.Flush()
}

// readItems reads the output of WriteItems, which it does not trust: *DamageError.
func readItems(r io.Reader, fn func(Item) error) error {
	b := bufio.NewReaderSize(r, 256<<10)
	magic := make([]byte, len(itemsMagic))
	if _, err := io.ReadFull(b, magic); err != nil || string(magic) != itemsMagic {
		return itemsCut(err, 0, "these are no items of a store")
	}
	var last Item
	for count := uint64(0); ; count++ {
		var head [itemHead]byte
		if _, err := io.ReadFull(b, head[:]); err != nil {
			return itemsCut(err, count, "")
		}
		kind, n, size := ItemKind(head[0]), int(binary.LittleEndian.Uint16(head[1:])),
			int64(binary.LittleEndian.Uint32(head[3:]))
		if kind == 0 {
			return endItems(b, head, count)
		}
		if kind >= itemKinds || size > maxItemValue {
			return Corrupt("item %d is of kind %d and has %d bytes", count, kind, size)
		}
		i := Item{Kind: kind, Key: make([]byte, n)}
		if _, err := io.ReadFull(b, i.Key); err != nil {
			return itemsCut(err, count, "")
		}
		var err error
		if i.Value, err = readValue(b, size); err != nil {
			return itemsCut(err, count, "")
		}
		if kind < last.Kind || kind == last.Kind && bytes.Compare(i.Key, last.Key) <= 0 {
			return Corrupt("item %d, of %s, is out of order", count, kind)
		}
		if err := fn(i); err != nil {
			return err
		}
		last = i
	}
}

// readValue takes no more memory for a long value than it has bytes, whatever size it claims.
func readValue(r io.Reader, size int64) ([]byte, error) {
	if size <= 64<<10 {
		v := make([]byte, size)
		_, err := io.ReadFull(r, v)
		return v, err
	}
	var b bytes.Buffer
	_, err := io.CopyN(&b, r, size)
	return b.Bytes(), err
}

func endItems(b *bufio.Reader, head [itemHead]byte, count uint64) error {
	var want [8]byte
	if _, err := io.ReadFull(b, want[:]); err != nil {
		return itemsCut(err, count, "")
	}
	if head != [itemHead]byte{} || binary.LittleEndian.Uint64(want[:]) != count {
		return Corrupt("the items end after %d, and were %d", count, binary.LittleEndian.Uint64(want[:]))
	}
	switch _, err := b.ReadByte(); {
	case err == nil:
		return Corrupt("something follows the last item")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read items: %w", err)
	}
	return nil
}

func itemsCut(err error, count uint64, otherwise string) error {
	switch {
	case err == nil:
		return Corrupt("%s", otherwise)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Corrupt("the items are cut after %d", count)
	}
	return fmt.Errorf("read items: %w", err)
}
