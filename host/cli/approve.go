package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// approval asks the owner for what a connector wants, and reads it from flags.
type approval struct{ *command }

func (c *command) approval() approval { return approval{c} }

// approve fills in what the owner gives a run: by flags, by --yes, and by answers on
// the terminal. known is the connection, the zero Connection if there is none.
func (c approval) approve(ctx context.Context, to served, known store.Connection, q *app.RunRequest, f *runFlags) error {
	var doubts []string
	if l := q.Connector; l.Wasm != nil && known.Digest != l.Connector.Digest {
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
	_, err := c.bindings(to.Client, bindingsOf(known), q, f)
	return err
}

func (c approval) approveRest(known store.Connection, q *app.RunRequest, f *runFlags) (err error) {
	if q.Approved.Hosts, err = c.hosts(known, q, f); err != nil {
		return err
	}
	if q.Approved.Browser, err = c.acts(known, q, f); err != nil {
		return err
	}
	q.Approved.Plain, err = c.plain(known, q, f)
	return err
}

// acts is whether the connector may act in a browser: by --browser, --yes, or an
// answer on the terminal.
func (c approval) acts(known store.Connection, q *app.RunRequest, f *runFlags) (bool, error) {
	m := q.Connector.Manifest
	_, asks := m.Bindings[abi.BindingBrowser]
	switch {
	case f.browser && !asks:
		return false, usagef("--browser: the connector asks for no browser")
	case f.browser || !asks || q.Replay != nil || known.Approved.Browser:
		return f.browser, nil
	}
	if t, ok := c.terminal(); ok && !f.yes && !f.noInteractive {
		t.say("── %s wants to %s", shownName(m), strings.Join(browserWords(m), "; to "))
		return t.choose("Let it? [yes/no] "), nil
	}
	return f.yes, nil
}

// accept asks about a version that wants more than the one that was approved, or
// that the publisher did not sign.
func (c approval) accept(known store.Connection, l *app.Loaded, doubts []string, f *runFlags) bool {
	added := app.Added(known, l)
	if known.Digest == l.Connector.Digest {
		doubts = nil // it ran before
	}
	t, ok := c.terminal()
	if len(added)+len(doubts) == 0 || f.yes || !ok || f.noInteractive {
		return f.yes
	}
	for _, d := range doubts {
		t.say("── %s", abi.Clean(d))
	}
	if len(added) > 0 {
		t.say("── %s %s asks for more than you granted. It wants to", shownName(l.Manifest), abi.Clean(l.Manifest.Version))
	}
	for _, w := range added {
		t.say("   %s", w)
	}
	f.declined = !t.choose("Let this version run? [yes/no] ")
	return !f.declined
}

// narrows asks about a scope that was refused because stored records would lose
// fields to it, and reports whether the owner means that. Without a terminal the
// error says so, and --narrow is the answer.
func (c approval) narrows(err error) bool {
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
	t.say("── %s", abi.Clean(message))
	return t.choose("Go on, and let them lose these? [yes/no] ")
}

// plain are the secrets that the connector may see itself: those of --plain, and
// those that the owner agrees to when asked. --yes does not agree.
func (c approval) plain(known store.Connection, q *app.RunRequest, f *runFlags) ([]string, error) {
	m := q.Connector.Manifest
	var open []string // secrets that the connector would see
	for _, s := range run.SecretFields(m) {
		if !run.Sealed(m, s) {
			open = append(open, s.Name)
		}
	}
	for _, name := range f.plain {
		if !slices.Contains(open, name) {
			return nil, usagef("--plain %s: the connector asks to see no secret of that name; it asks to see: %s", abi.Clean(name), orNone(open))
		}
	}
	t, ok := c.terminal()
	if !ok || f.noInteractive || f.yes || q.Replay != nil { // a replay has no secrets
		return f.plain, nil
	}
	agreed := slices.Clone(f.plain)
	for _, name := range open {
		if slices.Contains(known.Approved.Plain, name) || slices.Contains(agreed, name) {
			continue
		}
		t.say("── %s would see the secret %s itself, and could pass it on to whatever it may reach", shownName(m), abi.Clean(name))
		if t.choose("Let it? [yes/no] ") {
			agreed = append(agreed, name)
		}
	}
	return agreed, nil
}

// hosts are what the owner lets the connector reach: those of --allow-host, and
// those of the manifest that --yes or an answer on the terminal approves.
// Addresses and names of the owner's own network are only ever typed.
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

// mounts are the directories of a run: those of --mount, then those that are
// required, not approved yet, and named by the owner when asked.
func (c approval) mounts(h *app.Host, known store.Connection, m *abi.Manifest, f *runFlags) ([]store.Mount, error) {
	given, err := approveMounts(h, m, f.mounts)
	if err != nil {
		return nil, err
	}
	t, ok := c.terminal()
	if !ok || f.yes || f.noInteractive {
		return given, nil
	}
	return append(given, t.askMounts(h, m, slices.Concat(known.Approved.Mounts, given))...), nil
}

// approveMounts reads NAME=DIR[:rw] and checks the directories.
func approveMounts(h *app.Host, m *abi.Manifest, args []string) ([]store.Mount, error) {
	var known []string
	changes := map[string]bool{}
	for _, r := range m.Bindings[abi.BindingFilesystem].Mounts {
		known = append(known, r.Name)
		changes[r.Name] = r.Writable
	}
	var out []store.Mount
	for _, a := range args {
		name, dir, ok := strings.Cut(a, "=")
		if !ok || name == "" || dir == "" {
			return nil, usagef("--mount %s: want NAME=DIR or NAME=DIR:rw", abi.Clean(a))
		}
		if !slices.Contains(known, name) {
			return nil, usagef("--mount %s: the connector asks for no directory of that name; it asks for: %s", abi.Clean(name), orNone(known))
		}
		if slices.ContainsFunc(out, func(m store.Mount) bool { return m.Name == name }) {
			return nil, usagef("--mount %s is given twice", name)
		}
		dir, writable := strings.CutSuffix(dir, ":rw")
		dir = strings.TrimSuffix(dir, ":ro")
		if writable && !changes[name] {
			return nil, usagef("--mount %s: the connector asks to read it only; leave out :rw", name)
		}
		approved, err := h.ApproveMount(name, filepath.Clean(dir), writable)
		if err != nil {
			return nil, usage{fmt.Errorf("--mount %s: %w", name, err)}
		}
		out = append(out, approved)
	}
	return out, nil
}

// askMounts asks for each required directory that is not among approved. The
// owner who gives none sees the start refused with its name.
func (t terminal) askMounts(h *app.Host, m *abi.Manifest, approved []store.Mount) []store.Mount {
	b := m.Bindings[abi.BindingFilesystem]
	if !b.Required {
		return nil
	}
	var out []store.Mount
	for _, want := range b.Mounts {
		if slices.ContainsFunc(approved, func(a store.Mount) bool { return a.Name == want.Name && (a.Writable || !want.Writable) }) {
			continue
		}
		if mount, ok := t.askMount(h, m, want); ok {
			out = append(out, mount)
		}
	}
	return out
}

func (t terminal) askMount(h *app.Host, m *abi.Manifest, want abi.MountRequest) (store.Mount, bool) {
	access := "read"
	if want.Writable {
		access = "read and change"
	}
	t.say("── %s wants to %s a directory it calls %s", shownName(m), access, abi.Clean(want.Name))
	if want.Purpose != "" {
		t.say("   It says:")
		t.say("   │ %s", abi.Clean(want.Purpose))
	}
	for {
		t.prompt("Which directory? (empty: none) ")
		dir, err := t.read(false)
		if err != nil || dir == "" {
			return store.Mount{}, false
		}
		mount, err := h.ApproveMount(want.Name, filepath.Clean(dir), false)
		if err == nil && want.Writable && t.choose("Let it change files there? [yes/no] ") {
			mount, err = h.ApproveMount(want.Name, filepath.Clean(dir), true)
		}
		if err == nil {
			return mount, true
		}
		t.say("   %v", err)
	}
}

// shownName is what people call a connector.
func shownName(m *abi.Manifest) string {
	if n := abi.Clean(m.DisplayName); n != "" {
		return n
	}
	return m.Name()
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
