package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// reading opens what is stored, without a sandbox, for a command that only
// looks at it. It makes no data directory.
func (c *command) reading(ctx context.Context, do func(*host.Host) error) error {
	dir, err := host.DataDir(c.store)
	if err != nil {
		return err
	}
	if dir == "" {
		return usagef("a memory: store keeps nothing between commands; name another with --store badger:DIR")
	}
	if _, err := os.Stat(filepath.Join(dir, "db")); errors.Is(err, os.ErrNotExist) {
		return usagef("nothing is stored in %s yet; sluice run CONNECTOR stores something there, --store names another place", dir)
	}
	return c.with(ctx, host.Options{NoSandbox: true}, do)
}

// page is how many entries are asked for at once.
const page = 100

// findRun finds a run by id, by the beginning of one, or as "last".
func findRun(ctx context.Context, st store.Store, arg string) (store.Run, error) {
	if arg == "last" {
		runs, err := st.Runs(ctx, "", "", 1)
		if err != nil {
			return store.Run{}, fmt.Errorf("list runs: %w", err)
		}
		if len(runs) == 0 {
			return store.Run{}, usagef("there are no runs yet")
		}
		return st.Run(ctx, runs[0].ID)
	}
	run, err := st.Run(ctx, store.RunID(arg))
	if !errors.Is(err, store.ErrNotFound) {
		return run, err
	}
	return prefixedRun(ctx, st, arg)
}

// prefixedRun finds the one run whose id begins so, with or without run_.
func prefixedRun(ctx context.Context, st store.Store, arg string) (store.Run, error) {
	prefix := strings.ToUpper(strings.TrimPrefix(arg, "run_"))
	var found []store.Run
	for before := store.RunID(""); len(found) < 2; {
		runs, err := st.Runs(ctx, "", before, page)
		if err != nil {
			return store.Run{}, fmt.Errorf("list runs: %w", err)
		}
		for _, r := range runs {
			if strings.HasPrefix(strings.TrimPrefix(string(r.ID), "run_"), prefix) {
				found = append(found, r)
			}
		}
		if len(runs) < page {
			break
		}
		before = runs[len(runs)-1].ID
	}
	switch {
	case prefix == "" || len(found) == 0:
		return store.Run{}, usagef("no run %q; sluice runs lists them, last is the newest", arg)
	case len(found) > 1:
		return store.Run{}, usagef("more than one run begins with %q, such as %s and %s", arg, found[0].ID, found[1].ID)
	}
	return found[0], nil
}

// findConnection finds a connection, or says which there are.
func findConnection(ctx context.Context, st store.Store, arg string) (store.Connection, error) {
	conn, err := st.Connection(ctx, store.ConnectionID(arg))
	if !errors.Is(err, store.ErrNotFound) {
		return conn, err
	}
	all, err := st.Connections(ctx)
	if err != nil {
		return conn, fmt.Errorf("list connections: %w", err)
	}
	var names []string
	for _, c := range all {
		names = append(names, string(c.ID))
	}
	return conn, usagef("no connection %q; there are: %s", arg, orNone(names))
}

// namespace is the grant namespace of a connection's state (R11).
func namespace(c store.Connection) store.GrantID {
	if c.Grant == nil {
		return ""
	}
	return c.Grant.ID
}

// findStreams returns the counters of one stream, or of all when name is "".
func findStreams(ctx context.Context, st store.Store, id store.ConnectionID, name string) ([]store.StreamStats, error) {
	all, err := st.Streams(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("list streams of %s: %w", id, err)
	}
	if name == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(s store.StreamStats) bool { return string(s.Stream) == name })
	if i < 0 {
		var names []string
		for _, s := range all {
			names = append(names, string(s.Stream))
		}
		return nil, usagef("no stream %q is stored for %s; there are: %s", name, id, orNone(names))
	}
	return all[i : i+1], nil
}
