package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// printResult is the end of sluice run: the result object for machines, or a
// summary for people, which goes to stdout as well.
func (c *command) printResult(f *finishedRun) error {
	r, about := f.result, f.about
	if c.json {
		return printJSON(c.out, r)
	}
	s := c.screenOut()
	s.line(s.paint(statusColor(outcomeOf(r)), outcomeOf(r)) + headline(r))
	for _, fact := range factsOf(r) {
		s.line("  " + factLine(fact, f.changed[store.Stream(fact.Stream)], f.changed != nil))
	}
	for _, l := range resultLines(r, about, f.logs) {
		s.line("  " + l)
	}
	return nil
}

// outcomeOf returns the status of a run, or that a success left data out.
func outcomeOf(r *run.Result) string {
	if r.Outcome == run.OutcomePartial {
		return r.Outcome
	}
	return r.Status
}

func statusColor(status string) string {
	switch status {
	case abi.Succeeded:
		return green
	case abi.Cancelled, run.OutcomePartial:
		return yellow
	}
	return red
}

func headline(r *run.Result) string {
	var records string
	if n := r.RecordsFlushed; n > 0 || r.Status == abi.Succeeded {
		records = recordCount(n)
	}
	return "  " + join(", ", records, "in "+clock(time.Duration(r.Usage.Wall)*time.Millisecond), string(r.RunID))
}

func factsOf(r *run.Result) []run.StreamFact {
	if r.CollectionFacts == nil {
		return nil
	}
	return r.CollectionFacts.Streams
}

func factLine(f run.StreamFact, c streamChange, known bool) string {
	line := fmt.Sprintf("%s: %s collected", abi.Clean(f.Stream), count(f.Collected))
	if known {
		line += fmt.Sprintf(", %s new or changed, %s stored", count(c.versions), count(c.live))
	}
	if f.Rejected > 0 {
		line += "; " + count(f.Rejected) + " rejected"
	}
	if f.Considered != nil && f.Covered != nil && *f.Covered < *f.Considered {
		line += fmt.Sprintf("; %s of %s covered", count(*f.Covered), count(*f.Considered))
	}
	if f.Skipped != nil {
		line += "; skipped: " + abi.Clean(f.Skipped.Reason)
	}
	if f.PendingDetailGaps > 0 {
		line += fmt.Sprintf("; %d details pending", f.PendingDetailGaps)
	}
	return line
}

// resultLines returns the rest of the summary.
func resultLines(r *run.Result, about timeline.Trouble, logs []string) []string {
	var out []string
	out = append(out, "checkpoint: "+checkpointText(r))
	if n := r.CheckpointSummary.BufferedRecordsDropped; n > 0 {
		out = append(out, "lost: "+recordCount(n)+" could not be stored before the run ended")
	}
	out = append(out, gapLines(r, about, ownGaps(r))...)
	if r.Isolation.Level != "" {
		out = append(out, "isolation: "+r.Isolation.Level)
	}
	out = append(out, failureLines(r, about, logs)...)
	return out
}

func checkpointText(r *run.Result) string {
	s := r.CheckpointSummary
	if s.StateStreamsStaged == 0 && s.CommitStatus == run.CommitDone {
		return "none; the connector kept no cursor, so that every run starts from the beginning"
	}
	text := strings.ReplaceAll(s.CommitStatus, "_", " ")
	if s.StateStreamsStaged > 0 {
		text += fmt.Sprintf(" (%d of %s)", s.StateStreamsCommitted, countOf(s.StateStreamsStaged, "stream"))
	}
	return text
}

// shownGaps bounds the list of the summary.
const shownGaps = 10

// ownGaps returns the gaps without those that repeat how the run ended and that
// nothing was committed: other lines say so.
func ownGaps(r *run.Result) []run.KnownGap {
	return slices.DeleteFunc(slices.Clone(r.KnownGaps), func(g run.KnownGap) bool {
		return g.Stream == nil && r.TerminalReason != nil && (g.Reason == *r.TerminalReason || g.Reason == run.CommitNone)
	})
}

