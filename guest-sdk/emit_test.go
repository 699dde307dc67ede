//go:build !wasip1

package guest_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// records reads back what a tape got.
func (h *tape) records(t *testing.T) []abi.FrameRecord {
	t.Helper()
	var all []abi.FrameRecord
	for _, f := range h.frames {
		frame, err := abi.NewFrameReader(f)
		if err != nil {
			t.Fatal(err)
		}
		var rec abi.FrameRecord
		for frame.Next(&rec) {
			all = append(all, rec)
		}
		if err := frame.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

type item struct {
	ID string `json:"id"`
}

// TestEmitForms: every form of value and of record there is.
func TestEmitForms(t *testing.T) {
	h := &tape{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		rec := run.Record("a").String("s", "x\"").Int("i", -5).Float("f", 1.5).Bool("b", true).Time("t", at).
			Raw("r", []byte(" [1, 2] ")).Null("n").Strings("l", []string{"a", "b"}).Any("x", item{"y"})
		return errors.Join(
			run.Emit("a", "struct", item{"1"}), run.Emit("a", "pointer", &item{"1"}),
			run.Emit("a", "map", map[string]any{"id": "1"}), run.Emit("a", "raw", json.RawMessage(` {"id" : "1"} `)),
			run.Emit("a", "bytes", []byte(`{"id":"1"}`)), rec.Emit("record"), rec.Reset().Emit("empty"),
			run.Emit("a", "new", guest.NewRecord().String("id", "1")), run.EmitAt("a", "at", item{"1"}, at),
			run.EmitKey("a", []string{"x", "\"y\""}, item{"1"}), run.Delete("a", "gone"), run.DeleteKey("a", []string{"x", "y"}),
			run.Emit("b", "other stream", item{"1"}),
		)
	})
	var got strings.Builder
	for _, r := range h.records(t) {
		fmt.Fprintf(&got, "%d %d %d %d %s %s\n", r.Op, r.KeyKind, r.Stream, r.EmittedAt, r.Key, r.Data)
	}
	want := strings.Join([]string{
		`0 0 0 0 struct {"id":"1"}`, `0 0 0 0 pointer {"id":"1"}`, `0 0 0 0 map {"id":"1"}`, `0 0 0 0 raw {"id":"1"}`,
		`0 0 0 0 bytes {"id":"1"}`,
		`0 0 0 0 record {"s":"x\"","i":-5,"f":1.5,"b":true,"t":"2026-01-02T03:04:05.000006Z","r":[1,2],"n":null,"l":["a","b"],"x":{"id":"y"}}`, `0 0 0 0 empty {}`, `0 0 0 0 new {"id":"1"}`, fmt.Sprintf(`0 0 0 %d at {"id":"1"}`, at.UnixMicro()), `0 1 0 0 ["x","\"y\""] {"id":"1"}`,
		`1 0 0 0 gone `, `1 1 0 0 ["x","y"] `, `0 0 1 0 other stream {"id":"1"}`, "",
	}, "\n")
	if got.String() != want {
		t.Errorf("%s\nwant\n%s", got.String(), want)
	}
	if !strings.Contains(h.last(), `"records_emitted":13`) {
		t.Error(h.last())
	}
}

// A stamp writes itself.
type stamp struct{ id string }

func (s stamp) MarshalJSON() ([]byte, error) { return []byte(`{"at":1,"id":"` + s.id + `"}`), nil }

// TestEmitProjected: members that the scope does not grant are left out of every
// form of value, in every record of a type, however members are ordered;
// what is left out need not have a JSON form.
func TestEmitProjected(t *testing.T) {
	type embedded struct {
		ID string `json:"id"`
	}
	type wide struct {
		Bad float64 `json:"bad"`
		embedded
		Note string `json:"note,omitempty"`
		Last []int  `json:"last"`
	}
	h, id := &tape{}, "1"
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		bound, free := run.Record("b"), guest.NewRecord()
		for range 3 {
			w := wide{Bad: nan(), embedded: embedded{"1"}, Note: "n"}
			err := errors.Join(
				run.Emit("b", "k", &w), run.Emit("b", "k", &struct{ X int }{1}), run.Emit("b", "k", w),
				run.Emit("b", "k", struct {
					ID *string `json:"id"`
				}{&id}), run.Emit("b", "k", struct{}{}), run.Emit("b", "k", *guest.NewRecord().String("id", "1").Int("n", 2)),
				run.Emit("b", "k", map[string]any{"a": 1, "id": "1", "z": 2}),
				run.Emit("b", "k", json.RawMessage(`{"z":1,"id":"1"}`)), run.Emit("b", "k", stamp{"1"}),
				run.Emit("b", "k", &stamp{"1"}), bound.Reset().Int("a", 1).String("id", "1").Null("z").Emit("k"),
				bound.Reset().String("id", "1").Emit("k"), bound.Reset().Null("z").Int("a", 1).String("id", "1").Emit("k"),
				bound.Reset().Int("a", 1).Emit("k"), bound.Reset().Emit("k"),
				run.Emit("a", "k", free.Reset().String("id", "1").Int("n", 2)), run.Emit("b", "k", free), run.Emit("a", "k", free),
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
	const one, none, all = `{"id":"1"}`, `{}`, `{"id":"1","n":2}`
	want := []string{one, none, one, one, none, one, one, one, one, one, one, one, one, none, none, all, one, all}
	rs := h.records(t)
	for i, r := range rs {
		if string(r.Data) != want[i%len(want)] {
			t.Errorf("record %d: %s, want %s", i, r.Data, want[i%len(want)])
		}
	}
	if len(rs) != 3*len(want) {
		t.Errorf("%d records: %s", len(rs), h.last())
	}
}

// TestEmitRefused: what a host would end the run for is an error, sends nothing
// and counts nothing.
func TestEmitRefused(t *testing.T) {
	h := &tape{}
	exit := h.drive(t, func(_ context.Context, run *guest.Run) error {
		long := strings.Repeat("k", abi.MaxKeyBytes+1)
		for name, c := range map[string]struct{ err, want error }{
			"stream":          {run.Emit("c", "k", item{}), guest.ErrNotInScope},
			"no stream":       {run.Emit("", "k", item{}), guest.ErrNotInScope},
			"stream of state": {run.Checkpoint("c", nil), guest.ErrNotInScope},
			"empty key":       {run.Emit("a", "", item{}), guest.ErrKey},
			"long key":        {run.Emit("a", long, item{}), guest.ErrKey},
			"no parts":        {run.EmitKey("a", nil, item{}), guest.ErrKey},
			"empty part":      {run.EmitKey("a", []string{"a", ""}, item{}), guest.ErrKey},
			"many parts": {run.EmitKey("a", strings.Split(strings.Repeat("a,", abi.MaxKeyParts)+"a", ","), item{}),
				guest.ErrKey},
			"long parts":    {run.EmitKey("a", []string{long}, item{}), guest.ErrKey},
			"delete":        {run.DeleteKey("a", []string{""}), guest.ErrKey},
			"large":         {run.Emit("a", "k", map[string]any{"x": strings.Repeat("x", abi.MiB)}), guest.ErrTooLarge},
			"no object":     {run.Emit("a", "k", []int{1}), guest.ErrNotObject},
			"nil":           {run.Emit("a", "k", nil), guest.ErrNotObject},
			"nil pointer":   {run.Emit("a", "k", (*item)(nil)), guest.ErrNotObject},
			"nil record":    {run.Emit("a", "k", (*guest.Record)(nil)), guest.ErrNotObject},
			"raw no object": {run.Emit("a", "k", json.RawMessage("[]")), guest.ErrNotObject},
			"cursor":        {run.Checkpoint("a", 5), guest.ErrNotObject},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", name, c.err, c.want)
			}
		}
		for name, err := range map[string]error{
			"raw no JSON": run.Emit("a", "k", json.RawMessage("{")),
			"NaN":         guest.NewRecord().Float("x", nan()).Emit("k"),
			"no run":      guest.NewRecord().Emit("k"),
			"bad record":  run.Emit("a", "k", guest.NewRecord().Raw("x", []byte("{")).Int("y", 1)),
			"repeated":    run.Emit("a", "k", guest.NewRecord().Int("id", 1).Int("id", 2)),
			"again":       run.Emit("b", "k", guest.NewRecord().Int("id", 1).Int("id", 2)),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		return run.Emit("a", "k", item{"after all that"})
	})
	if rs := h.records(t); exit != 0 || len(rs) != 1 || string(rs[0].Data) != `{"id":"after all that"}` || run0(h.last()) {
		t.Errorf("exit %d, records %v, %s", exit, rs, h.last())
	}
}

func nan() float64 { z := 0.0; return z / z }

func run0(done string) bool { return !strings.Contains(done, `"records_emitted":1`) }

// TestFrames: a frame ends at 64 KiB or 1,000 records, and every other call
// sends what is there first.
func TestFrames(t *testing.T) {
	h := &tape{}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		for i := range 2500 {
			if err := run.Emit("a", strconv.Itoa(i), item{"x"}); err != nil {
				return err
			}
		}
		if err := run.Progress("p"); err != nil {
			return err
		}
		large := map[string]string{"x": strings.Repeat("x", 40_000)}
		for i := range 5 {
			if err := run.Emit("a", strconv.Itoa(i), large); err != nil {
				return err
			}
		}
		largest := map[string]string{"x": strings.Repeat("x", abi.MiB-8)} // 1 MiB as JSON
		if err := errors.Join(run.Emit("a", "1", large), run.Emit("a", "2", largest),
			run.Emit("a", "3", largest)); err != nil {
			return err
		}
		return run.Flush()
	})
	want := []string{
		"start", "emit 1000 records", "emit 1000 records", "emit 500 records", `progress {"message":"p"}`,
		"emit 2 records", "emit 2 records", "emit 2 records", "emit 1 records", "emit 1 records",
		`done {"status":"succeeded","records_emitted":2508}`,
	}
	if got := strings.Join(h.calls, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("calls\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	for _, f := range h.frames {
		if len(f) > abi.DefaultFrameBytes {
			t.Errorf("frame of %d bytes", len(f))
		}
	}
	for i, r := range h.records(t)[:2500] {
		if string(r.Key) != strconv.Itoa(i) {
			t.Fatalf("record %d has key %s", i, r.Key)
		}
	}
}

// TestFullFrame: a record that does not fit behind the others is the first of the
// next frame, unharmed.
func TestFullFrame(t *testing.T) {
	h := &tape{}
	small, large := strings.Repeat("s", 65_400), strings.Repeat("l", abi.MiB-8)
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		return errors.Join(run.Emit("a", "small", map[string]string{"x": small}),
			run.EmitKey("a", []string{strings.Repeat("k", 1000)}, map[string]string{"x": large}))
	})
	rs := h.records(t)
	if len(h.frames) != 2 || len(rs) != 2 || string(rs[0].Data) != `{"x":"`+small+`"}` ||
		string(rs[1].Data) != `{"x":"`+large+`"}` || rs[1].KeyKind != abi.KeyCompound {
		t.Errorf("%d frames, %d records", len(h.frames), len(rs))
	}
}

