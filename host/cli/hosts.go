package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// hosts are what the owner lets this run reach: those of --allow-host, and
// those of the manifest that --yes or an answer on the terminal approves.
// Addresses and names of the owner's own network are only ever typed (S64).
func (c *command) hosts(ctx context.Context, h *host.Host, q host.RunRequest, f *runFlags) ([]string, error) {
	var given []string
	for _, text := range f.hosts {
		entry, err := host.ApproveHost(text)
		if err != nil {
			return nil, usagef("--allow-host: %w", err)
		}
		given = append(given, entry)
	}
	known, err := h.Store.Connection(ctx, connectionOf(q))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("load connection: %w", err)
	}
	wanted := wantedHosts(q.Connector.Manifest, slices.Concat(known.Approved.Hosts, given))
	if len(wanted) == 0 || f.yes {
		return append(given, wanted...), nil
	}
	if t, ok := c.terminal(); ok && !f.noInteractive {
		t.say("── %s wants to reach %s", shownName(q.Connector.Manifest), strings.Join(wanted, ", "))
		if t.choose("Let it? [yes/no] ") {
			return append(given, wanted...), nil
		}
	}
	return given, nil
}

// wantedHosts are the hosts of the manifest that are not approved yet and that
// need not be typed.
func wantedHosts(m *abi.Manifest, approved []string) []string {
	var out []string
	for _, text := range m.Bindings[abi.BindingNetwork].Hosts {
		entry, err := host.ApproveHost(text)
		if err == nil && !host.OnlyByName(entry) && !slices.Contains(approved, entry) {
			out = append(out, entry)
		}
	}
	return out
}
