package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// checkCommands is sluice check.
type checkCommands struct{ *command }

func (c checkCommands) check() *cobra.Command {
	f := &runFlags{}
	var static bool
	cmd := &cobra.Command{
		Use: "check CONNECTOR", Short: "Audit a connector and try it out",
		Long: `Checks a connector's imports and manifest, then runs it twice in the sandbox with
a store that is thrown away: once from the beginning, once from the cursors it
left. A connector whose runs outlive their host is tried for that too: the first run
is recorded, and stopped and resumed from its recording, without network. Grants are
given by flags, as for sluice run; those that are stored, and stored secrets, are not
used. Exit codes are those of sluice run.`,
		Example: "  sluice check examples/git --mount repo=.\n  sluice check mailbox.wasm --static",
		Args:    args(1, 1, "one connector"),
		RunE: func(cmd *cobra.Command, a []string) error {
			q, err := c.runRequest(f)
			if err != nil {
				return err
			}
			l, _, err := c.load(cmd.Context(), a[0], f.manifest, "")
			if err != nil {
				return err
			}
			q.Connector = l
			report := &checkReport{out: c.command,
				about: timeline.Trouble{Again: "sluice check " + shellWord(a[0]), Unkept: true}, runs: []*run.Result{}}
			report.static(l)
			if !static {
				if err := c.try(cmd.Context(), report, q, f); err != nil {
					return err
				}
			}
			return report.finish()
		},
	}
	f.addGrants(cmd)
	cmd.Flags().BoolVar(&static, "static", false, "do not run it")
	return cmd
}

// A checkLine is one outcome of a check.
type checkLine struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, warning or failed
	Detail string `json:"detail"`
}

// A checkReport prints its lines as they come, or all at once as JSON.
type checkReport struct {
	out   *command
	about timeline.Trouble // how it is tried, for what helps
	lines []checkLine
	runs  []*run.Result
}

func (r *checkReport) add(check, state, format string, args ...any) {
	l := checkLine{check, state, abi.Clean(fmt.Sprintf(format, args...))}
	r.lines = append(r.lines, l)
	if r.out.json {
		return
	}
	s := r.out.screenOut()
	s.line(s.paint(checkColor[state], pad(state, 9)) + pad(check, 12) + l.Detail)
}

var checkColor = map[string]string{"ok": green, "warning": yellow, "failed": red}

func (r *checkReport) finish() error {
	if !r.out.json {
		return nil
	}
	return printJSON(r.out.out, map[string]any{"checks": r.lines, "runs": r.runs})
}

// static reports what loading the connector has proved.
func (r *checkReport) static(l *app.Loaded) {
	r.add("module", "ok", "%s, %s, %s", bytesText(l.Module.Size),
		transportText[string(l.Module.Transport)], l.Module.Digest)
	r.add("imports", "ok", "%d, all of them known: it can %s", len(l.Module.Imports), strings.Join(capabilities(l), "; "))
	r.add("manifest", "ok", "%s %s, %s", l.Manifest.Name(), l.Manifest.Version, countOf(len(l.Manifest.Streams), "stream"))
	if l.Manifest.Sluice == nil {
		r.add("manifest", "warning", "it has no sluice block, so settings and budgets are not declared")
	}
	for _, w := range l.Warnings {
		r.add("bindings", "warning", "%s (%s)", w.Detail, w.Code)
	}
}

// try runs the connector twice on its own host with a store in memory, because a
// running host would keep the records.
func (c checkCommands) try(ctx context.Context, report *checkReport, q app.RunRequest, f *runFlags) error {
	c.store, c.url, c.keyFile, c.client = "memory:", "", "", nil
	return c.withPrivateHost(ctx, app.Options{Require: f.require}, func(h *app.Host, k *client.Client) error {
		return c.tryTwice(ctx, h, k, report, q, f)
	})
}

