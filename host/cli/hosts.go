package cli

import (
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// hosts are what the owner lets the connector reach: those of --allow-host, and
// those of the manifest that --yes or an answer on the terminal approves.
// Addresses and names of the owner's own network are only ever typed (S64).
func (c approval) hosts(known store.Connection, q *app.RunRequest, f *runFlags) ([]string, error) {
	if q.Replay != nil { // its hosts are those of the recording
		return nil, nil
	}
	m := q.Connector.Manifest
	for _, text := range f.hosts {
		if err := app.CheckHost(text); err != nil {
			return nil, usagef("--allow-host: %w", err)
		}
	}
	wanted, err := app.WantedHosts(m, slices.Concat(known.Approved.Hosts, f.hosts))
	if err != nil || len(wanted) == 0 {
		return f.hosts, err
	}
	if t, ok := c.terminal(); ok && !f.yes && !f.noInteractive {
		t.say("── %s wants to reach %s", shownName(m), abi.Clean(strings.Join(wanted, ", ")))
		if !t.choose("Let it? [yes/no] ") {
			return f.hosts, nil
		}
	} else if !f.yes {
		return f.hosts, nil
	}
	return slices.Concat(f.hosts, wanted), nil
}
