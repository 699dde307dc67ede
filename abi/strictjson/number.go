package strictjson

import (
	"math"
	"strconv"
)

// MaxSafeInteger is the largest magnitude of a safe integer, 2^53-1.
const MaxSafeInteger = 1<<53 - 1

// Int64 returns the exact value of a number that a Scanner has accepted, if it is a 64-bit
// integer. Any spelling counts: 5.0 and 1e2 are integers too.
func Int64(raw []byte) (int64, bool) {
	negative := len(raw) > 0 && raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	if len(raw) == 0 || raw[0]-'0' > 9 {
		return 0, false
	}
	magnitude, ok := integer(raw)
	switch {
	case !ok:
		return 0, false
	case negative && magnitude <= 1<<63:
		return -int64(magnitude), true
	case negative || magnitude > math.MaxInt64:
		return 0, false
	default:
		return int64(magnitude), true
	}
}

// SafeInteger is Int64 for values whose magnitude is at most MaxSafeInteger.
func SafeInteger(raw []byte) (int64, bool) {
	n, ok := Int64(raw)
	if !ok || n > MaxSafeInteger || n < -MaxSafeInteger {
		return 0, false
	}
	return n, true
}

// integer returns the exact value of an unsigned number, if it is an integer.
func integer(raw []byte) (uint64, bool) {
	var (
		m      uint64 // the digits so far, without zeros at the end
		zeros  int    // at the end of m
		places int    // digits after the point
		point  bool
		exp    int
	)
	for i, c := range raw {
		switch {
		case c == '.':
			point = true
			continue
		case c|0x20 == 'e':
			exp = exponent(raw[i+1:])
		case point:
			places++
		}
		if c|0x20 == 'e' {
			break
		}
		if c == '0' {
			zeros++
			continue
		}
		var ok bool
		if m, ok = scale(m, zeros+1); !ok || m > math.MaxUint64-uint64(c-'0') {
			return 0, false
		}
		m += uint64(c - '0')
		zeros = 0
	}
	if m == 0 {
		return 0, true
	}
	return scale(m, zeros-places+exp)
}

// scale returns m × 10^exp. It reports false if that overflows or exp is negative, since m
// has no trailing zeros then.
func scale(m uint64, exp int) (uint64, bool) {
	if m == 0 {
		return 0, true
	}
	if exp < 0 || exp > 19 {
		return 0, false
	}
	for range exp {
		if m > math.MaxUint64/10 {
			return 0, false
		}
		m *= 10
	}
	return m, true
}

// exponent reads the digits after the e of a number, clamped to ±2^40.
func exponent(raw []byte) int {
	sign := 1
	if len(raw) > 0 && (raw[0] == '-' || raw[0] == '+') {
		if raw[0] == '-' {
			sign = -1
		}
		raw = raw[1:]
	}
	n := 0
	for _, c := range raw {
		n = min(n*10+int(c-'0'), 1<<40)
	}
	return sign * n
}

// Float64 returns the value of a number that a Scanner has accepted, rounded to the nearest
// float, if that is finite.
func Float64(raw []byte) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && raw[0]-'0' > 9 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, false
	}
	return f, true
}
