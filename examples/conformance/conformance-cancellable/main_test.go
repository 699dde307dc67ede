//go:build !wasip1

package main

import (
	_ "embed"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

// The connector waits for the time in its settings, and reports progress.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		config any
		want   time.Duration
	}{
		{nil, 30 * time.Second}, {map[string]any{"delayMs": 1}, time.Millisecond},
		{map[string]any{"delayMs": 1200.5}, 1200*time.Millisecond + 500*time.Microsecond},
		{map[string]any{"delayMs": nil}, 30 * time.Second}, {map[string]any{"delayMs": 60000}, 60000 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := time.Now()
			res := guesttest.Run(t, connector, guesttest.Options{Manifest: manifest, Config: c.config})
			if took := time.Since(from); took != c.want || res.Status != abi.Succeeded {
				t.Errorf("%v: took %v\n%s", c.config, took, res.Transcript)
			}
			if n := len(res.Progress); n != int((c.want+slice-1)/slice) {
				t.Errorf("%v: %d reports", c.config, n)
			}
		})
	}
}

// A cancel takes effect while it waits.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, calls := time.Now(), 0
		res := guesttest.Run(t, connector, guesttest.Options{
			Manifest: manifest, Config: map[string]any{"delayMs": 60000},
			Cancel: func(abi.Call) bool { calls++; return calls == 3 },
		})
		if took := time.Since(from); took != 3*slice || res.Status != abi.Cancelled || res.ExitCode == 0 {
			t.Errorf("took %v\n%s", took, res.Transcript)
		}
	})
}

// What is out of range is refused before a run starts.
func TestRange(t *testing.T) {
	m, err := abi.ReadManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for config, good := range map[string]bool{
		`{}`: true, `{"delayMs":1}`: true, `{"delayMs":60000}`: true,
		`{"delayMs":0.5}`: false, `{"delayMs":60000.5}`: false, `{"delayMs":"1"}`: false, `{"delayMs":1e9}`: false,
	} {
		v, err := strictjson.Parse([]byte(config), strictjson.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Sluice.Settings.Check(v); (err == nil) != good {
			t.Errorf("%s: %v", config, err)
		}
	}
	if d := string(m.Sluice.Settings.Properties[0].Default); d != "30000" {
		t.Errorf("default %s", d)
	}
}
