package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// approval asks the owner for what a connector wants, and reads it from flags.
type approval struct{ *command }

func (c *command) approval() approval { return approval{c} }

// approve fills in what the owner gives a run: by flags, by --yes, and by answers on
// the terminal. known is the connection, the zero Connection if there is none.
func (c approval) approve(ctx context.Context, to *client.Client, known host.Connection, q *app.RunRequest,
	f *runFlags) error {
	var doubts []string
	if l := q.Connector; l.Wasm != nil && known.ModuleDigest != string(l.Connector.Digest) {
		q := host.InstallConnector{Module: l.Wasm}
		if l.Module.Manifest == nil {
			q.Manifest = l.Manifest.Raw
		}
		var err error
		if q.Signature, err = signatureBeside(l); err != nil {
			return err
		}
		found, err := to.InspectConnector(ctx, q)
		if err != nil {
			return err
		}
		for _, w := range found.Findings {
			if w.Code == "untrusted" {
				doubts = append(doubts, w.Message)
			}
		}
	}
	q.Accepted = c.accept(known, q.Connector, doubts, f)
	_, err := c.bindings(to, known, q, f)
	return err
}

// approveKinds adds what the owner approves of bindings: what flags give, what --yes or an
// answer on the terminal agrees to, and what is named there. A replay reaches no server
// and asks for nothing.
func (c approval) approveKinds(known host.Connection, q *app.RunRequest, f *runFlags, dataDir string,
	remote bool) (err error) {
	for _, k := range app.Kinds {
		if err := c.approveKind(k, known, q, f, dataDir, remote); err != nil {
			return err
		}
	}
	q.Approved.Plain, err = c.plainSecrets(known, q, f)
	return err
}

func (c approval) approveKind(k binding.Kind, known host.Connection, q *app.RunRequest, f *runFlags, dataDir string,
	remote bool) error {
	m := q.Connector.Manifest
	given, err := k.ParseFlag(binding.FlagValues{Manifest: m, Values: f.bindings.of(k), DataDir: dataDir, Remote: remote})
	if err != nil {
		return usage{err}
	}
	k.Merge(&q.Approved, given)
	have := app.ApprovedBy(known.Bindings)
	k.Merge(&have, q.Approved)
	t, ok := c.terminal()
	ask := ok && !f.yes && !f.noInteractive
	if words, more := k.Offer(m, have); words != "" && q.Replay == nil {
		if ask {
			t.printf("── %s wants to %s", displayName(m), words)
		}
		if f.yes || ask && t.choose("Let it? [yes/no] ") {
			k.Merge(&q.Approved, more)
		}
	}
	if !ask || remote {
		return nil
	}
	for _, choice := range k.Choices(m, have) {
		k.Merge(&q.Approved, t.approveNamed(choice, displayName(m), dataDir))
	}
	return nil
}

// approveNamed asks for a binding that a connector cannot start without. If the owner
// names nothing, the start is refused.
func (t terminal) approveNamed(c binding.Choice, connector, dataDir string) store.Approved {
	t.printf("── %s wants to %s", connector, c.Words)
	if c.Purpose != "" {
		t.printf("   It says:")
		t.printf("   │ %s", abi.Clean(c.Purpose))
	}
	for {
		t.prompt(c.Prompt)
		name, err := t.read(false)
		if err != nil || name == "" {
			return store.Approved{}
		}
		approved, err := c.Take(name, dataDir, false)
		if err == nil && c.More != "" && t.choose(c.More) {
			approved, err = c.Take(name, dataDir, true)
		}
		if err == nil {
			return approved
		}
		t.printf("   %v", err)
	}
}

// displayName returns what people call a connector.
func displayName(m *abi.Manifest) string {
	if n := abi.Clean(m.DisplayName); n != "" {
		return n
	}
	return m.Name()
}

// accept asks about a version that wants more than the approved one, or whose signature
// raises doubts.
func (c approval) accept(known host.Connection, l *app.Loaded, doubts []string, f *runFlags) bool {
	added := app.Added(known.Manifest, scopeOf(known), l.Manifest)
	if known.ModuleDigest == string(l.Connector.Digest) {
		doubts = nil // the same module was accepted before
	}
	t, ok := c.terminal()
	if len(added)+len(doubts) == 0 || f.yes || !ok || f.noInteractive {
		return f.yes
	}
	for _, d := range doubts {
		t.printf("── %s", abi.Clean(d))
	}
	if len(added) > 0 {
		t.printf("── %s %s asks for more than you granted. It wants to", displayName(l.Manifest),
			abi.Clean(l.Manifest.Version))
	}
	for _, w := range added {
		t.printf("   %s", w)
	}
	f.declined = !t.choose("Let this version run? [yes/no] ")
	return !f.declined
}

// confirmNarrowing asks whether to go on with a scope that was refused because stored records
// would lose fields, and reports the answer. Without a terminal the answer is --narrow.
func (c approval) confirmNarrowing(err error) bool {
	code, message := "", ""
	var refused *run.Refusal
	var answered *client.Error
	switch {
	case errors.As(err, &refused):
		code, message = refused.Code, refused.Message
	case errors.As(err, &answered):
		code, message = answered.Detail(), answered.Message
	}
	t, ok := c.terminal()
	if code != "scope_narrows_stored" || !ok {
		return false
	}
	t.printf("── %s", abi.Clean(message))
	return t.choose("Go on, and let them lose these? [yes/no] ")
}

// plainSecrets returns the secrets that the connector may see itself: those of --plain, and
// those that the owner agrees to when asked. --yes does not agree.
func (c approval) plainSecrets(known host.Connection, q *app.RunRequest, f *runFlags) ([]string, error) {
	m := q.Connector.Manifest
	var open []string // secrets that the connector would see
	for _, s := range run.SecretFields(m) {
		if !run.Sealed(m, s) {
			open = append(open, s.Name)
		}
	}
	for _, name := range f.plain {
		if !slices.Contains(open, name) {
			return nil, usagef("--plain %s: the connector asks to see no secret of that name; it asks to see: %s",
				abi.Clean(name), orNone(open))
		}
	}
	t, ok := c.terminal()
	if !ok || f.noInteractive || f.yes || q.Replay != nil { // a replay has no secrets
		return f.plain, nil
	}
	agreed := slices.Clone(f.plain)
	for _, name := range open {
		if slices.Contains(known.Bindings.PlainAcknowledged, name) || slices.Contains(agreed, name) {
			continue
		}
		t.printf("── %s would see the secret %s itself, and could pass it on to whatever it may reach",
			displayName(m), abi.Clean(name))
		if t.choose("Let it? [yes/no] ") {
			agreed = append(agreed, name)
		}
	}
	return agreed, nil
}

// destinations reads NAME=ORIGIN: where the owner lets a secret go besides the
// servers that the manifest names.
func destinations(m *abi.Manifest, args []string) (map[string][]abi.Destination, error) {
	var out map[string][]abi.Destination
	for _, a := range args {
		name, origin, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return nil, usagef("--secret-to: want NAME=ORIGIN, as in password=https://dav.example.org")
		}
		to, err := app.OwnerDestinations(m, name, origin)
		if err != nil {
			return nil, usagef("--secret-to %s: %w", abi.Clean(name), err)
		}
		if out == nil {
			out = map[string][]abi.Destination{}
		}
		out[name] = append(out[name], to...)
	}
	return out, nil
}
