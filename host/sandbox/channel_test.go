package sandbox

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
)

func messages(list ...abi.WireHeader) (wire []byte) {
	for i, h := range list {
		h.ID += uint32(i + 1)
		wire = append(h.Append(wire), bytes.Repeat([]byte{byte(i)}, int(h.Length))...)
	}
	return wire
}

func reading(r io.Reader) *channel {
	return &channel{reader: r, limits: abi.DefaultWireLimits()}
}

func TestChannelReads(t *testing.T) {
	want := []abi.WireHeader{
		{Length: 0, ID: 1, Call: abi.CallStart}, {Length: 7000, ID: 2, Call: abi.CallEmit},
		{Length: 3, ID: 3, Call: abi.CallLog}, {Length: 1 << 20, ID: 4, Call: abi.CallEmit},
	}
	wire := messages(abi.WireHeader{Call: abi.CallStart}, abi.WireHeader{Length: 7000, Call: abi.CallEmit},
		abi.WireHeader{Length: 3, Call: abi.CallLog}, abi.WireHeader{Length: 1 << 20, Call: abi.CallEmit})
	for name, r := range map[string]io.Reader{
		"at once":      bytes.NewReader(wire),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(wire)),
		"by halves":    iotest.HalfReader(bytes.NewReader(wire)),
	} {
		c := reading(r)
		var got []abi.WireHeader
		for {
			h, buf, err := c.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(name, err)
			}
			if p := buf.b[:h.Length]; len(bytes.Trim(p, string([]byte{byte(len(got))}))) > 0 {
				t.Errorf("%s: message %d has another's bytes", name, len(got))
			}
			giveBuffer(buf)
			got = append(got, h)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// endless counts what is asked of it.
type endless struct{ asked int }

func (e *endless) Read(b []byte) (int, error) {
	e.asked += len(b)
	return len(b), nil
}

func TestChannelAllocatesNothingUnchecked(t *testing.T) {
	header := abi.WireHeader{Length: 1<<32 - 1, ID: 1, Call: abi.CallEmit}.Append(nil)
	rest := &endless{}
	allocated := testing.AllocsPerRun(10, func() {
		if _, _, err := reading(io.MultiReader(bytes.NewReader(header), rest)).next(); !errors.Is(err, abi.ErrWire) {
			t.Errorf("a giant: %v", err)
		}
	})
	if rest.asked > 0 || allocated > 50 {
		t.Errorf("%d bytes asked for, %v allocations", rest.asked, allocated)
	}
}

// FuzzChannel: whatever a worker sends, the host's decoder ends with an error
// and has accepted only what the limits allow, with ids that count up.
func FuzzChannel(f *testing.F) {
	f.Add(messages(abi.WireHeader{Call: abi.CallStart}, abi.WireHeader{Length: 20, Call: abi.CallEmit}))
	f.Add(messages(abi.WireHeader{Call: abi.CallExit, Length: 4}))
	f.Add([]byte{255, 255, 255, 255, 1, 0, 0, 0, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, wire []byte) {
		c := reading(bytes.NewReader(wire))
		g := &Guest{frames: abi.CreditFrames, bytes: abi.CreditBytes}
		for id := uint32(1); ; id++ {
			h, buf, err := c.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, abi.ErrWire) {
					t.Errorf("ended with %v", err)
				}
				return
			}
			most, ok := c.limits.FromWorker(h.Call)
			if !ok || h.Length > most || h.ID != id || h.Errno != abi.OK {
				t.Fatalf("accepted %+v", h)
			}
			in := Inbound{ID: h.ID, Call: h.Call, Payload: buf.b[:h.Length], buffer: buf}
			if g.countCall(in) == nil && !h.Call.Pipelined() && g.waitingID != h.ID {
				t.Fatalf("admitted %+v, waits for %d", h, g.waitingID)
			}
			g.waiting = 0
			in.Release()
		}
	})
}
