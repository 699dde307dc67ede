package abi_test

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// Instant takes RFC 3339 with a zone, leap seconds too, and nothing else.
func TestInstant(t *testing.T) {
	for text, want := range map[string]string{
		"2026-03-01T12:00:00Z": "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.25+02:00": "2026-03-01T10:00:00.25Z", "2016-12-31T23:59:60Z": "2017-01-01T00:00:00Z",
		"2026-03-01": "", "2026-03-01T12:00:00": "", "2026-03-01T12:00Z": "", "": "", "Z": "", "2026-03-01T12:00:61Z": "", "2026-03-01T12:00:60Z": "", "20260301T120000.000Z": "",
	} {
		at, ok := abi.Instant(text)
		if got := at.Format(time.RFC3339Nano); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s %t", text, got, ok)
		}
	}
}
