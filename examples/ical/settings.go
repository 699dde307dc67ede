package main

import (
	"fmt"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Settings are the connection's.
type settings struct {
	WindowStart         string `json:"window_start"`
	WindowDays          *int   `json:"window_days"`
	MaxOccurrences      *int   `json:"max_occurrences"`
	IncludeDescriptions *bool  `json:"include_descriptions"`

	window window
}

const (
	defaultDays        = 92
	maxDays            = 3660
	defaultOccurrences = 100
	maxOccurrences     = 5000
)

// readSettings reads and checks them. Unless told otherwise the window starts
// with the month of now: were it to start now, every run would change every
// event that repeats.
func readSettings(run *guest.Run, now time.Time) (*settings, error) {
	var s settings
	if err := run.Config(&s); err != nil {
		return nil, invalid("%w", err)
	}
	start := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	if s.WindowStart != "" {
		var err error
		if start, err = time.Parse(time.DateOnly, s.WindowStart); err != nil {
			return nil, invalid("window_start is not a date: %q", s.WindowStart)
		}
	}
	days, err := within("window_days", s.WindowDays, defaultDays, maxDays)
	if err != nil {
		return nil, err
	}
	limit, err := within("max_occurrences", s.MaxOccurrences, defaultOccurrences, maxOccurrences)
	if err != nil {
		return nil, err
	}
	s.window = window{start, start.AddDate(0, 0, days), limit}
	return &s, nil
}

func within(name string, v *int, absent, most int) (int, error) {
	if v == nil {
		return absent, nil
	}
	if *v < 0 || *v > most {
		return 0, invalid("%s is %d: want 0 to %d", name, *v, most)
	}
	return *v, nil
}

func invalid(format string, args ...any) error {
	return guest.Fail("invalid_settings", false, guest.ManualActionRequired, "settings: %w", fmt.Errorf(format, args...))
}

func (s *settings) descriptions() bool { return s.IncludeDescriptions == nil || *s.IncludeDescriptions }

// edition changes when this connector makes something else of the same file.
const edition = 2

// shape is what of the settings decides what is in a record.
func (s *settings) shape() any {
	return []any{s.window.since.Format(time.DateOnly), s.window.until.Format(time.DateOnly), s.window.limit,
		s.descriptions(), edition}
}
