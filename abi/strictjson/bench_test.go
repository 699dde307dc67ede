package strictjson_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// record200 is a record object of 200 bytes as connectors send them.
var record200 = []byte(
	`{"id":"msg-000000123456","created_at":"2026-03-04T05:06:07.891Z","from":"ada@example.org","subject":"Notes on the engine","size":182345,"read":true,"labels":["inbox","work"],"thread":{"id":"t-99881"}}`)

// BenchmarkObject measures the scanner beside encoding/json and jsontext of
// go-json-experiment on the same record.
func BenchmarkObject(b *testing.B) {
	if len(record200) != 200 {
		b.Fatalf("record has %d bytes", len(record200))
	}
	b.Run("Scanner", func(b *testing.B) {
		s := strictjson.Scanner{MaxValues: 10_000}
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
	b.Run("jsontext.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(record200)))
		b.ReportAllocs()
		for b.Loop() {
			if !jsontext.Value(record200).IsValid() {
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

// BenchmarkObjectManyNames shows that the cost of a name does not grow with
// their number.
func BenchmarkObjectManyNames(b *testing.B) {
	for _, n := range []int{15, 1000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src := manyNames(n, "last")
			var s strictjson.Scanner
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Object(src); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(n+1)), "ns/name")
		})
	}
}
