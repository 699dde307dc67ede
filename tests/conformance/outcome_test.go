package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// outcome renders the outcome of a run. Ids and times are left out or replaced, so that
// two runs of one script give the same text.
func (g *stage) outcome(t *testing.T, p *played) string {
	t.Helper()
	if p.refused != nil {
		return refusalText(p.refused)
	}
	var b strings.Builder
	r := p.result
	fmt.Fprintf(&b, "%s, exit %d\n", headline(r), resultCode(r))
	g.violation(&b, r)
	if _, brief := g.scenario.one("brief"); brief {
		return normal(strings.TrimRight(b.String(), "\n"))
	}
	countsText(&b, r)
	checkpointText(&b, r)
	for _, q := range p.asked {
		fmt.Fprintf(&b, "asked %s\n", questionText(q))
	}
	for i, gap := range r.KnownGaps {
		if left := len(r.KnownGaps) - i; i >= 10 && left > 2 {
			if i == 10 {
				fmt.Fprintf(&b, "gap … %d more\n", left-2)
			}
			continue
		}
		fmt.Fprintf(&b, "gap %s\n", gapText(gap))
	}
	for _, d := range r.DetailGaps {
		fmt.Fprintf(&b, "detail gap %s %s attempt %d\n", strings.TrimPrefix(d.ParentStream+" > "+d.Stream, " > "),
			d.Status, d.AttemptCount)
	}
	otherText(&b, r)
	g.timeline(&b, p.events)
	g.stored(t, &b)
	return normal(strings.TrimRight(b.String(), "\n"))
}

// refusalText renders a start that was refused.
func refusalText(r *run.Refusal) string {
	out := fmt.Sprintf("refused: %s, exit %d", r.Code, refusalCode(r.Code))
	for _, name := range sorted(r.Details) {
		if name == "offset" || name == "activeRunId" {
			continue
		}
		out += fmt.Sprintf("\n%s %v", name, r.Details[name])
	}
	return out
}

// headline renders status, reason, and details such as the subtype of a violation.
func headline(r *run.Result) string {
	out := r.Status
	if r.TerminalReason == nil {
		return out
	}
	out += ": " + *r.TerminalReason
	if r.Violation != nil {
		out += " " + string(r.Violation.Subtype)
	}
	for _, more := range []string{r.Deadline, r.CancelCause, r.StdinClosedAtPhase} {
		if more != "" {
			out += " " + more
		}
	}
	if r.Trap != nil {
		out += " trap " + r.Trap.Kind
	}
	return out
}

// violation prints the fault. For bytes that are no message the ABI knows the type of
// the message, and where in a frame the fault is; a line of stdio has neither.
func (g *stage) violation(b *strings.Builder, r *run.Result) {
	v := r.Violation
	if v == nil {
		return
	}
	if strings.HasPrefix(string(v.Subtype), "frame_") && len(g.scenario.transports()) > 1 {
		fmt.Fprintf(b, "violation, after %s\n", v.LastValidEventType)
		return
	}
	parts := []string{"violation", orElse(v.MessageType, "-")}
	for _, p := range []struct{ name, value string }{
		{"stream", v.Stream}, {"field", v.Field}, {"received", v.Received}, {"expected", strings.Join(v.Expected, "|")},
		{"detail", v.Detail},
	} {
		if p.value != "" {
			parts = append(parts, p.name+"="+quoted(p.value))
		}
	}
	fmt.Fprintf(b, "%s, after %s\n", strings.Join(parts, " "), v.LastValidEventType)
}

// quoted puts text with blanks in quotes.
func quoted(s string) string {
	if strings.ContainsAny(s, " \"\n") {
		return fmt.Sprintf("%q", s)
	}
	return s
}

func countsText(b *strings.Builder, r *run.Result) {
	parts := []string{}
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"emitted", r.RecordsEmitted}, {"attempted", r.RecordsAttempted}, {"accepted", r.RecordsAccepted},
		{"rejected", r.RecordsPermanentlyRejected}, {"unresolved", r.RecordsUnresolvedRetryable},
		{"dropped", r.CheckpointSummary.BufferedRecordsDropped},
	} {
		if c.n != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.name, c.n))
		}
	}
	if r.ReportedRecordsEmitted != nil {
		parts = append(parts, "reported "+string(r.ReportedRecordsEmitted))
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "records %s\n", strings.Join(parts, ", "))
	}
}

func checkpointText(b *strings.Builder, r *run.Result) {
	c := r.CheckpointSummary
	if c.CommitStatus == "committed" && c.StateStreamsStaged == 0 {
		return
	}
	fmt.Fprintf(b, "checkpoints %s", c.CommitStatus)
	if c.StateStreamsStaged > 0 {
		fmt.Fprintf(b, ", %d of %d", c.StateStreamsCommitted, c.StateStreamsStaged)
	}
	if len(c.StateStreamsWithheld) > 0 {
		fmt.Fprintf(b, ", withheld %s", strings.Join(c.StateStreamsWithheld, " "))
	}
	b.WriteString("\n")
}

