package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// page is how many entries are asked for at once.
const page = 100

// findRun finds a run by id, by the beginning of one, or as "last".
func findRun(ctx context.Context, src *client.Client, arg string) (timeline.Snapshot, error) {
	if arg == "last" {
		var last store.RunID
		err := src.Runs(ctx, "", func(r timeline.Snapshot) (bool, error) {
			last = r.RunID
			return false, nil
		})
		if err != nil {
			return timeline.Snapshot{}, err
		}
		if last == "" {
			return timeline.Snapshot{}, usagef("there are no runs yet")
		}
		return src.Run(ctx, last)
	}
	run, err := src.Run(ctx, store.RunID(arg))
	if !errors.Is(err, store.ErrNotFound) {
		return run, err
	}
	return prefixedRun(ctx, src, arg)
}

// prefixedRun finds the one run whose id begins so, with or without run_.
func prefixedRun(ctx context.Context, src *client.Client, arg string) (timeline.Snapshot, error) {
	prefix := strings.ToUpper(strings.TrimPrefix(arg, "run_"))
	var found []store.RunID
	err := src.Runs(ctx, "", func(r timeline.Snapshot) (bool, error) {
		if strings.HasPrefix(strings.TrimPrefix(string(r.RunID), "run_"), prefix) {
			found = append(found, r.RunID)
		}
		return len(found) < 2, nil
	})
	switch {
	case err != nil:
		return timeline.Snapshot{}, err
	case prefix == "" || len(found) == 0:
		return timeline.Snapshot{}, missingf("not_found", "no run %q; sluice runs lists them, last is the newest", arg)
	case len(found) > 1:
		return timeline.Snapshot{}, usagef("more than one run begins with %q, such as %s and %s", arg, found[0], found[1])
	}
	return src.Run(ctx, found[0])
}

// connectionNamed returns a connection with the manifest that was approved for it, also where
// that is the installed one.
func connectionNamed(ctx context.Context, src *client.Client, id store.ConnectionID) (host.Connection, error) {
	conn, err := src.Connection(ctx, id)
	if err != nil || len(conn.Manifest) > 0 {
		return conn, err
	}
	if of, err := src.Connector(ctx, conn.ConnectorName); err == nil && of.ModuleDigest == conn.ModuleDigest {
		conn.Manifest = of.Manifest
	}
	return conn, nil
}

// knownConnection returns a connection as far as approvals go, the zero Connection if there is none.
func knownConnection(ctx context.Context, src *client.Client, id store.ConnectionID) (host.Connection, error) {
	conn, err := connectionNamed(ctx, src, id)
	if errors.Is(err, store.ErrNotFound) {
		return host.Connection{}, nil
	}
	return conn, err
}

// findConnection finds a connection, or says which there are.
func findConnection(ctx context.Context, src *client.Client, arg string) (host.Connection, error) {
	conn, err := connectionNamed(ctx, src, store.ConnectionID(arg))
	if !errors.Is(err, store.ErrNotFound) {
		return conn, err
	}
	all, err := src.Connections(ctx)
	if err != nil {
		return conn, fmt.Errorf("list connections: %w", err)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.ConnectionID)
	}
	return conn, missingf("connection_not_found", "no connection %q; there are: %s", arg, orNone(names))
}

// findStreams returns the counters of one stream, or of all when name is "".
func findStreams(ctx context.Context, src *client.Client, id store.ConnectionID,
	name string) ([]store.StreamStats, error) {
	all, err := src.Streams(ctx, id)
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
		return nil, missingf("not_found", "no stream %q is stored for %s; there are: %s", name, id, orNone(names))
	}
	return all[i : i+1], nil
}
