package abi_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
)

// sampleRecords has one record of each form.
func sampleRecords() []abi.FrameRecord {
	return []abi.FrameRecord{
		{Key: []byte("a"), Data: []byte(`{"n":1}`)},
		{Op: abi.OpDelete, KeyKind: abi.KeyCompound, Stream: 65535, EmittedAt: -1, Key: []byte(`["a","b"]`)},
		{Stream: 3, EmittedAt: math.MaxInt64, Key: bytes.Repeat([]byte("k"), 1024), Data: record200},
	}
}

func TestFrameWriterReusesItsBuffer(t *testing.T) {
	var w abi.FrameWriter
	var frames [2][]byte
	for i := range frames {
		w.Begin()
		for _, rec := range sampleRecords() {
			if err := w.Append(&rec); err != nil {
				t.Fatal(err)
			}
		}
		if w.Count() != 3 {
			t.Errorf("count %d", w.Count())
		}
		frames[i] = w.Finish()
		if w.Size() != len(frames[i]) {
			t.Errorf("size %d of %d bytes", w.Size(), len(frames[i]))
		}
	}
	if &frames[0][0] != &frames[1][0] {
		t.Error("the second frame has a buffer of its own")
	}
	var got []abi.FrameRecord
	r, err := abi.NewFrameReader(frames[1])
	if err != nil {
		t.Fatal(err)
	}
	if r.Count() != 3 {
		t.Errorf("reader counts %d", r.Count())
	}
	for rec := (abi.FrameRecord{}); r.Next(&rec); {
		got = append(got, rec)
	}
	want := sampleRecords()
	want[1].Data = []byte{}
	if diff := cmp.Diff(want, got); diff != "" || r.Err() != nil {
		t.Errorf("%v (-want +got):\n%s", r.Err(), diff)
	}
}

func TestFrameWriterFinishesAnEmptyFrame(t *testing.T) {
	var w abi.FrameWriter
	if got := hex.EncodeToString(w.Finish()); got != "5352010000000000" {
		t.Errorf("empty frame %s", got)
	}
}

// TestFrameWriterLimits fills frames to the last byte and the last record.
func TestFrameWriterLimits(t *testing.T) {
	rec := abi.FrameRecord{Key: []byte("k"), Data: []byte("{}")} // 23 bytes
	for _, c := range []struct {
		name               string
		bytes, records     int
		wantCount          int
		want, wantForEmpty error
	}{
		{"exactly two by bytes", 8 + 46, 0, 2, abi.ErrFrameFull, nil},
		{"a byte short of two", 8 + 45, 0, 1, abi.ErrFrameFull, nil},
		{"a byte short of one", 8 + 22, 0, 0, abi.ErrRecordTooLarge, abi.ErrRecordTooLarge},
		{"two by count", 0, 2, 2, abi.ErrFrameFull, nil},
		{"as many as a frame may have", 1 << 24, 1 << 20, abi.MaxFrameRecords, abi.ErrFrameFull, nil},
		{"default bytes", 0, 0, (abi.DefaultFrameBytes - 8) / 23, abi.ErrFrameFull, nil},
	} {
		for _, inPlace := range []bool{false, true} {
			w := abi.FrameWriter{MaxBytes: c.bytes, MaxRecords: c.records}
			add := func() error {
				if inPlace {
					return w.Seal(append(w.Open(&rec), rec.Data...))
				}
				return w.Append(&rec)
			}
			if err := add(); !errors.Is(err, c.wantForEmpty) {
				t.Errorf("%s: first record: %v", c.name, err)
			}
			err := add()
			for err == nil {
				err = add()
			}
			before := bytes.Clone(w.Finish())
			if !errors.Is(err, c.want) || w.Count() != c.wantCount {
				t.Errorf("%s: %v after %d records, want %v after %d", c.name, err, w.Count(), c.want, c.wantCount)
			}
			if err := add(); !errors.Is(err, c.want) || !bytes.Equal(w.Finish(), before) {
				t.Errorf("%s: a refused record changed the frame", c.name)
			}
			if got, err := readFrame(before, func(*abi.FrameRecord) {}); err != nil || len(got) != c.wantCount {
				t.Errorf("%s: read %d records: %v", c.name, len(got), err)
			}
		}
	}
}

