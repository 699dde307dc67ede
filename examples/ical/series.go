package main

import (
	"slices"
	"time"
)

// A window is the days for which repetitions are listed.
type window struct {
	since, until time.Time
	limit        int
}

// A series is the repetitions of one event that were changed.
type series map[string][]*event // by UID

func seriesOf(events []*event) series {
	s := series{}
	for _, e := range events {
		if e.replaces != "" {
			s[e.uid] = append(s[e.uid], e)
		}
	}
	return s
}

// occurrences lists when an event that repeats takes place within the window,
// repetitions that were moved or called off taken into account.
func (s series) occurrences(e *event, w window) ([]string, error) {
	list := []string{}
	if !e.recurring || e.replaces != "" || w.limit <= 0 || !w.since.Before(w.until) {
		return list, nil
	}
	r := e.recurrence
	changed := s[e.uid]
	if len(changed) > 0 {
		r.not = make(map[int64]bool, len(e.recurrence.not)+len(changed))
		for t := range e.recurrence.not {
			r.not[t] = true
		}
	}
	var moments []moment
	for _, c := range changed {
		r.not[r.onClock(c.instead).Unix()] = true
		if at := c.start.instant(); c.timed && !c.cancelled() && !at.Before(w.since) && at.Before(w.until) {
			moments = append(moments, c.start)
		}
	}
	regular, err := r.between(w.since, w.until, w.limit)
	moments = append(moments, regular...)
	slices.SortFunc(moments, func(a, b moment) int { return a.instant().Compare(b.instant()) })
	for _, m := range moments[:min(len(moments), w.limit)] {
		list = append(list, m.String())
	}
	return list, err
}
