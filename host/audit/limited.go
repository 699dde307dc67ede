package audit

import (
	"sync"
	"time"
)

// How many refusals of a kind a Limited records, and how many kinds it distinguishes.
const (
	limitLines  = 10
	limitWindow = time.Hour
	limitKinds  = 1000
)

// A Limited records refusals without letting whoever causes them fill the disk: ten an hour for
// each target and code, and one line with the count of the others at the end of the hour or at
// Close. The request log has all of them.
type Limited struct {
	log *Log
	now func() time.Time

	mu    sync.Mutex // guards the fields below; not held while a line is written
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

// Refused counts a refusal and records it if the limit permits.
func (l *Limited) Refused(target, code, run string) error {
	target, code = short(target, maxTarget), short(code, maxValue)
	tell, late := l.count(kind{target, code})
	if tell {
		late = append(late, Event{Action: PolicyRefused, Target: target, Outcome: Refused, Actor: "host",
			Details: []Detail{Code(code), Run(run)}})
	}
	if len(late) == 0 {
		return nil
	}
	return l.log.Append(late...)
}

// count reports whether to record a refusal, and returns the counts of windows that have ended.
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

// over ends the windows that began an hour before now.
func (l *Limited) over(now time.Time) (late []Event) {
	for k, w := range l.kinds {
		if now.Sub(w.began) < limitWindow {
			continue
		}
		if delete(l.kinds, k); w.untold > 0 {
			late = append(late, Event{Action: PolicyRefused, Target: k.target, Outcome: Refused, Actor: "host",
				Details: []Detail{Code(k.code), Count(w.untold)}})
		}
	}
	return late
}

// Close records the remaining counts.
func (l *Limited) Close() error {
	l.mu.Lock()
	late := l.over(l.now().Add(limitWindow))
	l.mu.Unlock()
	if len(late) == 0 {
		return nil
	}
	return l.log.Append(late...)
}