// TestEmitCopies: what is emitted may change afterwards.
func TestEmitCopies(t *testing.T) {
	h := &tape{}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		raw, m := []byte(`{"id":"1"}`), &item{"1"}
		err := errors.Join(run.Emit("a", "r", raw), run.Emit("a", "m", m))
		raw[7], m.ID = '2', "2"
		return err
	})
	for _, r := range h.records(t) {
		if string(r.Data) != `{"id":"1"}` {
			t.Errorf("%s: %s", r.Key, r.Data)
		}
	}
}

// TestEmitAllocates: a record costs no memory once the frame has grown.
func TestEmitAllocates(t *testing.T) {
	h := &tape{}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		m, rec := &item{"1"}, run.Record("a")
		for name, emit := range map[string]func() error{
			"struct": func() error { return run.Emit("a", "k", m) },
			"record": func() error { return rec.Reset().String("id", "1").Int("n", 5).Emit("k") },
		} {
			// 900 records fit into one frame, so that none is sent meanwhile.
			if err := errors.Join(run.Flush(), emit()); err != nil {
				return err
			}
			if n := testing.AllocsPerRun(900, func() {
				if err := emit(); err != nil {
					t.Error(err)
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations a record", name, n)
			}
		}
		return nil
	})
}

// TestGoldenFrames holds the SDK to abi/testdata: the frames of good
// records.
func TestGoldenFrames(t *testing.T) {
	var frames []struct {
		Name, Frame string
		Records     []struct {
			Op        int
			KeyKind   int `json:"key_kind"`
			Stream    int
			EmittedAt string `json:"emitted_at"`
			Key, Data string
		}
		Error any
	}
	golden(t, "frames.json", &frames)
	tried := 0
	for _, f := range frames {
		if f.Error != nil || len(f.Records) == 0 {
			continue
		}
		h := &tape{start: strings.Replace(tapeStart, `{"name":"b","fields":["id"]}`, streams(300), 1)}
		good := true
		h.drive(t, func(_ context.Context, run *guest.Run) error {
			for _, r := range f.Records {
				micros, err := strconv.ParseInt(r.EmittedAt, 10, 64)
				if err != nil || r.Op > 1 || r.KeyKind > 1 || r.Stream >= 300 || r.Key == "" || (r.Op == 0) == (r.Data == "") ||
					r.Op == 1 && (r.Data != "" || micros != 0) {
					good = false // no record that the SDK would send
					return nil
				}
				stream := "a"
				if r.Stream > 0 {
					stream = "s" + strconv.Itoa(r.Stream)
				}
				switch {
				case r.Op == 1:
					err = run.Delete(stream, r.Key)
				case r.KeyKind == 1:
					var parts []string
					if err := json.Unmarshal([]byte(r.Key), &parts); err != nil || micros != 1767225600000000 && micros != 0 {
						good = false
						return nil
					}
					err = run.EmitKeyAt(stream, parts, json.RawMessage(r.Data), time.UnixMicro(micros))
				case micros == 0:
					err = run.Emit(stream, r.Key, json.RawMessage(r.Data))
				default:
					err = run.EmitAt(stream, r.Key, json.RawMessage(r.Data), time.UnixMicro(micros))
				}
				if err != nil {
					t.Errorf("%s: %v", f.Name, err)
				}
			}
			return nil
		})
		if !good {
			continue
		}
		tried++
		want, err := hex.DecodeString(f.Frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Join(h.frames, nil); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%x\nwant\n%x", f.Name, got, want)
		}
	}
	if tried < 4 {
		t.Errorf("only %d frames are such as the SDK sends", tried)
	}
}

func golden(t *testing.T, file string, v any) {
	t.Helper()
	b, err := os.ReadFile("../abi/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// streams are scope entries s1 to s(n-1).
func streams(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		if i > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"s%d"}`, i)
	}
	return b.String()
}
