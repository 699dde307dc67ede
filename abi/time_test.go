package abi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// timeLayouts are the forms of a readable time in the words of package time.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04",
	"2006-01-02", "2006-01", "2006"}

// FuzzTime compares ParseTime with package time. That one is more lenient, so
// each text it takes must have the same value here or be refused here; and
// what it does not take must be refused, leap seconds aside.
func FuzzTime(f *testing.F) {
	for _, v := range vectors[struct {
		Raw    string
		Micros *string
	}](f, "times.json") {
		if v.Raw[0] == '"' {
			f.Add(strictjson.String([]byte(v.Raw)))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := abi.ParseTime(text)
		if raw, rawOK := abi.TimeOf(strictjson.AppendQuote(nil, text)); rawOK != ok || raw != got {
			t.Errorf("as JSON %d, %v; as text %d, %v", raw, rawOK, got, ok)
		}
		if !ok {
			if got != 0 {
				t.Errorf("refused with the value %d", got)
			}
			return
		}
		upper := strings.ToUpper(text)
		if len(upper) > 18 && upper[17:19] == "60" {
			before, ok := abi.ParseTime(upper[:17] + "59" + upper[19:])
			if !ok || before+1_000_000 != got {
				t.Errorf("leap second at %d, the second before at %d", got, before)
			}
			return
		}
		for _, layout := range timeLayouts {
			if want, err := time.Parse(layout, upper); err == nil {
				if got != want.UnixMicro() {
					t.Errorf("%q: %d, want %d", text, got, want.UnixMicro())
				}
				return
			}
		}
		t.Errorf("%q is no time but was read as %d", text, got)
	})
}

// TestTimeRoundTrip formats an instant of every day of 800 years and reads it.
func TestTimeRoundTrip(t *testing.T) {
	at := time.Date(1599, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	for range 800 * 366 {
		text := at.Format(time.RFC3339Nano)
		if got, ok := abi.ParseTime(text); !ok || got != at.UnixMicro() {
			t.Fatalf("%s: %d, %v; want %d", text, got, ok, at.UnixMicro())
		}
		at = at.Add(24*time.Hour + 61*time.Second + 7*time.Microsecond)
	}
}

// Instant takes RFC 3339 with a zone, leap seconds too, and nothing else.
func TestInstant(t *testing.T) {
	for text, want := range map[string]string{
		"2026-03-01T12:00:00Z": "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.25+02:00": "2026-03-01T10:00:00.25Z",
		"2016-12-31T23:59:60Z": "2017-01-01T00:00:00Z", "2026-03-01": "", "2026-03-01T12:00:00": "", "2026-03-01T12:00Z": "",
		"": "", "Z": "", "2026-03-01T12:00:61Z": "", "2026-03-01T12:00:60Z": "", "20260301T120000.000Z": "",
	} {
		at, ok := abi.Instant(text)
		if got := at.Format(time.RFC3339Nano); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s %t", text, got, ok)
		}
	}
}
