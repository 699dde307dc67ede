package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/schedule"
)

// TestParseRefuses: what is no expression is refused, and what the owner reads.
func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                              "empty",
		strings.Repeat("1,", 128) + "1": "longer than",
		"TZ=UTC 0 0 * * *":              "timezone",
		"CRON_TZ=":                      "timezone",
		"TZ=":                           "timezone",
		"0 0 * * *\n":                   "character",
		"0 0 * * * *":                   "6 fields",
		"0 0 * *":                       "4 fields",
		"60 0 * * *":                    "minute: a value is not from 0 to 59",
		"0 24 * * *":                    "hour",
		"0 0 0 * *":                     "day of month",
		"0 0 * 13 *":                    "month",
		"0 0 * * 7":                     "Sunday is 0",
		"0-59/1000000000000 * * * *":    "step",
		"*/61 * * * *":                  "step",
		"*/0 * * * *":                   "step",
		"1,,2 * * * *":                  "missing",
		"5-1 * * * *":                   "ends before",
		"0 0 * foo *":                   "month",
		"0 0 1.5 * *":                   "character",
		"@reboot":                       "no such schedule",
		"@Daily":                        "no such schedule",
		"@every":                        "no such schedule",
		"@every 0s":                     "one second",
		"@every -5m":                    "one second",
		"@every 999ms":                  "one second",
		"@every 9000h":                  "one year",
		"@every soon":                   "wants a duration",
		"@every 1h TZ=UTC":              "timezone",
		"1-2-3 * * * *":                 "not from 0 to 59",
		"1/2/3 * * * *":                 "step",
	} {
		_, err := schedule.Parse(text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
			continue
		}
		for part := range strings.FieldsSeq(text) {
			if len(part) > 1 && part != "@every" && strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v repeats what was given", text, err)
			}
		}
	}
}

// TestParse: what an expression means.
func TestParse(t *testing.T) {
	after := time.Date(2026, 1, 31, 10, 7, 30, 1, time.UTC)
	for text, want := range map[string]string{
		"*/15 * * * *":           "2026-01-31T10:15:00Z",
		"5 4 * * sun":            "2026-02-01T04:05:00Z",
		"0 0 13 * FRI":           "2026-02-06T00:00:00Z", // either may match
		"0 9-17/4 * feb-mar mon": "2026-02-02T09:00:00Z",
		" 0  0 1 1 ? ":           "2027-01-01T00:00:00Z",
		"@annually":              "2027-01-01T00:00:00Z",
		"@midnight":              "2026-02-01T00:00:00Z",
		"@hourly":                "2026-01-31T11:00:00Z",
		"@every 1h30m":           "2026-01-31T11:37:30Z",
		"@every 1.5s":            "2026-01-31T10:07:31Z",
		"@every 1000000µs":       "2026-01-31T10:07:31Z",
		"0 0 29 2 *":             "2028-02-29T00:00:00Z",
		"59 23 31 12 *":          "2026-12-31T23:59:00Z",
		"0 0,12 * * 1-5":         "2026-02-02T00:00:00Z",
		"*/59 * * * *":           "2026-01-31T10:59:00Z",
		"0 0 1 jan,JUL *":        "2026-07-01T00:00:00Z",
		"8 10 31 1 *":            "2026-01-31T10:08:00Z",
	} {
		e, err := schedule.Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, err := e.Next(after, time.UTC); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
}

// TestNever: an expression that never fires is found out in bounded time.
func TestNever(t *testing.T) {
	for _, text := range []string{"0 0 30 2 *", "*/5 * 31 4,6,9,11 *"} {
		e, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if at, err := e.Next(time.Now(), time.UTC); !errors.Is(err, schedule.ErrNever) {
			t.Errorf("%s: %s %v", text, at, err)
		}
	}
	if at, err := (schedule.Expression{}).Next(time.Now(), time.UTC); !errors.Is(err, schedule.ErrNever) {
		t.Errorf("the zero expression fires at %s: %v", at, err)
	}
}

// TestZoneRefuses: a zone is a name, never a path or the host's own.
func TestZoneRefuses(t *testing.T) {
	for _, name := range []string{"Local", "../etc/passwd", "/etc/localtime", "Mars/Olympus", "Europe/Berlin\x00",
		strings.Repeat("a", 65), "Europe Berlin"} {
		var e *host.Refusal
		if _, err := schedule.LoadZone(name); !errors.As(err, &e) || e.Code != schedule.CodeInvalid ||
			e.Details["field"] != "timezone" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// FuzzParse: Nothing panics, nothing with a zone of its own is accepted, and
// what is accepted goes forwards.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"TZ=", "CRON_TZ=UTC", "TZ=UTC * * * * *", "0-59/1000000000000 * * * *", "@every 1h",
		"@every -1h", "@every 1ns",
		"0 0 30 2 *", "*/5 0-3 ? jan sun", ",,,, , , , ,", "@daily", "1-2-3 * * * *"} {
		f.Add(s, int64(1700000000))
	}
	zone, err := time.LoadLocation("Australia/Lord_Howe")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		e, err := schedule.Parse(text)
		if err != nil {
			return
		}
		if strings.Contains(text, "=") || len(text) > 256 {
			t.Fatalf("accepted %q", text)
		}
		again, err := schedule.Parse(e.String())
		if err != nil || again.String() != e.String() {
			t.Fatalf("%q is read as %q, and then %q %v", text, e, again, err)
		}
		after := time.Unix(unix%4e9, 0)
		next, err := e.Next(after, zone)
		switch {
		case errors.Is(err, schedule.ErrNever):
		case err != nil:
			t.Fatalf("%q: %v", text, err)
		case !next.After(after):
			t.Fatalf("%q after %s fires at %s", text, after, next)
		}
	})
}
