package export

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// What is left of a record's data is spelled as it was, in its order.
func TestOnly(t *testing.T) {
	r := store.Record{Stream: "s", Key: "k",
		Data: json.RawMessage(`{"b" : 1.50, "a\u0062" :"<\u00e9>", "c":{"d": null}, "e":2}`)}
	got, err := Only(r, map[string]bool{"b": true, "ab": true, "c": true, "none": true})
	if want := `{"b":1.50,"ab":"<\u00e9>","c":{"d": null}}`; err != nil || string(got.Data) != want {
		t.Errorf("%s, %v, want %s", got.Data, err, want)
	}
	if got, err := Only(r, nil); err != nil || string(got.Data) != string(r.Data) {
		t.Errorf("%s, %v", got.Data, err)
	}
	if got, err := Only(store.Record{Deleted: true}, map[string]bool{}); err != nil || got.Data != nil {
		t.Errorf("a tombstone: %s, %v", got.Data, err)
	}
	if _, err := Only(store.Record{Data: json.RawMessage(`[`)}, map[string]bool{}); err == nil {
		t.Error("data that is none")
	}
}

// Keys of both kinds, and tombstones.
func TestLineOf(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_700_000, time.FixedZone("", 3600))
	for want, r := range map[string]store.Record{
		`{"connectionId":"c","stream":"s","key":"a\"b","data":{"x":1},"emittedAt":"2026-01-02T02:04:05.006Z","ingestedAt":"2026-01-02T02:04:05.006Z","version":7,"runId":"run_1"}`: {
			Key: `a"b`, Data: json.RawMessage(`{"x":1}`)},
		`{"connectionId":"c","stream":"s","key":["a","b"],"emittedAt":"2026-01-02T02:04:05.006Z","ingestedAt":"2026-01-02T02:04:05.006Z","version":7,"runId":"run_1","deleted":true,"deletedAt":"2026-01-02T02:04:05.006Z"}`: {
			Key: `["a","b"]`, Compound: true, Deleted: true},
	} {
		r.Stream, r.EmittedAt, r.IngestedAt, r.Version, r.RunID = "s", at, at, 7, "run_1"
		if b, err := json.Marshal(LineOf("c", r)); err != nil || string(b) != want {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
		if b := appendLine(nil, "c", r); string(b) != want {
			t.Errorf("%s, want %s", b, want)
		}
	}
}

// Times are appended as they are rendered.
func TestTimes(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.UnixMilli(1_700_000_000_007),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 2, 28, 23, 5, 0, 120e6, time.FixedZone("", -3600))} {
		if got, want := string(store.AppendTime(nil, at)), store.Time(at); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
