package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// answerCommands is sluice answer.
type answerCommands struct{ *command }

func (c answerCommands) answer() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use: "answer RUN", Short: "Answer the question that a run waits with",
		Long: `Asks you on the terminal what a run of the running host wants to know, secrets
without echo, and hands the answer over. --answer answers without a terminal. RUN is
an id, the beginning of one, or last: the newest run that waits. With --json: one
object.`,
		Example: "  sluice answer last\n  sluice answer last --answer otp=@code.txt\n  sluice answer last --answer approval=reject",
		Args:    args(1, 1, "one run"),
		RunE:    func(cmd *cobra.Command, a []string) error { return c.doAnswer(cmd.Context(), a[0], f) },
	}
	cmd.Flags().StringArrayVar(&f.answers, "answer", nil, "answer with `KIND=VALUE|@FILE`, as for sluice run")
	return cmd
}

// answerResult is what sluice answer prints.
type answerResult struct {
	RunID         store.RunID `json:"run_id"`
	InteractionID string      `json:"interaction_id"`
	Kind          string      `json:"kind"`
	Status        string      `json:"status"`
}

func (c answerCommands) doAnswer(ctx context.Context, arg string, f *runFlags) error {
	owner, err := c.owner(f)
	if err != nil {
		return err
	}
	if owner == nil {
		return usagef("there is no terminal to ask on; give the answer with --answer KIND=VALUE")
	}
	k, err := c.requireHost(ctx)
	if err != nil {
		return err
	}
	r, err := c.waitingRun(ctx, k, arg)
	if err != nil {
		return err
	}
	q, err := question(ctx, k, r.RunID, "")
	if err != nil {
		return err
	}
	if q == nil {
		return usagef("run %s waits for no answer", r.RunID)
	}
	if s, ok := owner.(*scripted); ok && s.answers[0].kind != q.Kind && s.next == nil {
		return usagef("run %s asks for %s; want --answer %s=VALUE", r.RunID, q.Kind, q.Kind)
	}
	a, err := c.submitAnswer(ctx, k, owner, *q)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, answerResult{r.RunID, q.InteractionID, q.Kind, a.Status})
	}
	c.warnf("%s: %s", r.RunID, a.Status)
	return nil
}

// waitingRun returns the run that is meant; last is the newest one that waits, not one that
// was started since.
func (c answerCommands) waitingRun(ctx context.Context, k *client.Client, arg string) (timeline.Snapshot, error) {
	if arg != "last" {
		return findRun(ctx, k, arg)
	}
	items, err := k.Waiting(ctx, "")
	if err != nil {
		return timeline.Snapshot{}, err
	}
	var newest store.RunID
	for _, i := range items {
		if i.InteractionID != "" {
			newest = max(newest, i.RunID)
		}
	}
	if newest == "" {
		return timeline.Snapshot{}, usagef("no run waits for an answer")
	}
	return k.Run(ctx, newest)
}

// question returns what a run waits with: the one of that id, or the only one there is
// with "". nil when there is none.
func question(ctx context.Context, k *client.Client, id store.RunID, interaction string) (*run.Question, error) {
	items, err := k.Waiting(ctx, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(items, func(i timeline.Item) bool {
		return i.InteractionID != "" && (interaction == "" || i.InteractionID == interaction)
	})
	if i < 0 {
		return nil, nil
	}
	a, err := k.Assistance(ctx, items[i].AssistanceID)
	if errors.Is(err, store.ErrNotFound) || err == nil && a.Status != timeline.ItemOpen {
		return nil, nil // closed meanwhile
	}
	if err != nil {
		return nil, err
	}
	return questionFrom(a), nil
}

// questionFrom returns a question as the terminal asks it. Fields go by the names that
// the timeline shows: the host knows the connector's own.
func questionFrom(a client.Assistance) *run.Question {
	q := &run.Question{
		RunID: string(a.RunID), ConnectionID: string(a.ConnectionID), DisplayName: string(a.ConnectionID),
		InteractionID: a.InteractionID, NodeID: a.NodeID, Kind: a.Kind, Stream: a.Stream, Message: a.Message,
		RawMessage: a.Message,
	}
	if a.Raw != nil {
		q.RawMessage, q.RawSchema = a.Raw.Message, a.Raw.Schema
		if p := a.Raw.Page; p != nil {
			q.Page = run.Page{Title: p.Title, Host: p.URLHost}
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, a.Expires); err == nil {
		q.Timeout = max(time.Until(at), time.Second)
	}
	v := timeline.ViewOf(a.Item)
	for _, f := range v.Fields {
		q.Fields = append(q.Fields,
			run.Field{Name: f.Name, Shown: f.Name, Title: f.Label, Type: f.Type, Secret: f.Secret, Required: f.Required,
				Sealed: f.Sealed, Enum: f.Enum, File: f.File, Accept: f.Accept})
	}
	if v.Decision != "" {
		q.Fields = append(q.Fields,
			run.Field{Name: v.Decision, Shown: v.Decision, Type: "string", Required: true, Enum: v.Choices})
		if v.Comment {
			q.Fields = append(q.Fields, run.Field{Name: "comment", Shown: "comment", Type: "string"})
		}
		if v.Edited {
			q.Fields = append(q.Fields, run.Field{Name: "edited", Shown: "edited", Type: "string"})
		}
	}
	return q
}

// submitAnswer asks the owner and sends the answer to the host.
func (c *command) submitAnswer(ctx context.Context, k *client.Client, owner run.Owner,
	q run.Question) (host.Answer, error) {
	if q.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		defer cancel()
	}
	a, err := owner.Ask(ctx, q)
	if err != nil {
		return a, err
	}
	data := a.Data
	if a.Status != abi.AnswerSuccess {
		data = nil
	}
	err = k.Answer(ctx, store.RunID(q.RunID), q.InteractionID, a.Status, data)
	for _, v := range a.Data {
		clear(v)
	}
	return a, err
}
