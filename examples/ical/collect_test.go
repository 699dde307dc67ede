package main

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

// A shelf is a folder of calendar files.
type shelf struct {
	t   *testing.T
	dir string
}

func newShelf(t *testing.T) *shelf { return &shelf{t, t.TempDir()} }

// write writes a file, with the line ends that calendars have.
func (s *shelf) write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(content, "\n", "\r\n")), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) remove(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

// collect runs the connector. It fails the test when the run does.
func (s *shelf) collect(o guesttest.Options) *guesttest.Result {
	s.t.Helper()
	o.Manifest, o.Files = manifest, map[string]string{"calendars": s.dir}
	if o.Config == nil {
		o.Config = map[string]any{"window_start": "2025-01-01", "window_days": 365}
	}
	res := guesttest.Run(s.t, connector, o)
	if res.Status != abi.Succeeded {
		s.t.Fatalf("status %s, done %+v", res.Status, res.Done)
	}
	return res
}

// again runs the connector on what the last run left.
func (s *shelf) again(last *guesttest.Result) *guesttest.Result {
	s.t.Helper()
	return s.collect(guesttest.Options{State: stateAfter(last)})
}

func stateAfter(res *guesttest.Result) map[string]any {
	state := map[string]any{}
	for stream, cursor := range res.States {
		state[stream] = cursor
	}
	return state
}

// calendarOf wraps components into a calendar.
func calendarOf(components ...string) string {
	return "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//\n" + strings.Join(components, "") + "END:VCALENDAR\n"
}

// eventOf makes a VEVENT of lines.
func eventOf(lines ...string) string {
	return "BEGIN:VEVENT\n" + strings.Join(lines, "\n") + "\nEND:VEVENT\n"
}

// events returns the records of events by summary.
func events(t *testing.T, res *guesttest.Result) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, r := range res.Records["events"] {
		if r.Deleted {
			continue
		}
		m := fields(t, r)
		summary, _ := m["summary"].(string)
		out[summary] = m
	}
	return out
}

func fields(t *testing.T, r guesttest.Record) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(r.Data, &m); err != nil {
		t.Fatalf("record %s: %v", r.Key, err)
	}
	return m
}

func texts(v any) []string {
	out := []string{}
	for _, item := range v.([]any) {
		out = append(out, item.(string))
	}
	return out
}

func reasons(res *guesttest.Result) []string {
	var out []string
	for _, s := range res.Skips {
		out = append(out, s.Reason)
	}
	return out
}