// TestFrameWriterForgetsAnOpenRecord leaves records open and checks that
// nothing of them shows.
func TestFrameWriterForgetsAnOpenRecord(t *testing.T) {
	var w abi.FrameWriter
	rec := sampleRecords()[0]
	_ = append(w.Open(&rec), "half of the da"...)
	if err := w.Append(&rec); err != nil {
		t.Fatal(err)
	}
	_ = w.Open(&rec)
	got, err := readFrame(w.Finish(), func(*abi.FrameRecord) {})
	want := []recordVector{{0, 0, 0, "0", "a", `{"n":1}`}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestFrameReaderStops asks again after the end and after a fault.
func TestFrameReaderStops(t *testing.T) {
	var w abi.FrameWriter
	for _, rec := range sampleRecords() {
		if err := w.Append(&rec); err != nil {
			t.Fatal(err)
		}
	}
	frame := append(w.Finish(), 0)
	r, err := abi.NewFrameReader(frame)
	if err != nil {
		t.Fatal(err)
	}
	var rec abi.FrameRecord
	for range 3 {
		if !r.Next(&rec) || r.Err() != nil {
			t.Fatalf("record missing: %v", r.Err())
		}
	}
	for range 2 {
		var f *abi.FrameError
		if r.Next(&rec) || !errors.As(r.Err(), &f) || f.Fault != abi.FrameTrailing {
			t.Fatalf("after the last record: %v", r.Err())
		}
	}
}

// FuzzFrame reads arbitrary bytes. What is read lies within the frame and
// cannot be extended out of it; a frame without fault is written again equal.
func FuzzFrame(f *testing.F) {
	for _, v := range vectors[frameVector](f, "frames.json") {
		frame, err := hex.DecodeString(v.Frame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		w := abi.FrameWriter{MaxBytes: len(frame) + 8}
		w.Begin()
		offset, count := 8, 0
		r, err := abi.NewFrameReader(frame)
		if err != nil {
			checkFrameError(t, err, frame, -1)
			return
		}
		var rec abi.FrameRecord
		for r.Next(&rec) {
			if len(rec.Key) != cap(rec.Key) || len(rec.Data) != cap(rec.Data) {
				t.Error("a slice reaches beyond its field")
			}
			offset += 20
			if !bytes.Equal(frame[offset:offset+len(rec.Key)], rec.Key) {
				t.Errorf("key of record %d is not at %d", count, offset)
			}
			offset += len(rec.Key)
			if !bytes.Equal(frame[offset:offset+len(rec.Data)], rec.Data) {
				t.Errorf("data of record %d is not at %d", count, offset)
			}
			offset += len(rec.Data)
			count++
			if err := w.Append(&rec); err != nil {
				t.Fatal(err)
			}
		}
		if r.Err() != nil {
			checkFrameError(t, r.Err(), frame, count)
			return
		}
		if count != r.Count() || offset != len(frame) || !bytes.Equal(w.Finish(), frame) {
			t.Errorf("%d of %d records, %d of %d bytes, written again %x", count, r.Count(), offset, len(frame), w.Finish())
		}
	})
}

func checkFrameError(t *testing.T, err error, frame []byte, record int) {
	t.Helper()
	var f *abi.FrameError
	if !errors.As(err, &f) {
		t.Fatalf("error of type %T", err)
	}
	if f.Record != record || f.Offset < 0 || f.Offset > len(frame) {
		t.Errorf("%v, in record %d of a frame of %d bytes", err, record, len(frame))
	}
}

// FuzzFrameRecords cuts bytes into records, writes them in both ways and
// reads them back.
func FuzzFrameRecords(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x02\x03\x04\x05key and data"), uint8(3))
	f.Add(bytes.Repeat([]byte("\x01\x01\x08"), 90), uint8(40))
	f.Fuzz(func(t *testing.T, src []byte, limit uint8) {
		w := abi.FrameWriter{MaxRecords: int(limit)}
		var want []recordVector
		for len(src) >= 12 {
			rec := abi.FrameRecord{Op: abi.Op(src[0]), KeyKind: abi.KeyKind(src[1]), Stream: binary.LittleEndian.Uint16(src[2:]),
				EmittedAt: int64(binary.LittleEndian.Uint64(src[4:]))}
			key := min(int(src[2]), len(src)-12)
			data := min(int(src[3]), len(src)-12-key)
			rec.Key, rec.Data = src[12:12+key], src[12+key:12+key+data]
			src = src[12+key+data:]
			var err error
			if rec.Op%2 == 0 {
				err = w.Append(&rec)
			} else {
				err = w.Seal(append(w.Open(&rec), rec.Data...))
			}
			if full := limit > 0 && len(want) == int(limit); errors.Is(err, abi.ErrFrameFull) != full || err != nil && !full {
				t.Fatalf("record %d of %d: %v", len(want), limit, err)
			} else if full {
				continue
			}
			want = append(want, recordVector{uint8(rec.Op), uint8(rec.KeyKind), rec.Stream, strconv.FormatInt(rec.EmittedAt, 10),
				string(rec.Key), string(rec.Data)})
		}
		got, err := readFrame(w.Finish(), func(*abi.FrameRecord) {})
		if err != nil || len(got) != len(want) || len(want) > 0 && !cmp.Equal(want, got) {
			t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, got))
		}
	})
}

func TestFrameErrorNamesThePlace(t *testing.T) {
	for want, err := range map[string]*abi.FrameError{
		"malformed frame: count at byte 4":            {Fault: abi.FrameCount, Record: -1, Offset: 4},
		"malformed frame: data of record 2 at byte 9": {Fault: abi.FrameData, Record: 2, Offset: 9},
		"malformed frame: frame fault(99) at byte 0":  {Fault: 99, Record: -1},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
	}
}
