package guest_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// BenchmarkEmitWasm is G22: the time a guest spends in the SDK per record of 200
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
