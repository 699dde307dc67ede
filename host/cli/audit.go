package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/audit"
)

// auditCommands is sluice audit.
type auditCommands struct{ *command }

func (c auditCommands) audit() *cobra.Command {
	var f audit.Filter
	var since, until string
	var here bool
	cmd := &cobra.Command{
		Use: "audit", Short: "List what was done and refused",
		Long: `Lists the audit log, oldest first: connections and installs, secrets set and
removed, exports, what was refused by policy. Values are never in it. With --json:
one entry per line, as it is stored.

Of hosts that share a store it lists what was done at all of them, as the API has it.
--here lists what was done at this one, from the file beside its store: that is there
without the database too.

--action secret means every secret.…, --target mail the connection and its secrets.`,
		Example: "  sluice audit\n  sluice audit --action secret --since 24h\n  sluice audit verify",
		Args:    args(0, 0, "no arguments, filters are flags"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			now := time.Now()
			if f.Since, err = parseTimeFlag("--since", since, now); err != nil {
				return err
			}
			if f.Until, err = parseTimeFlag("--until", until, now); err != nil {
				return err
			}
			return c.list(cmd.Context(), f, here)
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "only this host, from its file")
	cmd.Flags().StringVar(&f.Action, "action", "", "only this `ACTION`, or those below it")
	cmd.Flags().StringVar(&f.Target, "target", "", "only what was done to this `NAME`")
	cmd.Flags().StringVar(&f.Actor, "actor", "", "only what `WHO` did")
	cmd.Flags().StringVar(&since, "since", "", "only from `WHEN` on: a date, a time, or how long ago, such as 24h or 7d")
	cmd.Flags().StringVar(&until, "until", "", "only before `WHEN`")
	cmd.AddCommand(c.verifyAudit())
	return cmd
}

func (c auditCommands) list(ctx context.Context, f audit.Filter, here bool) error {
	if c.url != "" {
		if here {
			return usagef("--here is about the files of this machine, and does not go with --url")
		}
		k, err := c.remote()
		if err != nil {
			return err
		}
		return c.listFromHost(ctx, k, f)
	}
	shared, err := app.Shares(c.store)
	if err != nil {
		return err
	}
	if !shared || here {
		return c.listFile(ctx, f)
	}
	err = c.withStoredData(ctx, func(k *client.Client) error { return c.listFromHost(ctx, k, f) })
	if err != nil && ctx.Err() == nil {
		c.warnf("sluice audit --here shows what was done at this host, without the database")
	}
	return err
}

// listFromHost lists the audit log of a host, or of all that share its store; with --json as its API
// has it.
func (c auditCommands) listFromHost(ctx context.Context, k *client.Client, f audit.Filter) error {
	var all []host.AuditEntry
	q := host.AuditQuery{Action: f.Action, Target: f.Target, Actor: f.Actor, From: f.Since, Until: f.Until}
	err := k.Audit(ctx, q, func(e host.AuditEntry) (bool, error) {
		all = append(all, e)
		return true, nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(all) // oldest first
	shared := slices.ContainsFunc(all, func(e host.AuditEntry) bool { return e.HostID != "" })
	columns, rows := []string{"at", "by", "action", "target", "outcome", "details"}, [][]string(nil)
	if shared {
		columns = slices.Insert(columns, 1, "host")
	}
	for _, e := range all {
		if c.json {
			if err := printJSON(c.out, e); err != nil {
				return err
			}
		}
		row := []string{c.timeText(e.At), e.Actor, e.Action, e.Target, e.Outcome, detailText(e.Details)}
		if shared {
			row = slices.Insert(row, 1, abi.Clean(e.HostID))
		}
		rows = append(rows, row)
	}
	if c.json {
		return nil
	}
	return c.table(columns, rows)
}

// parseTimeFlag reads 2026-03-01, 2026-03-01T12:00:00Z, or 24h or 7d, which is that long ago.
func parseTimeFlag(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	if t, ok := abi.Instant(text); ok {
		return t, nil
	}
	if n, ok := parseDays(text); ok {
		return now.AddDate(0, 0, -n), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return time.Time{}, usagef(
			"%s %.40q: want a date such as 2026-03-01, a time such as 2026-03-01T12:00:00Z, or how long ago, such as 24h or 7d",
			flag, text)
	}
	return now.Add(-d), nil
}

// listFile reads the log of this machine from its file, which any process may read
// while a host writes it. Only the file has the lines as stored, and shows tampering.
func (c auditCommands) listFile(ctx context.Context, f audit.Filter) error {
	l, err := app.OpenAudit(c.store)
	if err != nil {
		return err
	}
	var rows [][]string
	broken := 0
	for e, err := range l.Entries(ctx, f, 0) {
		var b *audit.BrokenError
		switch {
		case errors.As(err, &b):
			broken++
			continue
		case err != nil:
			return err
		case c.json:
			if err := printJSON(c.out, e); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{c.timeText(e.At.Time), e.Actor, string(e.Action), e.Target, string(e.Outcome),
			detailText(e.Details)})
	}
	if broken > 0 {
		c.code = exitHost
		c.warnf("%d lines of the audit log are not as they were written; sluice audit verify says which", broken)
	}
	if c.json {
		return nil
	}
	return c.table([]string{"at", "by", "action", "target", "outcome", "details"}, rows)
}

func detailText(details map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(details)) {
		out = append(out, k+"="+details[k])
	}
	return strings.Join(out, " ")
}

// auditVerification is what sluice audit verify prints.
type auditVerification struct {
	OK      bool         `json:"ok"`
	Entries uint64       `json:"entries"`
	First   string       `json:"firstBrokenAuditId,omitempty"`
	Head    audit.Hash   `json:"headHash"`
	Broken  int          `json:"broken,omitempty"`
	Breaks  []auditBreak `json:"breaks,omitempty"`
	// Copies are what hosts that share the store copied into it.
	Copies []host.AuditCopy `json:"copies,omitempty"`
}

type auditBreak struct {
	ID   string `json:"auditId,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Why  string `json:"why"`
}

func (c auditCommands) verifyAudit() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Check that the audit log is as it was written",
		Long: `Reads the whole audit log and finds entries that were changed, removed, moved or
added by other hands, and entries missing at the end. Ends with code 6 when there
are any. With --json: one object.

Of hosts that share a store it checks what each copied into it as well: that entries
follow from each other, that none is missing, and that those of this host are those
of its log.

Somebody who can change the log and its witness, DATA/witness/audit.head, as you
can, can make up both. The hash that this prints covers every entry: kept
elsewhere, it shows that, too.`,
		Example: "  sluice audit verify",
		Args:    args(0, 0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.doVerifyAudit(cmd.Context()) },
	}
}

// doVerifyAudit verifies the files of this machine, without a host.
func (c auditCommands) doVerifyAudit(ctx context.Context) error {
	if c.url != "" {
		return usagef("the audit log is verified where the host runs, not over --url")
	}
	l, err := app.OpenAudit(c.store)
	if err != nil {
		return err
	}
	r, err := l.Verify(ctx)
	if err != nil {
		return err
	}
	if !r.OK {
		c.code = exitHost
	}
	v := auditVerification{OK: r.OK, Entries: r.Entries, Head: r.Head, Broken: r.Broken}
	for _, b := range r.Breaks {
		if v.First == "" {
			v.First = b.ID
		}
		v.Breaks = append(v.Breaks, auditBreak(b))
	}
	shared, err := app.Shares(c.store)
	if err == nil && shared {
		err = c.withStoredData(ctx, func(k *client.Client) (err error) {
			v.Copies, err = k.AuditCopies(ctx)
			return err
		})
	}
	for _, one := range v.Copies {
		if one.Broken > 0 {
			v.OK, c.code = false, exitHost
		}
	}
	if c.json {
		if err != nil {
			v.OK = false
		}
		return errors.Join(err, printJSON(c.out, v))
	}
	c.printVerification(v, r.OK)
	return err
}

func (c auditCommands) printVerification(v auditVerification, whole bool) {
	s := c.screenOut()
	if whole {
		s.line(fmt.Sprintf("%s, all as written; hash %s", entryCount(v.Entries), v.Head))
	} else {
		s.line(fmt.Sprintf("%s, and %d places that are not as written:", entryCount(v.Entries), v.Broken))
	}
	for _, b := range v.Breaks {
		where := b.File
		if b.Line > 0 {
			where += ":" + strconv.Itoa(b.Line)
		}
		s.line("  " + join(" ", where, b.ID, b.Why))
	}
	for _, one := range v.Copies {
		line := fmt.Sprintf("copied from host %s: %s", abi.Clean(one.HostID), entryCount(one.Entries))
		if one.Pending > 0 {
			line += fmt.Sprintf(", and %d not yet", one.Pending)
		}
		if one.Broken > 0 {
			s.line(fmt.Sprintf("%s, and %d places that are not as written:", line, one.Broken))
		} else {
			s.line(fmt.Sprintf("%s, all as written; hash %s", line, abi.Clean(one.HeadHash)))
		}
		for _, b := range one.Breaks {
			s.line("  " + join(" ", abi.Clean(b.AuditID), abi.Clean(b.Why)))
		}
	}
}

func entryCount(n uint64) string {
	if n == 1 {
		return "1 entry"
	}
	return count(n) + " entries"
}
