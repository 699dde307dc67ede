//go:build !wasip1

package guest_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// BenchmarkEmitWasm: the time a guest spends in the SDK per record of 200
// bytes, under wazero, with a host that does nothing.
func BenchmarkEmitWasm(b *testing.B) {
	h := newWasmHost(b, buildGuest(b, "bench"))
	records := 0
	h.call = func(call abi.Call, request []byte) ([]byte, abi.Errno) {
		switch call {
		case abi.CallStart:
			return []byte(wasmStart), 0
		case abi.CallEmit:
			frame, err := abi.NewFrameReader(request)
			if err != nil {
				b.Fatal(err)
			}
			records += frame.Count()
		}
		return nil, 0
	}
	for _, kind := range []string{"struct", "value", "record", "map"} {
		b.Run(kind, func(b *testing.B) {
			began := time.Now()
			h.run(b, "bench", kind, "0")
			starting := time.Since(began)
			records = 0
			b.ResetTimer()
			h.run(b, "bench", kind, strconv.Itoa(b.N))
			if b.Elapsed() > starting {
				b.ReportMetric(float64((b.Elapsed()-starting).Nanoseconds())/float64(b.N), "ns/record")
			}
			if records != b.N {
				b.Fatalf("%d records arrived, want %d", records, b.N)
			}
		})
	}
}

// BenchmarkEmit is the same in a native build.
func BenchmarkEmit(b *testing.B) {
	type thread struct {
		ID string `json:"id"`
	}
	type message struct {
		ID        string   `json:"id"`
		CreatedAt string   `json:"created_at"`
		From      string   `json:"from"`
		Subject   string   `json:"subject"`
		Size      int      `json:"size"`
		Read      bool     `json:"read"`
		Labels    []string `json:"labels"`
		Thread    thread   `json:"thread"`
	}
	m := &message{
		ID: "msg-000000123456", CreatedAt: "2026-03-04T05:06:07.891Z", From: "ada@example.org",
		Subject: "Notes on the engine", Size: 18234, Read: true, Labels: []string{"inbox", "work"}, Thread: thread{"t-99881"},
	}
	for name, start := range map[string]string{
		"whole": wasmStart, "projected": strings.Replace(wasmStart, `{"name":"messages"}`,
			`{"name":"messages","fields":["id","from"]}`, 1),
	} {
		b.Run(name, func(b *testing.B) {
			h := &sink{start: start}
			guest.Drive(b.Context(), guest.Connector{Collect: func(_ context.Context, run *guest.Run) error {
				b.ReportAllocs()
				for b.Loop() {
					if err := run.Emit("messages", m.ID, m); err != nil {
						return err
					}
				}
				return nil
			}}, h)
			if h.frames == 0 {
				b.Fatal("nothing was emitted")
			}
		})
	}
}

// A sink is a host that takes everything.
type sink struct {
	start  string
	frames int
}

func (h *sink) Call(call abi.Call, _ []byte) ([]byte, error) {
	switch call {
	case abi.CallStart:
		return []byte(h.start), nil
	case abi.CallEmit:
		h.frames++
	}
	return nil, nil
}
func (h *sink) Read(int32, []byte) (int, error) { return 0, nil }
func (h *sink) Close(int32) error               { return nil }
