package destination

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// known refuses names of connections and streams that do not exist, because most are mistakes.
func (fs *Feeds) known(ctx context.Context, q host.DestinationTerms) error {
	connections, err := fs.o.Store.Connections(ctx)
	if err != nil {
		return fmt.Errorf("list connections: %w", err)
	}
	ids, streams := map[string]bool{}, map[string]bool{}
	for _, c := range connections {
		ids[string(c.ID)] = true
		if len(q.Connections) > 0 && !slices.Contains(q.Connections, string(c.ID)) {
			continue
		}
		names, err := streamsOf(ctx, fs.o.Store, c)
		if err != nil {
			return err
		}
		for _, s := range names {
			streams[s], streams[StreamID{c.ID, store.Stream(s)}.String()] = true, true
		}
	}
	for _, c := range q.Connections {
		if !ids[c] {
			return host.Invalid("connections", "unknown", "there is no connection %s; there are: %s", abi.Clean(c), listed(ids))
		}
	}
	for _, s := range q.Streams {
		if !streams[s] {
			return host.Invalid("streams", "unknown", "none of these connections has a stream %s; there are: %s",
				abi.Clean(abi.Cut(s, 100)), listed(streams))
		}
	}
	for s := range q.StreamModes {
		if !streams[s] {
			return host.Invalid("streamModes", "unknown", "none of these connections has a stream %s; there are: %s",
				abi.Clean(abi.Cut(s, 100)), listed(streams))
		}
	}
	return nil
}

// streamsOf returns the streams that a connection declares or has.
func streamsOf(ctx context.Context, s Store, c store.Connection) (names []string, err error) {
	if m, err := abi.ReadManifest(c.Manifest); err == nil {
		for _, spec := range m.Streams {
			names = append(names, spec.Name)
		}
	}
	stored, err := s.Streams(ctx, c.ID)
	for _, st := range stored {
		names = append(names, string(st.Stream))
	}
	return names, err
}

// listed returns names for an error message, up to 300 bytes of them.
func listed(names map[string]bool) string {
	all := slices.Sorted(maps.Keys(names))
	if len(all) == 0 {
		return "none yet"
	}
	return abi.Clean(abi.Cut(strings.Join(all, ", "), 300))
}

func checkTerms(q host.DestinationTerms) error {
	if q.Mode != "" && !slices.Contains(Modes, Mode(q.Mode)) {
		return host.Invalid("mode", "value_unknown", "want current, current+deleted or history")
	}
	for _, m := range q.StreamModes {
		if !slices.Contains(Modes, Mode(m)) {
			return host.Invalid("streamModes", "value_unknown", "want current, current+deleted or history")
		}
	}
	if len(q.Connections) > 1000 || len(q.Streams) > 1000 || len(q.StreamModes) > 1000 {
		return host.Invalid("connections", "too_many", "want at most 1000 names")
	}
	for _, c := range q.Connections {
		if !abi.IsSlug(c) {
			return host.Invalid("connections", "slug", "want ids of connections")
		}
	}
	if q.Cron != "" {
		if _, err := cron.ParseStandard(q.Cron); err != nil {
			return host.Invalid("cron", "cron", "want minute, hour, day, month and weekday, as in 0 3 * * *")
		}
	}
	return nil
}
