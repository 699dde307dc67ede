package cli

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
)

func TestFormats(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		1234 * time.Millisecond: "1.2s", 59 * time.Second: "59s", 61 * time.Second: "1m01s",
		3*time.Hour + 5*time.Minute: "3h05m",
	} {
		if got := clock(d); got != want {
			t.Errorf("clock(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{12: "12 B", 1536: "1.5 KiB", 5 << 30: "5.0 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestLineOfRun: a run that is not over has the records that are stored by now.
func TestLineOfRun(t *testing.T) {
	s := timeline.Snapshot{RunID: "run_1", Status: timeline.Running, Metrics: &timeline.Metrics{RecordsFlushed: 7}}
	if l := lineOfRun(s); l.Status != "active" || l.Records != 7 {
		t.Errorf("%+v", l)
	}
}
