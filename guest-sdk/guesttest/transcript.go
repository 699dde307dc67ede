//go:build !wasip1

package guesttest

import (
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// joined puts what is not empty on one line, and shortens it.
func joined(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		if w == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
	const longest = 300
	if s := abi.Cut(b.String(), longest); len(s) < b.Len() {
		return s + "…"
	}
	return b.String()
}

func quote(s string) string { return strconv.Quote(s) }

// quoted is quote, and nothing for nothing.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return quote(s)
}

func counts(count, total *float64) string {
	number := func(f *float64) string {
		if f == nil {
			return "?"
		}
		return strconv.FormatFloat(*f, 'f', -1, 64)
	}
	if count == nil && total == nil {
		return ""
	}
	return number(count) + "/" + number(total)
}

func hint(h *abi.RecoveryHint) string {
	if h == nil {
		return ""
	}
	return "hint=" + h.Action
}

func fault(e *abi.DoneError) string {
	if e == nil {
		return ""
	}
	retryable := ""
	if e.Retryable != nil && *e.Retryable {
		retryable = "retryable"
	}
	return joined(e.Code, quote(e.Message), retryable, hint(e.RecoveryHint))
}
