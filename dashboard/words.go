package dashboard

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/timeline"
)

// words returns the template functions. Their results are plain text, which html/template escapes.
func (u *frame) words() template.FuncMap {
	return template.FuncMap{
		"asset":    u.assetURL,
		"ago":      func(t any) string { return ago(u.now(), moment(t)) },
		"stamp":    func(t any) string { return stamp(moment(t)) },
		"clock":    func(t any) string { return clock(moment(t)) },
		"iso":      func(t any) string { return iso(moment(t)) },
		"known":    func(t any) bool { return !moment(t).IsZero() },
		"count":    count,
		"bytes":    size,
		"plural":   plural,
		"pretty":   pretty,
		"cut":      cut,
		"middle":   middle,
		"tone":     tone,
		"status":   statusWord,
		"ended":    endedAs,
		"reason":   reasonWord,
		"took":     took,
		"lasted":   lasted,
		"sentence": sentence,
		"list":     func(v ...any) []any { return v },
		"join":     func(s []string) string { return strings.Join(s, ", ") },
		"pair":     func(a, b any) map[string]any { return map[string]any{"A": a, "B": b} },
		"str":      func(v any) string { return fmt.Sprint(v) },
		"short":    shortID,
		"todo":     todo,
		"code":     isCode,
		"when":     scheduleWords,
		"every":    intervalCount,
		"unit":     intervalUnit,
		"longest":  longest,
		"asks":     asksOf,
		"below":    filepath.Join,
		"share":    share,
	}
}

// moment converts the forms in which resources have times; the zero Time stands for none.
func moment(v any) time.Time {
	switch t := v.(type) {
	case time.Time:
		return t
	case *time.Time:
		if t != nil {
			return *t
		}
	case string:
		at, _ := time.Parse(time.RFC3339Nano, t)
		return at
	}
	return time.Time{}
}

// ago describes the distance to a time.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	form := "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	if d < 45*time.Second {
		if form == "in %s" {
			return "in a moment"
		}
		return "just now"
	}
	return fmt.Sprintf(form, roughly(d))
}

func roughly(d time.Duration) string {
	switch {
	case d < 90*time.Minute:
		return strconv.Itoa(int(math.Max(1, d.Round(time.Minute).Minutes()))) + " min"
	case d < 36*time.Hour:
		return strconv.Itoa(int(d.Round(time.Hour).Hours())) + " h"
	}
	return plural(int64(math.Round(d.Hours()/24)), "day")
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006, 15:04 UTC")
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// count formats a number with thin spaces between thousands.
func count(v any) string {
	s := fmt.Sprint(v)
	if p, ok := v.(*int64); ok {
		if p == nil {
			return "–"
		}
		s = strconv.FormatInt(*p, 10)
	}
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return sign + s
}

func size(v any) string {
	n, _ := strconv.ParseFloat(fmt.Sprint(v), 64)
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	if i == 0 || n >= 100 {
		return fmt.Sprintf("%.0f %s", n, units[i])
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}

func plural(n any, word string) string {
	s := fmt.Sprint(n)
	if s == "1" {
		return "1 " + word
	}
	if strings.HasSuffix(word, "y") && !strings.HasSuffix(word, "day") {
		word = strings.TrimSuffix(word, "y") + "ie"
	}
	return count(n) + " " + word + "s"
}

// maxPretty bounds a value that is shown, in bytes.
const maxPretty = 64 << 10

// pretty indents JSON for reading.
func pretty(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 {
		return ""
	}
	if len(raw) > maxPretty || json.Unmarshal(raw, &v) != nil {
		return abi.Cut(string(raw), maxPretty)
	}
	out := &strings.Builder{}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false) // the template escapes
	e.SetIndent("", "  ")
	if e.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSpace(out.String())
}

// tone returns the colour of a state; the word for it always stands beside it.
func tone(s any) string {
	switch fmt.Sprint(s) {
	case "completed", "succeeded", "active", "ready", "done", "verified", "resolved", "automatic", "committed", "full":
		return "good"
	case "failed", "revoked", "invalid", "refused", "blocked":
		return "bad"
	case "waiting-approval", "waiting-input", "waiting-external", "attention", "expired", "consumed", "cooling_off",
		"abandoned", "paused", "partial", "partially_committed", "process", leftOut:
		return "warn"
	case "running", "pending", "open":
		return "live"
	}
	return "calm"
}

var statusWords = map[string]string{
	"pending": "starting", "waiting-approval": "waits for you", "waiting-input": "waits for you",
	"waiting-external": "waits for you elsewhere", "completed": "done", "succeeded": "done", "single_use": "one run only",
	"consumed": "used up", "cooling_off": "cooling off", "full_refresh": "everything again", "manual": "by hand",
	"scheduled": "by schedule",
}

func statusWord(s any) string {
	text := fmt.Sprint(s)
	if w, ok := statusWords[text]; ok {
		return w
	}
	return strings.ReplaceAll(text, "_", " ")
}

// endedAs returns a run's status, or leftOut for a partial success.
func endedAs(s timeline.Snapshot) string {
	if s.Status == timeline.Completed && s.Sluice.Outcome == timeline.Partial {
		return leftOut
	}
	return string(s.Status)
}

// leftOut is the state of a run that succeeded partially, and of a connection whose newest success
// is partial.
const leftOut = "data left out"

// reasonWord makes a code readable.
func reasonWord(s any) string {
	return strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(s), "_", " "), "-", " ")
}

// todos explains codes of refused starts as what the owner has to do.
var todos = map[string]string{
	"connection_disabled":    "it is switched off",
	"grant_consumed":         "its permission was for one run; decide again",
	"grant_expired":          "its permission has expired; decide again",
	"grant_revoked":          "its permission was taken back; decide again",
	"grant_invalid":          "decide what it may do",
	"connector_not_runnable": "install its connector",
	"connector_invalid":      "install a version of its connector that works",
	"binding_unsatisfied":    "this host cannot give it what it needs",
	"binding_not_approved":   "give it what it needs",
	"setting_missing":        "fill in its settings",
	"setting_invalid":        "correct its settings",
	"secret_missing":         "set its secrets",
	"host_label_missing":     "start a host with the labels that it requires",
}

// todo returns what prevents the next run of a connection.
func todo(code string) string {
	if w, ok := todos[code]; ok {
		return w
	}
	return reasonWord(code)
}

// sentence capitalises the first letter.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// took returns the time between two moments.
func took(from, to any) string {
	a, b := moment(from), moment(to)
	if a.IsZero() || b.Before(a) {
		return "–"
	}
	return lasted(b.Sub(a))
}

func lasted(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60), " 00 s")
	}
	return strings.TrimSuffix(fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60), " 00 min")
}

// cut shortens a text to n characters, and says so.
func cut(n int, v any) string {
	text := fmt.Sprint(v)
	if short := abi.Cut(text, n); short != text {
		return short + "…"
	}
	return text
}

// middle shortens a text to n characters by what is in its middle: keys often differ in their ends.
func middle(n int, text string) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n/2]) + "…" + string(r[len(r)-(n-n/2-1):])
}

// shortID returns the end of an id, enough to tell two apart.
func shortID(v any) string {
	s := fmt.Sprint(v)
	if len(s) > 8 {
		return "…" + s[len(s)-6:]
	}
	return s
}
