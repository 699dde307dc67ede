package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// printResult is the end of sluice run: the result object for machines, or a
// summary for people, which goes to stdout as well.
func (c *command) printResult(f *finished) error {
	r := f.result
	if c.json {
		return printJSON(c.out, r)
	}
	s := c.screenOut()
	s.line(s.paint(statusColor(r.Status), r.Status) + headline(r))
	for _, fact := range factsOf(r) {
		s.line("  " + factLine(fact, f.changed[store.Stream(fact.Stream)], f.changed != nil))
	}
	for _, l := range resultLines(r, f.logs) {
		s.line("  " + l)
	}
	return nil
}

func statusColor(status string) string {
	switch status {
	case abi.Succeeded:
		return green
	case abi.Cancelled:
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
	if f.Skipped != nil {
		line += "; skipped: " + abi.Clean(f.Skipped.Reason)
	}
	if f.PendingDetailGaps > 0 {
		line += fmt.Sprintf("; %d details pending", f.PendingDetailGaps)
	}
	return line
}

// resultLines is the rest of the summary.
func resultLines(r *run.Result, logs []string) []string {
	var out []string
	out = append(out, "checkpoint: "+checkpointText(r))
	if n := r.RecordsPermanentlyRejected; n > 0 {
		out = append(out, fmt.Sprintf("rejected: %s did not pass the schema of its stream", recordCount(n)))
	}
	out = append(out, gapLines(ownGaps(r))...)
	if r.Isolation.Level != "" {
		out = append(out, "isolation: "+r.Isolation.Level)
	}
	out = append(out, failureLines(r, logs)...)
	return out
}

func checkpointText(r *run.Result) string {
	s := r.CheckpointSummary
	text := strings.ReplaceAll(s.CommitStatus, "_", " ")
	if s.StateStreamsStaged > 0 {
		text += fmt.Sprintf(" (%d of %s)", s.StateStreamsCommitted, counted(s.StateStreamsStaged, "stream"))
	}
	return text
}

// shownGaps bounds the list of the summary.
const shownGaps = 10

// ownGaps are the gaps without those that repeat how the run ended and that
// nothing was committed: other lines say so.
func ownGaps(r *run.Result) []run.KnownGap {
	return slices.DeleteFunc(slices.Clone(r.KnownGaps), func(g run.KnownGap) bool {
		return g.Stream == nil && r.TerminalReason != nil && (g.Reason == *r.TerminalReason || g.Reason == run.CommitNone)
	})
}

func gapLines(gaps []run.KnownGap) []string {
	var out []string
	for i, g := range gaps {
		if i == shownGaps {
			out = append(out, fmt.Sprintf("gap: and %d more; see sluice show last --json", len(gaps)-i))
			break
		}
		stream := ""
		if g.Stream != nil {
			stream = abi.Clean(*g.Stream)
		}
		out = append(out, "gap: "+join(" — ", join(" ", stream, abi.Clean(g.Reason)), abi.Clean(g.Message)))
	}
	return out
}

// failureLines say what went wrong and what to do about it.
func failureLines(r *run.Result, logs []string) []string {
	if r.TerminalReason == nil {
		return nil
	}
	out := []string{"reason: " + *r.TerminalReason}
	if f := r.Failure; f != nil {
		if f.Subtype != "" {
			out[0] += " (" + abi.Clean(f.Subtype) + ")"
		}
		if f.Message != "" {
			out = append(out, abi.Clean(f.Message))
		}
	}
	if next := nextStep(r); next != "" {
		out = append(out, "next: "+next)
	}
	return append(out, logLines(r, logs)...)
}

// nextStep is the advice for a reason (R61, §13.2).
func nextStep(r *run.Result) string {
	reason := *r.TerminalReason
	switch {
	case reason == "run_timed_out":
		return "the " + r.Deadline + " budget ended; narrow what is collected with --scope"
	case reason == "memory_limit_exceeded":
		return "narrow what is collected with --scope"
	case reason == "assistance_timed_out":
		return "run it again and answer in time"
	case reason == "recording_mismatch":
		return "if the connector was meant to change, record it again with --record"
	case strings.HasPrefix(reason, "owner_"):
		return "run it again; what was stored stays"
	case reason == "connector_protocol_violation", reason == "connector_trapped", reason == "connector_exit_without_done", reason == "connector_stdin_closed":
		return "this is a fault of the connector; tell its author"
	case r.ConnectorError != nil && r.ConnectorError.RecoveryHint != nil:
		return hintText[r.ConnectorError.RecoveryHint.Action]
	case reason == "worker_lost" || reason == "worker_protocol_error":
		return "run it again; if it stays so, see sluice doctor"
	case strings.HasPrefix(reason, "ingest_"), reason == "launch_failed", reason == "runtime_error":
		return "see sluice doctor"
	}
	return ""
}

var hintText = map[string]string{
	abi.RetryByRuntime:          "run it again later",
	abi.RetryOnConnectorUpgrade: "install a newer version of the connector",
	abi.RefreshCredentials:      "renew the credentials and run it again",
	abi.ManualActionRequired:    "do what the message says, then run it again",
	abi.UpdateSelector:          "the site has changed; install a newer version of the connector",
	abi.UpstreamUnblock:         "the service refuses; see to it there, then run it again",
	abi.NotRetriable:            "running it again will not help",
}

// logTail is how many lines of a crashed guest's log are shown.
const logTail = 12

// logLines is the end of a failed connector's log.
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
