package abi_test

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// benchFrame is a frame of about 64 KiB with records of 200 bytes of data.
func benchFrame(b *testing.B) []byte {
	b.Helper()
	var w abi.FrameWriter
	for i := range 280 {
		rec := abi.FrameRecord{Stream: 1, Key: fmt.Appendf(nil, "msg-%012d", i), Data: record200}
		if err := w.Append(&rec); err != nil {
			b.Fatal(err)
		}
	}
	return w.Finish()
}

// BenchmarkFrameRead reads a frame; one operation is one record.
func BenchmarkFrameRead(b *testing.B) {
	frame := benchFrame(b)
	for _, scan := range []bool{false, true} {
		name := "Layout"
		if scan {
			name = "LayoutAndJSON"
		}
		b.Run(name, func(b *testing.B) {
			s := strictjson.Scanner{MaxValues: 10_000}
			b.SetBytes(int64(len(frame) / 280))
			b.ReportAllocs()
			for n := 0; n < b.N; {
				r, err := abi.NewFrameReader(frame)
				if err != nil {
					b.Fatal(err)
				}
				for rec := (abi.FrameRecord{}); r.Next(&rec); n++ {
					if scan {
						if _, err := s.Object(rec.Data); err != nil {
							b.Fatal(err)
						}
					}
				}
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
			}
		})
	}
}

// BenchmarkFrameWrite fills frames; one operation is one record.
func BenchmarkFrameWrite(b *testing.B) {
	w := abi.FrameWriter{MaxRecords: 280}
	rec := abi.FrameRecord{Stream: 1, Key: []byte("msg-000000000001"), Data: record200}
	b.SetBytes(int64(len(record200)))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Append(&rec); err != nil {
			w.Finish()
			w.Begin()
		}
	}
}

// BenchmarkTime reads one time of each common form.
func BenchmarkTime(b *testing.B) {
	for _, raw := range []string{`"2026-03-04T05:06:07.891Z"`, `"2026-03-04"`, `1767225600000`, `1767225600000.5`} {
		b.Run(raw, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := abi.TimeOf([]byte(raw)); !ok {
					b.Fatal("no time")
				}
			}
		})
	}
}

// record200 is a record object of 200 bytes as connectors send them.
var record200 = []byte(
	`{"id":"msg-000000123456","created_at":"2026-03-04T05:06:07.891Z","from":"ada@example.org","subject":"Notes on the engine","size":182345,"read":true,"labels":["inbox","work"],"thread":{"id":"t-99881"}}`)
