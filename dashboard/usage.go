package dashboard

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A fact is a name and a value in a list.
type fact struct{ Name, Value string }

// usedOf returns what a finished run used, from its result.
func usedOf(result json.RawMessage) []fact {
	var r struct {
		Usage map[string]json.Number
	}
	if json.Unmarshal(result, &r) != nil {
		return nil
	}
	var out []fact
	for _, name := range slices.Sorted(maps.Keys(r.Usage)) {
		n, err := r.Usage[name].Int64()
		if err == nil && n != 0 {
			out = append(out, measured(name, n))
		}
	}
	return out
}

// A budget is a limit on a run's time, and how much of it is used.
type budget struct {
	fact
	Used  string  // "" if unknown
	Share float64 // in percent
}

// spent returns the used milliseconds of a run's budgets, keyed by the names of the limits.
func spent(r store.Run, live *host.LiveRun, now time.Time) map[string]int64 {
	var result struct {
		Usage map[string]int64
	}
	if live != nil && r.FinishedAt == nil {
		u := live.Usage
		return map[string]int64{"budget.compute": u.CPU.Milliseconds(), "budget.owner_wait": u.OwnerWait.Milliseconds(),
			"budget.pause": u.Paused.Milliseconds(), "budget.total": (now.Sub(r.StartedAt) - u.Paused).Milliseconds()}
	}
	if json.Unmarshal(r.Result, &result) != nil {
		return nil
	}
	out := map[string]int64{}
	for name, used := range map[string]string{"budget.compute": "cpu_ms", "budget.total": "wall_ms",
		"budget.owner_wait": "owner_wait_ms", "budget.pause": "paused_ms"} {
		if n, ok := result.Usage[used]; ok {
			out[name] = n
		}
	}
	return out
}

// budgets returns the host's limits on the time of a run.
func budgets(limits, used map[string]int64) []budget {
	var out []budget
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if strings.Contains(name, "budget") || strings.HasPrefix(name, "run.") {
			b := budget{fact: measured(name, limits[name])}
			b.Value = lasted(time.Duration(limits[name]) * time.Millisecond)
			if n, ok := used[name]; ok && limits[name] > 0 {
				b.Used = lasted(time.Duration(n) * time.Millisecond)
				b.Share = min(round(float64(n)*100/float64(limits[name])), 100)
			}
			out = append(out, b)
		}
	}
	return out
}

// measured formats a number by the unit at the end of its name.
func measured(name string, n int64) fact {
	words := func(suffix string) string {
		name := strings.TrimSuffix(name, suffix)
		if _, last, ok := strings.Cut(name, "."); ok {
			name = last
		}
		return sentence(strings.TrimSpace(reasonWord(name)))
	}
	switch name {
	case "cpu_ms":
		return fact{"CPU", lasted(time.Duration(n) * time.Millisecond)}
	case "bytes_in":
		return fact{"Bytes from it", size(n)}
	}
	for _, u := range []struct {
		suffix string
		show   func(int64) string
	}{
		{"_ms", func(n int64) string { return lasted(time.Duration(n) * time.Millisecond) }},
		{"Ms", func(n int64) string { return lasted(time.Duration(n) * time.Millisecond) }},
		{"_seconds", func(n int64) string { return lasted(time.Duration(n) * time.Second) }},
		{"Seconds", func(n int64) string { return lasted(time.Duration(n) * time.Second) }},
		{"_bytes", func(n int64) string { return size(n) }},
		{"Bytes", func(n int64) string { return size(n) }},
	} {
		if strings.HasSuffix(name, u.suffix) {
			return fact{words(u.suffix), u.show(n)}
		}
	}
	return fact{words(""), count(n)}
}
