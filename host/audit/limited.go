package audit

import (
	"sync"
	"time"
)

// How much of one kind a Limited writes down, and how many kinds it tells apart.
const (
	limitLines  = 10
	limitWindow = time.Hour
	limitKinds  = 1000
)

// A Limited writes refusals to the log without letting whoever causes them fill the disk: ten an
// hour of one target and code, and one line with the count of the others at the end of the hour
// or at Close. The request log has them all.
type Limited struct {
	log *Log
	now func() time.Time

	mu    sync.Mutex // guards what follows; not held while a line is written
	kinds map[kind]*window
}

type kind struct{ target, code string }

type window struct {
	began  time.Time
	told   int
	untold int64
}

// NewLimited returns a Limited that writes to a log.
func NewLimited(l *Log) *Limited {
	return &Limited{log: l, now: time.Now, kinds: map[kind]*window{}}
}

// Refused counts a refusal, and writes it down while there is room.
func (l *Limited) Refused(target, code, run string) error {
	target, code = short(target, maxTarget), short(code, maxValue)
	tell, late := l.count(kind{target, code})
	if tell {
		late = append(late, Event{Action: PolicyRefused, Target: target, Outcome: Refused, Actor: "host", Details: []Detail{Code(code), Run(run)}})
	}
	if len(late) == 0 {
		return nil
	}
	return l.log.Append(late...)
}

// count reports whether a refusal is to be written down, and what windows that
// are over have left to tell.
func (l *Limited) count(k kind) (tell bool, late []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	late = l.over(now)
	if len(l.kinds) >= limitKinds && l.kinds[k] == nil {
		k = kind{code: "others"}
	}
	w := l.kinds[k]
	if w == nil {
		w = &window{began: now}
		l.kinds[k] = w
	}
	if w.told < limitLines {
		w.told++
		return true, late
	}
	w.untold++
	return false, late
}

// over ends the windows that began an hour before a time.
func (l *Limited) over(now time.Time) (late []Event) {
	for k, w := range l.kinds {
		if now.Sub(w.began) < limitWindow {
			continue
		}
		if delete(l.kinds, k); w.untold > 0 {
			late = append(late, Event{Action: PolicyRefused, Target: k.target, Outcome: Refused, Actor: "host", Details: []Detail{Code(k.code), Count(w.untold)}})
		}
	}
	return late
}

// Close writes the counts that are not written yet.
func (l *Limited) Close() error {
	l.mu.Lock()
	late := l.over(l.now().Add(limitWindow))
	l.mu.Unlock()
	if len(late) == 0 {
		return nil
	}
	return l.log.Append(late...)
}