func questionText(q run.Question) string {
	out := fmt.Sprintf("%s %s %q", q.InteractionID, q.Kind, q.Message)
	if q.Undeclared {
		out += " undeclared"
	}
	for _, f := range q.Fields {
		marks := ""
		for _, m := range []struct {
			on   bool
			name string
		}{{f.Required, "required"}, {f.Secret, "secret"}, {f.Sealed, "sealed"},
			{len(f.Enum) > 0, strings.Join(f.Enum, "/")}} {
			if m.on {
				marks += " " + m.name
			}
		}
		out += " (" + f.Shown + marks + ")"
	}
	return out
}

func gapText(g run.KnownGap) string {
	out := fmt.Sprintf("%s %s %s", g.Kind, g.Reason, g.Severity)
	if g.Stream != nil {
		out += " on " + *g.Stream
	}
	out += ", " + g.RecoveryHint.Action
	if g.RecoveryHint.Retryable != (g.RecoveryHint.Action == abi.RetryByRuntime) {
		out += fmt.Sprintf(" retryable=%v", g.RecoveryHint.Retryable)
	}
	if g.Message != "" {
		out += fmt.Sprintf(", %q", g.Message)
	}
	for _, m := range []struct {
		name string
		v    any
	}{{"scope", g.Scope}, {"diagnostics", g.Diagnostics}, {"continuation", g.Continuation}} {
		if raw, err := json.Marshal(m.v); err == nil && string(raw) != "null" && string(raw) != "{}" {
			out += ", " + m.name + " " + string(raw)
		}
	}
	return out
}

// otherText renders members that few runs have.
func otherText(b *strings.Builder, r *run.Result) {
	if e := r.ConnectorError; e != nil {
		raw, _ := json.Marshal(e)
		fmt.Fprintf(b, "error %s\n", raw)
	}
	if d := r.ConnectorDiagnostics; d != nil {
		fmt.Fprintf(b, "log tail %q\n", d.StderrTail.Text)
	}
	if r.CollectionFacts == nil {
		return
	}
	for _, f := range r.CollectionFacts.Streams {
		if f.Considered != nil || f.Covered != nil || f.PendingDetailGaps > 0 || f.Skipped != nil {
			raw, _ := json.Marshal(f)
			fmt.Fprintf(b, "facts %s\n", raw)
		}
	}
}

// stored renders what the run left in the store.
func (g *stage) stored(t *testing.T, b *strings.Builder) {
	t.Helper()
	ctx := context.Background()
	st := g.host.Store
	streams, err := st.Streams(ctx, g.connection)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		page, err := st.Records(ctx,
			store.RecordQuery{Connection: g.connection, Stream: s.Stream, Deleted: true, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Records) > 12 {
			fmt.Fprintf(b, "store %s: %d records\n", s.Stream, len(page.Records))
			continue
		}
		for _, r := range page.Records {
			data := string(r.Data)
			if r.Deleted {
				data = "deleted"
			}
			fmt.Fprintf(b, "store %s %s %s\n", s.Stream, r.Key, data)
		}
	}
	conn, err := st.Connection(ctx, g.connection)
	if err != nil {
		t.Fatal(err)
	}
	grant := store.GrantID("")
	if conn.Grant != nil {
		grant = conn.Grant.ID
		if conn.Grant.Status != "active" {
			fmt.Fprintf(b, "grant %s\n", conn.Grant.Status)
		}
	}
	states, err := st.States(ctx, g.connection, grant)
	if err != nil {
		t.Fatal(err)
	}
	sort.Slice(states, func(i, j int) bool { return states[i].Stream < states[j].Stream })
	for _, s := range states {
		fmt.Fprintf(b, "state %s %s\n", s.Stream, s.Cursor)
	}
}

// ids are the parts of a text that differ from run to run.
var ids = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`sluice-sealed-v1-[a-z2-7]{26}`), "sluice-sealed-v1-…"},
	{regexp.MustCompile(`run_[0-9A-HJKMNP-TV-Z]{26}`), "run_…"},
	{regexp.MustCompile(`asst_[0-9a-f]{16}`), "asst_…"},
	{regexp.MustCompile(`int_[0-9a-f]{32}`), "int_…"},
	{regexp.MustCompile(`(evt|trc|boot|host|gap)_[0-9a-f]{16}`), "${1}_…"},
	{regexp.MustCompile(`sha256(:|":")[0-9a-f]{64}`), "sha256$1…"},
	{regexp.MustCompile(`x{30,}`), "x…x"},
}

func normal(s string) string {
	for _, id := range ids {
		s = id.pattern.ReplaceAllString(s, id.with)
	}
	return s
}

func sorted[V any](m map[string]V) []string {
	names := []string{}
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// resultCode is the exit code of the command line for a result.
func resultCode(r *run.Result) int {
	switch {
	case r.Outcome == run.OutcomePartial:
		return 7
	case r.Status == abi.Succeeded:
		return 0
	}
	reason := *r.TerminalReason
	switch {
	case reason == "connector_protocol_violation":
		return 3
	case strings.HasPrefix(reason, "connector_"):
		return 1
	case slices.Contains([]string{"run_timed_out", "assistance_timed_out", "memory_limit_exceeded"}, reason),
		strings.HasPrefix(reason, "grant_"):
		return 4
	case r.Status == abi.Cancelled:
		return 5
	}
	return 6
}

// refusalCode is the exit code of a refused start.
func refusalCode(code string) int {
	if strings.HasPrefix(code, "grant_") || code == "binding_not_approved" {
		return 4
	}
	return 2
}
