package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/store"
)

// stateCommands are sluice state and those below it.
type stateCommands struct{ *command }

func (c stateCommands) state() *cobra.Command {
	cmd := &cobra.Command{
		Use: "state", Short: "Look at cursors, or forget them",
		Long:    "A connector's cursors say where its next run goes on. They are committed when a\nrun succeeds.",
		Example: "  sluice state show git\n  sluice state reset git commits",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice state show, or sluice state reset")
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "show CONNECTION", Short: "Print the cursors of a connection",
		Long:    "Prints the cursors of a connection. With --json: one object with a member per\nstream.",
		Example: "  sluice state show git --json",
		Args:    args(1, 1, "one connection"),
		RunE:    c.stored(c.showState),
	}, &cobra.Command{
		Use: "reset CONNECTION [STREAM]", Short: "Forget cursors, so that the next run starts afresh",
		Long:    "Forgets the cursor of one stream, or all of a connection's. Records stay; the next\nrun collects from the beginning, and what it finds unchanged is not stored twice.",
		Example: "  sluice state reset git commits",
		Args:    args(1, 2, "a connection and perhaps a stream"),
		RunE:    c.stored(c.resetState),
	})
	return cmd
}

// stateOf are the cursors of a connection.
type stateOf struct {
	ConnectionID string                 `json:"connectionId"`
	GrantID      *store.GrantID         `json:"grantId"` // null: the global namespace
	Streams      map[store.Stream]state `json:"streams"`
}

type state struct {
	Cursor      json.RawMessage `json:"cursor"`
	SHA256      string          `json:"sha256"`
	CommittedAt string          `json:"committedAt"`
	RunID       store.RunID     `json:"runId"`
}

func (c stateCommands) showState(ctx context.Context, src *client.Client, a []string) error {
	conn, states, err := states(ctx, src, a[0])
	if err != nil {
		return err
	}
	out := stateOf{ConnectionID: conn.ConnectionID, Streams: map[store.Stream]state{}}
	var rows [][]string
	for _, s := range states {
		sum := sha256.Sum256(s.Cursor)
		out.Streams[s.Stream] = state{s.Cursor, hex.EncodeToString(sum[:]), store.Time(s.CommittedAt), s.RunID}
		cursor := abi.Cut(string(s.Cursor), shownData)
		if len(cursor) < len(s.Cursor) {
			cursor += "…"
		}
		rows = append(rows, []string{string(s.Stream), c.timeText(s.CommittedAt), string(s.RunID), cursor})
	}
	if c.json {
		return printJSON(c.out, out)
	}
	if len(rows) == 0 {
		c.warnf("%s has no cursors; its next run starts afresh.", conn.ConnectionID)
	}
	return c.table([]string{"stream", "committed", "run", "cursor"}, rows)
}

func states(ctx context.Context, src *client.Client, connection string) (host.Connection, []store.State, error) {
	conn, err := findConnection(ctx, src, connection)
	if err != nil {
		return conn, nil, err
	}
	list, err := src.States(ctx, store.ConnectionID(conn.ConnectionID))
	if err != nil {
		return conn, nil, fmt.Errorf("read state of %s: %w", conn.ConnectionID, err)
	}
	return conn, list, nil
}

func (c stateCommands) resetState(ctx context.Context, src *client.Client, a []string) error {
	conn, list, err := states(ctx, src, a[0])
	if err != nil {
		return err
	}
	var stream store.Stream
	if len(a) == 2 {
		stream = store.Stream(a[1])
		var names []string
		for _, s := range list {
			names = append(names, string(s.Stream))
		}
		if !slices.Contains(names, a[1]) {
			return usagef("%s has no cursor for stream %q; it has: %s", conn.ConnectionID, a[1], orNone(names))
		}
		list = list[:1]
	}
	err = src.ResetState(ctx, store.ConnectionID(conn.ConnectionID), "", stream)
	var active *store.ActiveError
	if errors.As(err, &active) {
		return usagef("run %s of %s is not over; wait for it, or cancel it", active.RunID, conn.ConnectionID)
	}
	if err != nil {
		return fmt.Errorf("reset state of %s: %w", conn.ConnectionID, err)
	}
	if c.json {
		return printJSON(c.out, map[string]any{"connectionId": conn.ConnectionID, "reset": len(list)})
	}
	c.warnf("Forgot %d cursors of %s.", len(list), conn.ConnectionID)
	return nil
}
