package abi

import (
	"math"
	"time"

	"github.com/sluicehost/sluice/abi/strictjson"
)

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 24 * 60 * 60 * microsPerSecond
	// maxEpochMillis bounds a numeric time: 100 million days, the range of a JavaScript
	// Date, which fits into 64 bits of µs.
	maxEpochMillis = 8_640_000_000_000_000
)

// TimeOf returns the µs since 1970-01-01 UTC of a JSON value that a Scanner has accepted: a
// string in a form of ParseTime, or a number of milliseconds, rounded down to a µs. It does
// not allocate.
func TimeOf(raw []byte) (micros int64, ok bool) {
	if len(raw) == 0 {
		return 0, false
	}
	switch c := raw[0]; {
	case c == '"':
		s, plain := strictjson.Plain(raw)
		if plain {
			return parseTime(s)
		}
		var buf [256]byte
		if len(s) > len(buf) {
			return 0, false
		}
		return parseTime(strictjson.AppendString(buf[:0], raw))
	case c == '-' || c-'0' < 10:
		return epochMillis(raw)
	default:
		return 0, false
	}
}

// epochMillis reads a number of milliseconds.
func epochMillis(raw []byte) (micros int64, ok bool) {
	if n, ok := strictjson.Int64(raw); ok && -maxEpochMillis <= n && n <= maxEpochMillis {
		return n * 1000, true
	}
	f, ok := strictjson.Float64(raw)
	if !ok || math.Abs(f) > maxEpochMillis {
		return 0, false
	}
	return int64(math.Floor(f * 1000)), true
}

// ParseTime returns the µs since 1970-01-01 UTC of a time in one of these forms:
//
//	2006-01-02T15:04:05[.999…](Z|±hh:mm)   RFC 3339, 60 for a leap second at the end of a UTC day
//	2006-01-02T15:04[:05[.999…]]           as UTC, leap seconds too
//	2006   2006-01   2006-01-02            midnight UTC of the first day
//
// Digits after the sixth of a fraction are dropped. It does not allocate.
func ParseTime(text string) (micros int64, ok bool) { return parseTime(text) }

// Instant parses an RFC 3339 time, to the microsecond, in UTC. A leap second becomes the
// beginning of the next day.
func Instant(text string) (time.Time, bool) {
	const shortest = len("2006-01-02T15:04:05Z")
	if len(text) < shortest {
		return time.Time{}, false
	}
	_, zoned := parseOffset(text, len(text)-1)
	if !zoned && len(text) >= shortest+len("+00:00")-1 {
		_, zoned = parseOffset(text, len(text)-len("+00:00"))
	}
	micros, ok := ParseTime(text)
	return time.UnixMicro(micros).UTC(), ok && zoned
}

func parseTime[T string | []byte](s T) (int64, bool) {
	year, ok := digitsAt(s, 0, 4)
	if !ok {
		return 0, false
	}
	month, day := 1, 1
	if len(s) > 4 {
		if month, ok = fieldAt(s, 4, '-'); !ok || month < 1 || month > 12 {
			return 0, false
		}
	}
	if len(s) > 7 {
		if day, ok = fieldAt(s, 7, '-'); !ok || day < 1 || day > daysIn(year, month) {
			return 0, false
		}
	}
	midnight := daysToDate(year, month, day) * microsPerDay
	switch len(s) {
	case 4, 7, 10:
		return midnight, true
	}
	clock, ok := parseClock(s)
	if !ok {
		return 0, false
	}
	return midnight + clock, true
}

// parseClock reads the time of day after the date, including the T, as µs since midnight
// UTC of that date.
func parseClock[T string | []byte](s T) (int64, bool) {
	if len(s) < 11 || s[10] != 'T' && s[10] != 't' {
		return 0, false
	}
	hour, ok := digitsAt(s, 11, 2)
	if !ok || hour > 23 {
		return 0, false
	}
	minute, ok := fieldAt(s, 13, ':')
	if !ok || minute > 59 {
		return 0, false
	}
	if len(s) == 16 {
		return int64(hour*60+minute) * 60 * microsPerSecond, true
	}
	second, ok := fieldAt(s, 16, ':')
	if !ok || second > 60 {
		return 0, false
	}
	fraction, i, ok := parseFraction(s, 19)
	if !ok {
		return 0, false
	}
	offset := 0
	if i < len(s) {
		if offset, ok = parseOffset(s, i); !ok {
			return 0, false
		}
	}
	minutes := hour*60 + minute - offset
	if second == 60 && (minutes+24*60)%(24*60) != 24*60-1 {
		return 0, false
	}
	return int64(minutes*60+second)*microsPerSecond + fraction, true
}

// parseFraction reads an optional decimal fraction at i as µs and returns the offset after
// it.
func parseFraction[T string | []byte](s T, i int) (micros int64, end int, ok bool) {
	if i == len(s) || s[i] != '.' {
		return 0, i, true
	}
	i++
	from := i
	for unit := int64(microsPerSecond / 10); i < len(s) && s[i]-'0' < 10; i++ {
		micros += unit * int64(s[i]-'0')
		unit /= 10
	}
	return micros, i, i > from
}

// parseOffset reads Z or ±hh:mm, which must end s, as minutes.
func parseOffset[T string | []byte](s T, i int) (int, bool) {
	if s[i] == 'Z' || s[i] == 'z' {
		return 0, i+1 == len(s)
	}
	if s[i] != '+' && s[i] != '-' || i+6 != len(s) {
		return 0, false
	}
	hour, ok := digitsAt(s, i+1, 2)
	if !ok || hour > 23 {
		return 0, false
	}
	minute, ok := fieldAt(s, i+3, ':')
	if !ok || minute > 59 {
		return 0, false
	}
	if s[i] == '-' {
		return -(hour*60 + minute), true
	}
	return hour*60 + minute, true
}

// fieldAt reads two digits after a separator at i.
func fieldAt[T string | []byte](s T, i int, separator byte) (int, bool) {
	if i >= len(s) || s[i] != separator {
		return 0, false
	}
	return digitsAt(s, i+1, 2)
}

// digitsAt reads n digits at i.
func digitsAt[T string | []byte](s T, i, n int) (int, bool) {
	if i+n > len(s) {
		return 0, false
	}
	v := 0
	for ; n > 0; n-- {
		if s[i]-'0' > 9 {
			return 0, false
		}
		v = v*10 + int(s[i]-'0')
		i++
	}
	return v, true
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}

// daysToDate returns the number of days from 1970-01-01 to a Gregorian date. It counts
// years from March, so that a leap day comes last.
func daysToDate(year, month, day int) int64 {
	if month <= 2 {
		year, month = year-1, month+12
	}
	const perEra, toEpoch = 146097, 719468 // days in 400 years, days from 0000-03-01 to 1970-01-01
	year += 400                            // the year 0000 begins in March of -1
	ofEra := year % 400
	ofYear := (153*(month-3)+2)/5 + day - 1
	return int64(year/400-1)*perEra + int64(ofEra*365+ofEra/4-ofEra/100+ofYear) - toEpoch
}
