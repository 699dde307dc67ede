package schedule

import (
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host"
)

// A streak counts consecutive failures of ticks for the same reason.
type streak struct {
	Class string    `json:"class"`
	Count int       `json:"count"`
	At    time.Time `json:"at"` // of the latest failure
}

// after returns the streak after one more record.
func (k streak) after(t host.Tick, at time.Time) streak {
	switch t.Status {
	case "succeeded":
		return streak{}
	case "failed":
		class := reasonClass(t)
		if class != k.Class {
			k.Count = 0
		}
		return streak{class, k.Count + 1, at}
	}
	return k
}

// state returns cooling_off, blocked, or "" for a short streak.
func (k streak) state() string {
	switch {
	case k.Count >= blockedFrom:
		return Blocked
	case k.Count >= coolingFrom:
		return CoolingOff
	}
	return ""
}

// until returns when the next automatic run may start; the zero time means any time.
func (k streak) until(t timetable) (time.Time, error) {
	if k.Count < coolingFrom {
		return time.Time{}, nil
	}
	base, err := t.distance(k.At)
	if err != nil {
		return time.Time{}, fmt.Errorf("back-off: %w", err)
	}
	wait := min(base, longestDelay) << min(k.Count-coolingFrom, 8)
	return k.At.Add(min(wait, longestDelay)), nil
}

// Numbers of failures at which the states begin, and the longest delay.
const (
	coolingFrom  = 3
	blockedFrom  = 7
	longestDelay = 24 * time.Hour
)

// The states of a streak.
const (
	CoolingOff = "cooling_off"
	Blocked    = "blocked"
)
