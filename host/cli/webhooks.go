package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// webhookCommands are sluice webhooks and those below it.
type webhookCommands struct{ *command }

func (c webhookCommands) webhooks() *cobra.Command {
	cmd := &cobra.Command{
		Use: "webhooks", Short: "See and test what tells other servers of events",
		Long: `Webhooks of the running host: how they stand, what was delivered, and what went
wrong. They are made on the page Settings or over the API; docs/operating.md says how.`,
		Example: "  sluice webhooks list\n  sluice webhooks ping whk_01J9ZKM3",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice webhooks list, deliveries, ping, redeliver or rotate")
		},
	}
	cmd.AddCommand(
		c.webhookCommand("list", 0, "List webhooks with their last error",
			"Lists webhooks, never a secret. With --json: one array.", "sluice webhooks list", c.listWebhooks),
		c.webhookCommand("deliveries WEBHOOK", 1, "List the last attempts to deliver",
			"Lists the last attempts of a webhook, newest first, with the status of the answer\nor the kind of failure. With --json: one array.",
			"sluice webhooks deliveries whk_01J9ZKM3", c.listDeliveries),
		c.webhookCommand("ping WEBHOOK", 1, "Deliver a test now",
			"Delivers a signed test and says what came of it. One that failed ends with code 1.\nWith --json: one object.",
			"sluice webhooks ping whk_01J9ZKM3", c.pingWebhook),
		c.webhookCommand("redeliver WEBHOOK DELIVERY", 2, "Deliver something again",
			"Makes one attempt more for what an attempt was for, under the same webhook-id, and\n"+
				"says what came of it. One that failed ends with code 1. With --json: one object.",
			"sluice webhooks redeliver whk_01J9ZKM3 del_01J9ZKP0", c.redeliver),
		c.webhookCommand("rotate WEBHOOK", 1, "Replace the signing secret; it is shown once",
			"Makes a new secret and prints it, once. For 24 hours deliveries are signed with the\nold one too, so that receivers can switch. With --json: one object.",
			"sluice webhooks rotate whk_01J9ZKM3", c.rotateWebhook),
	)
	return cmd
}

func (c webhookCommands) webhookCommand(use string, n int, short, long, example string,
	do func(context.Context, *client.Client, []string) error) *cobra.Command {
	want := "no arguments"
	if words := strings.Fields(use)[1:]; len(words) > 0 {
		want = strings.Join(words, " and ")
	}
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: "  " + example, Args: args(n, n, want),
		RunE: func(cmd *cobra.Command, a []string) error {
			err := c.withStoredData(cmd.Context(), func(src *client.Client) error { return do(cmd.Context(), src, a) })
			if errors.Is(err, store.ErrNotFound) {
				return usagef("there is no such webhook, or what it delivered is not kept any more; sluice webhooks list and deliveries list what there is")
			}
			return err
		},
	}
}

func (c webhookCommands) listWebhooks(ctx context.Context, k *client.Client, _ []string) error {
	all, err := k.Webhooks(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, w := range all {
		last := ""
		if w.LastError != nil {
			last = c.timeText(timeOf(w.LastError.At)) + " " + deliveryOutcome(*w.LastError)
		}
		rows = append(rows, []string{w.ID, w.Status, strconv.Itoa(w.Failures), last, strings.Join(w.Events, " "), w.URL})
	}
	return c.printList(all, []string{"webhook", "status", "failures", "last error", "events", "url"}, rows)
}

func (c webhookCommands) listDeliveries(ctx context.Context, k *client.Client, a []string) error {
	all, err := k.Deliveries(ctx, a[0])
	if err != nil {
		return err
	}
	var rows [][]string
	for _, d := range all {
		rows = append(rows, []string{
			d.ID, c.timeText(timeOf(d.At)), d.Cause, d.Type, strconv.Itoa(d.Number), deliveryOutcome(d),
			fmt.Sprintf("%d ms", d.DurationMS), string(d.RunID), string(d.EventID),
		})
	}
	return c.printList(all, []string{"delivery", "at", "cause", "type", "attempt", "outcome", "took", "run", "event"}, rows)
}

// deliveryOutcome returns the status of an answer, or the kind of failure.
func deliveryOutcome(d webhook.Attempt) string {
	if d.Status != 0 {
		return strconv.Itoa(d.Status)
	}
	return d.Error
}

func (c webhookCommands) pingWebhook(ctx context.Context, k *client.Client, a []string) error {
	d, err := k.TestWebhook(ctx, a[0])
	return c.printDelivery(d, err)
}

func (c webhookCommands) redeliver(ctx context.Context, k *client.Client, a []string) error {
	d, err := k.Redeliver(ctx, a[0], a[1])
	return c.printDelivery(d, err)
}

// printDelivery prints the outcome of an attempt.
func (c webhookCommands) printDelivery(d webhook.Attempt, err error) error {
	if err != nil {
		return err
	}
	if d.Error != "" {
		c.code = exitConnector
	}
	if c.json {
		return printJSON(c.out, d)
	}
	word := "delivered"
	if d.Error != "" {
		word = "failed"
	}
	_, err = fmt.Fprintf(c.out, "%s: %s, %d ms (%s)\n", word, deliveryOutcome(d), d.DurationMS, d.ID)
	return err
}

func (c webhookCommands) rotateWebhook(ctx context.Context, k *client.Client, a []string) error {
	r, err := k.RotateWebhook(ctx, a[0])
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, r)
	}
	c.warnf("Until %s deliveries are signed with the old secret too. Keep the new one: it is not shown again.",
		c.timeText(timeOf(r.PreviousUntil)))
	_, err = fmt.Fprintf(c.out, "%s\n", r.Secret)
	return err
}