// gapLines returns what is missing, and each remedy once.
func gapLines(r *run.Result, about timeline.Trouble, gaps []run.KnownGap) []string {
	var out []string
	last := ""
	for i, g := range gaps {
		if i == shownGaps {
			out = append(out, fmt.Sprintf("missing: and %d more; see sluice show %s --json", len(gaps)-i, r.RunID))
			break
		}
		next := "next: " + remedyText(remedyOf(r, about, g))
		if last != "" && last != next {
			out = append(out, last)
		}
		out, last = append(out, "missing: "+gapText(g)), next
	}
	if last != "" {
		out = append(out, last)
	}
	return out
}

func gapText(g run.KnownGap) string {
	stream := ""
	if g.Stream != nil {
		stream = abi.Clean(*g.Stream)
	}
	return join(" — ", join(" ", stream, abi.Clean(g.Reason)), abi.Clean(g.Message))
}

// troubleOf returns a trouble of a run of which about says how it was started.
func troubleOf(r *run.Result, about timeline.Trouble) timeline.Trouble {
	about.Connection, about.Run = r.ConnectionID, r.RunID
	return about
}

func remedyOf(r *run.Result, about timeline.Trouble, g run.KnownGap) timeline.Remedy {
	t := troubleOf(r, about)
	t.Kind, t.Reason, t.Action, t.Said = g.Kind, g.Reason, g.RecoveryHint.Action, g.Message != ""
	return t.Remedy()
}

// remedyText returns what helps, with the one command that does it.
func remedyText(m timeline.Remedy) string {
	return strings.TrimSuffix(m.Text, ".") + ": " + m.Command
}

// failureLines say what went wrong and what to do about it.
func failureLines(r *run.Result, about timeline.Trouble, logs []string) []string {
	if r.TerminalReason == nil {
		return nil
	}
	out := []string{"reason: " + *r.TerminalReason}
	if code := failureCode(r); code != "" && code != *r.TerminalReason {
		out[0] += " (" + abi.Clean(code) + ")"
	}
	if f := r.Failure; f != nil && f.Message != "" {
		out = append(out, abi.Clean(f.Message))
	}
	if n := r.RecordsFlushed; n > 0 && r.Status != abi.Succeeded {
		out = append(out, "kept: "+recordCount(n)+" that it had sent before")
	}
	return append(append(out, "next: "+nextStep(r, about)), logLines(r, logs)...)
}

// failureCode returns the author's own code, or else the host's.
func failureCode(r *run.Result) string {
	switch {
	case r.ConnectorError != nil && r.ConnectorError.Code != "":
		return r.ConnectorError.Code
	case r.Failure != nil:
		return r.Failure.Subtype
	}
	return ""
}

// nextStep returns what helps after a failure: what its closing gap says, or the
// reason.
func nextStep(r *run.Result, about timeline.Trouble) string {
	t := troubleOf(r, about)
	t.Reason, t.Said = *r.TerminalReason, r.ConnectorError != nil
	for _, g := range r.KnownGaps {
		if g.Kind == "run_failed" {
			t.Action = g.RecoveryHint.Action
		}
	}
	return remedyText(t.Remedy())
}

// logTail is how many lines of a crashed guest's log are shown.
const logTail = 12

// logLines returns the end of a failed connector's log.
func logLines(r *run.Result, logs []string) []string {
	d := r.ConnectorDiagnostics
	if d != nil && d.StderrTail != nil {
		logs = strings.Split(strings.TrimRight(abi.CleanLines(d.StderrTail.Text), "\n"), "\n")
	}
	if len(logs) == 0 || len(logs) == 1 && logs[0] == "" || r.Status == abi.Cancelled {
		return nil
	}
	out := []string{"its log ends with:"}
	for _, l := range logs[max(0, len(logs)-logTail):] {
		out = append(out, "│ "+l)
	}
	return out
}