func (c checkCommands) tryTwice(ctx context.Context, h *app.Host, to *client.Client, report *checkReport,
	q app.RunRequest, f *runFlags) error {
	if err := c.approval().approve(ctx, to, host.Connection{}, &q, f); err != nil {
		return err
	}
	bound, answers := h.HostBound(q.Connector), (*savedAnswers)(nil)
	if q.Owner != nil {
		answers = &savedAnswers{all: map[string]host.Answer{}}
	}
	first, err := c.tryOnce(ctx, to, q, f, report, trial{"first run", bound == "", answers})
	if err != nil || first.Status != abi.Succeeded {
		return err
	}
	if bound != "" {
		report.add("replay", "ok", "left out, for no run of it outlives its host: %s", bound)
	} else if err := c.rehearse(ctx, h, to, report, q, first.RunID, answers); err != nil {
		return err
	}
	if first.CheckpointSummary.StateStreamsCommitted == 0 {
		report.add("second run", "warning", "left out: the first committed no cursor, so every run starts from the beginning")
		return nil
	}
	q.State, q.ResetState, q.Mode = nil, false, ""
	second, err := c.tryOnce(ctx, to, q, f, report, trial{name: "second run"})
	if err == nil && second.Status == abi.Succeeded && second.RecordsFlushed > 0 &&
		second.RecordsFlushed >= first.RecordsFlushed {
		report.add("second run", "warning", "it collected everything again although it had cursors")
	}
	return err
}

// A trial is one run of a check.
type trial struct {
	name    string
	record  bool          // record the run, unless the recording is too large
	answers *savedAnswers // receives the run's answers; nil for none
}

// tryOnce does one run, all of whose records are checked against the manifest, and
// reports on it.
func (c checkCommands) tryOnce(ctx context.Context, to *client.Client, q app.RunRequest, f *runFlags,
	report *checkReport, t trial) (*run.Result, error) {
	name := t.name
	start, err := c.start("", q, &recordingFiles{}, f)
	if err != nil {
		return nil, err
	}
	start.Overrides.Strict, start.Overrides.Record = true, t.record
	started, err := to.StartRun(ctx, start)
	if err != nil {
		return nil, err
	}
	watch := &anomalies{}
	quiet := newProgress(newScreen(io.Discard), q.Connector.Manifest)
	w := &runWatcher{c: c.command, k: to, run: started.RunID, owner: q.Owner, progress: quiet, onEvent: watch.event,
		savedAnswers: t.answers}
	result, err := w.follow(ctx)
	if err != nil {
		return nil, err
	}
	if r := result.TerminalReason; t.record && r != nil && *r == "recording_full" {
		t.record = false
		return c.tryOnce(ctx, to, q, f, report, t)
	}
	c.hasResult = true
	report.runs = append(report.runs, result)
	if code := resultCode(result); code != exitOK {
		c.code = code
	}
	if result.Status != abi.Succeeded {
		report.add(name, "failed", "%s", strings.Join(failureLines(result, report.about, watch.logs), "; "))
		return result, nil
	}
	report.add(name, "ok", "%s records, checkpoint %s, isolation %s", count(result.RecordsFlushed), checkpointText(result),
		result.Isolation.Level)
	for _, g := range result.KnownGaps {
		if g.Kind != "records_rejected" {
			report.add(name, "warning", "missing: %s", gapText(g))
			continue
		}
		c.code = exitConnector
		report.add(name, "failed", "%s", g.Message)
		for _, text := range rejectedOf(g) {
			report.add(name, "failed", "%s", text)
		}
	}
	if s := result.CheckpointSummary; s.StateStreamsStaged == 0 && result.RecordsFlushed > 0 {
		report.add(name, "warning", "it kept no cursor: call Checkpoint, or every run starts from the beginning")
	}
	for _, text := range watch.odd {
		report.add(name, "warning", "%s", text)
	}
	return result, nil
}

// rejectedOf names the records of a gap: stream, key and member.
func rejectedOf(g run.KnownGap) []string {
	var d struct {
		Records []run.Rejection `json:"records"`
	}
	if json.Unmarshal(g.Diagnostics, &d) != nil || g.Stream == nil {
		return nil
	}
	var out []string
	for _, j := range d.Records {
		out = append(out, *g.Stream+" "+j.String())
	}
	return out
}

// anomalies collects what is allowed but odd in a run.
type anomalies struct {
	odd  []string
	logs []string // the end of the connector's log
}

func (w *anomalies) event(e store.Event) {
	var d struct {
		eventData
		Kind       string `json:"kind"`
		Undeclared bool   `json:"undeclared_kind"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return
	}
	switch {
	case e.Type == "run.interaction_required" && d.Undeclared:
		w.odd = append(w.odd, "it asks for "+d.Kind+", which its manifest does not announce")
	case e.Type == "log.appended":
		w.logs = append(w.logs[max(0, len(w.logs)-logTail+1):], abi.Clean(d.Level+" "+d.Message))
	}
}
