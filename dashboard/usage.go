package dashboard

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// A fact is a name and a value of a list.
type fact struct{ Name, Value string }

// usedOf is what a run that is over has used, as its result says.
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

// budgets are the limits of the host that are about the time of a run.
func budgets(limits map[string]int64) []fact {
	var out []fact
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if strings.Contains(name, "budget") || strings.HasPrefix(name, "run.") {
			f := measured(name, limits[name])
			f.Value = lasted(time.Duration(limits[name]) * time.Millisecond)
			out = append(out, f)
		}
	}
	return out
}

// measured shows a number by the unit that its name ends with.
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
