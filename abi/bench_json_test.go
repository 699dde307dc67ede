package abi_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// record200 is a record object of 200 bytes as connectors send them.
var record200 = []byte(`{"id":"msg-000000123456","created_at":"2026-03-04T05:06:07.891Z","from":"ada@example.org","subject":"Notes on the engine","size":182345,"read":true,"labels":["inbox","work"],"thread":{"id":"t-99881"}}`)

// BenchmarkObject measures the scanner beside encoding/json on the same record.
func BenchmarkObject(b *testing.B) {
	if len(record200) != 200 {
		b.Fatalf("record has %d bytes", len(record200))
	}
	b.Run("Scanner", func(b *testing.B) {
		s := abi.Scanner{MaxValues: 10_000}
		b.SetBytes(int64(len(record200)))
		b.ReportAllocs()
		for b.Loop() {
			if m, err := s.Object(record200); err != nil || len(m) != 8 {
				b.Fatal(m, err)
			}
		}
	})
	b.Run("encoding-json.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(record200)))
		b.ReportAllocs()
		for b.Loop() {
			if !json.Valid(record200) {
				b.Fatal("refused")
			}
		}
	})
	b.Run("encoding-json.Map", func(b *testing.B) {
		b.SetBytes(int64(len(record200)))
		b.ReportAllocs()
		for b.Loop() {
			var m map[string]any
			if err := json.Unmarshal(record200, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
