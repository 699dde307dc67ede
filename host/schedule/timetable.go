package schedule

import "time"

// A timetable is a definition that is ready to be evaluated.
type timetable struct {
	expression Expression
	zone       *time.Location
	interval   time.Duration // 0 for a cron
}

func (d Definition) timetable() (timetable, error) {
	if d.Cron == "" {
		return timetable{interval: time.Duration(d.IntervalSeconds) * time.Second}, nil
	}
	e, err := Parse(d.Cron)
	if err != nil {
		return timetable{}, err
	}
	zone, err := LoadZone(d.Timezone)
	return timetable{expression: e, zone: zone}, err
}

// bogus is how far ahead of the clock an instant lies that the clock cannot have
// shown: it was wrong then, and what was noted is forgotten. A clock that is set
// back by less never repeats a slot.
const bogus = 7 * 24 * time.Hour

func believed(t, now time.Time) time.Time {
	if t.After(now.Add(bogus)) {
		return time.Time{}
	}
	return t
}

// next is the slot that follows the last one: strictly after now, and after what
// was dispatched already. last is the last slot or start, zero when there was
// none. An interval and @every stay on their grid, so that a tick that was
// skipped does not move the following ones.
func (t timetable) next(now, last time.Time) (time.Time, error) {
	last = believed(last, now)
	step := t.interval
	if step == 0 {
		step = t.expression.every
	}
	switch {
	case step > 0 && last.IsZero():
		return now.Add(step), nil
	case step > 0:
		if behind := now.Sub(last); behind >= 0 {
			step *= behind/step + 1
		}
		return last.Add(step), nil
	case last.After(now):
		return t.expression.Next(last, t.zone)
	}
	return t.expression.Next(now, t.zone)
}

// first is the slot of a schedule that begins or begins again now: an
// interval is due at once unless a run started less than an interval ago.
func (t timetable) first(now, last time.Time) (time.Time, error) {
	if t.interval == 0 {
		return t.next(now, last)
	}
	if last = believed(last, now); last.IsZero() || last.Add(t.interval).Before(now) {
		return now, nil
	}
	return last.Add(t.interval), nil
}

// distance is how far apart a slot and the following one are: the base of the
// back-off, and what is compared with the manifest's least interval.
func (t timetable) distance(from time.Time) (time.Duration, error) {
	next, err := t.next(from, from)
	return next.Sub(from), err
}
