package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// The outcomes of a run. A status says how the run ended; the outcome also
// tells a success that has everything from one that left data out.
const (
	OutcomeComplete  = "complete"
	OutcomePartial   = "partial"
	OutcomeFailed    = abi.Failed
	OutcomeCancelled = abi.Cancelled
)

// outcomeOf is partial for a success with a hole: a known gap that is more than
// a remark, a detail that is still pending, or a record that was not stored.
func (rp *report) outcomeOf(status string, facts *Facts) string {
	n := rp.records.counts()
	switch {
	case status != abi.Succeeded:
		return status
	case rp.gaps.incomplete(), n.rejected > 0, n.attempted > n.accepted:
		return OutcomePartial
	}
	if facts != nil && slices.ContainsFunc(facts.Streams, StreamFact.short) {
		return OutcomePartial
	}
	return OutcomeComplete
}

// short says that the connector itself counted more than it covered.
func (f StreamFact) short() bool {
	return f.Considered != nil && f.Covered != nil && *f.Covered < *f.Considered
}

// missing reports whether a detail is pending that this run should have got: one
// it reported itself, or one that START served it.
func (d *details) missing(inScope func(string) bool) bool {
	for ref, g := range d.byRef {
		if g.Status == gapPending && (d.fresh[ref] || g.Retryable && inScope(ref.stream)) {
			return true
		}
	}
	return false
}

// A Rejection is one record that can never be stored, named for its author and
// its owner: never by a value of its data.
type Rejection struct {
	Key      string `json:"key"`
	Code     string `json:"code"`
	Field    string `json:"field,omitempty"`
	Expected string `json:"expected,omitempty"`
	Received string `json:"received,omitempty"` // a JSON type, or "missing"
}

// String is the rejection as a sentence without its end.
func (j Rejection) String() string {
	if j.Field == "" {
		return j.Key + ": " + reasonText(j.Code)
	}
	if j.Received == "missing" {
		return fmt.Sprintf("%s: %s is missing", j.Key, j.Field)
	}
	if j.Received == "" {
		return fmt.Sprintf("%s: %s %s", j.Key, j.Field, reasonText(j.Code))
	}
	return fmt.Sprintf("%s: %s must be %s and is %s", j.Key, j.Field, j.Expected, j.Received)
}

func reasonText(code string) string {
	if text, ok := rejectionTexts[code]; ok {
		return text
	}
	return code
}

// The codes of records that are rejected alone.
const (
	rejectIdentity = "invalid_record_identity"
	rejectSchema   = "invalid_record_schema"
	rejectText     = abi.RejectedText
	rejectKeyForm  = "ambiguous_record_key"
)

var rejectionTexts = map[string]string{
	rejectIdentity: "differs from its part of the key",
	rejectSchema:   "does not fit the schema",
	rejectText:     "it holds NUL or half a surrogate pair, which no text may",
	rejectKeyForm:  "its key is a text that spells an array, and so the key of another record",
}

// maxRejections is how many rejected records of a stream are named; all are
// counted.
const maxRejections = 5

// rejections are what a stream's buffer or a whole run knows of its rejected
// records.
type rejections struct {
	count int
	codes map[string]int
	first []Rejection
}

func (x *rejections) add(j Rejection) {
	x.count++
	if x.codes == nil {
		x.codes = map[string]int{}
	}
	x.codes[j.Code]++
	if len(x.first) < maxRejections {
		x.first = append(x.first, j)
	}
}

// join adds what another counted.
func (x *rejections) join(o rejections) {
	x.count += o.count
	if x.codes == nil {
		x.codes = map[string]int{}
	}
	for code, n := range o.codes {
		x.codes[code] += n
	}
	x.first = append(x.first, o.first[:min(len(o.first), maxRejections-len(x.first))]...)
}

// most is the code that most of the records have.
func (x *rejections) most() string {
	codes := slices.Sorted(maps.Keys(x.codes))
	return slices.MaxFunc(codes, func(a, b string) int { return cmp.Or(cmp.Compare(x.codes[a], x.codes[b]), cmp.Compare(b, a)) })
}

// refusedAll reports whether the run got records for a stream that a checkpoint
// stream governs and could store none of them. A cursor behind them would lose
// them for good.
func (rs *records) refusedAll(p string) bool {
	return slices.ContainsFunc(rs.buffers, func(b buffer) bool {
		parents := rs.plan.manifest.Parents(b.stream)
		governed := slices.Contains(parents, p) || len(parents) == 0 && b.stream == p
		return governed && b.refused.count > 0 && b.flushed == 0
	})
}

// refusedRecords adds a known gap for every stream with rejected records, and
// the event that a stream of which nothing could be stored was left out.
func (rs *records) refusedRecords() (events []store.Event) {
	for i := range rs.buffers {
		b := &rs.buffers[i]
		if b.refused.count == 0 {
			continue
		}
		n := int64(b.refused.count)
		all := n + b.flushed
		message := fmt.Sprintf("%s of %s of %s could not be stored, for example %s.", strconv.FormatInt(n, 10),
			countOf(all, "record"), b.stream, b.refused.first[0])
		if b.flushed == 0 {
			message += " The cursor stays where it was."
		}
		raw, _ := marshal(map[string]any{"rejected": n, "rejection_codes": b.refused.codes, "records": b.refused.first})
		g := KnownGap{Kind: gapRejected, Reason: b.refused.most(), Severity: "actionable", Stream: &b.stream, Message: message, Count: n,
			RecoveryHint: Hint{abi.RetryOnConnectorUpgrade, false}, Diagnostics: raw}
		rs.gaps.add(g)
		if b.flushed > 0 {
			continue // run.batch_ingested told it
		}
		events = append(events, rs.journal.streamEvent("run.stream_skipped", "skipped", b.stream, data{
			"stream": b.stream, "reason": g.Reason, "message": message, "known_gap": g, "diagnostics": g.Diagnostics,
		}))
	}
	return events
}

func countOf(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.FormatInt(n, 10) + " " + word + "s"
}
