package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// LabelBrowser is the label of a host that lends browsers.
const LabelBrowser = "browser"

// noLabel is the code of a start at a host that lacks a label that the connection requires.
const noLabel = "host_label_missing"

const maxLabels = 16

var labelForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,62}(=[A-Za-z0-9._-]{1,63})?$`)

// CheckLabels says what is wrong with labels of a host, or with those that a connection requires.
func CheckLabels(all []string) error {
	if len(all) > maxLabels {
		return fmt.Errorf("want at most %d labels", maxLabels)
	}
	for _, l := range all {
		if !labelForm.MatchString(l) {
			return errors.New("want labels such as gpu or site=berlin: a name of small letters and digits, and a value behind =")
		}
	}
	return nil
}

// needs are the labels that a host must have to run a connection.
func needs(c store.Connection) []string {
	if c.Approved.Browser {
		return append(slices.Clone(c.Labels), LabelBrowser)
	}
	return c.Labels
}

// lacking are the needs that are not among labels.
func lacking(labels, needs []string) (out []string) {
	for _, n := range needs {
		if !slices.Contains(labels, n) {
			out = append(out, n)
		}
	}
	return out
}

// labelled refuses a start for want of a label, and says which hosts have all of them.
func (hs *hosts) labelled(ctx context.Context, id store.ConnectionID) error {
	c, err := hs.Store.Connection(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil // it is made for the run, and requires none
	}
	if err != nil {
		return err
	}
	missing := lacking(hs.Options.Labels, c.Labels)
	if len(missing) == 0 {
		return nil
	}
	labels := strings.Join(missing, ", ")
	if hs.members == nil {
		return host.Refuse("connection_not_ready", "connection %s runs only at a host with the label %s, which this one lacks: serve it with --label %s", c.ID, labels, missing[0]).With("code", noLabel)
	}
	all, err := hs.list(ctx)
	if err != nil {
		return err
	}
	var fit []string
	for _, m := range candidates(all, hs.Epoch, fitting(c)) {
		one := memberOf(m)
		fit = append(fit, cmp.Or(one.URL, one.HostID))
	}
	if len(fit) == 0 {
		return host.Refuse("connection_not_ready", "connection %s runs only at a host with the label %s, and none that starts runs has it: serve one with --label %s", c.ID, labels, missing[0]).With("code", noLabel)
	}
	return host.Refuse("connection_not_ready", "connection %s runs only at a host with the label %s, which this one lacks: start it at %s", c.ID, labels, strings.Join(fit, " or ")).With("code", noLabel)
}

// fitting says which hosts may run a connection: those with the labels that it needs, and with the
// vault where it may be given a secret.
func fitting(c store.Connection) func(store.Member) bool {
	needs, secret := needs(c), wantsSecret(c)
	return func(m store.Member) bool { return len(lacking(m.Labels, needs)) == 0 && (opensVault(m) || !secret) }
}

// candidates are the other hosts that fit and may start a run, those with most room first.
func candidates(all []store.Member, self string, fits func(store.Member) bool) []store.Member {
	out := slices.DeleteFunc(slices.Clone(all), func(m store.Member) bool {
		return m.Epoch == self || m.Draining || m.Capacity == 0 || len(m.Key) == 0 || !fits(m)
	})
	slices.SortStableFunc(out, func(a, b store.Member) int { return cmp.Compare(b.Capacity-b.Runs, a.Capacity-a.Runs) })
	return out
}

// fits reports whether this host has all that a connection needs: labels, a browser, and the
// directories that were approved.
func (hs *hosts) fits(c store.Connection) bool {
	hs.mu.Lock()
	labels := append(slices.Clone(hs.about.Labels), hs.Options.Labels...)
	hs.mu.Unlock()
	return len(lacking(labels, needs(c))) == 0 && !slices.ContainsFunc(c.Approved.Mounts, unreachable)
}

// startElsewhere has another host start a run that this one cannot serve or has no place for. It
// is not done where no other host takes it either: then this one says why.
func (rs *runs) startElsewhere(ctx context.Context, q host.StartRun) (r store.Run, done bool, err error) {
	p := rs.hosts.peers
	if p == nil || q.With != nil || q.Given != nil {
		return r, false, nil
	}
	c, err := rs.workflows.connections.permanent(ctx, store.ConnectionID(q.WorkflowID))
	if err != nil || rs.hosts.fits(c) && rs.controller.Full() == nil {
		return r, false, nil // start says what is wrong
	}
	all, err := rs.hosts.list(ctx)
	if err != nil {
		return r, false, err
	}
	body, err := json.Marshal(q)
	if err != nil {
		return r, false, err
	}
	for _, m := range candidates(all, rs.hosts.Epoch, fitting(c)) {
		out, err := p.ask(ctx, &m, command{Verb: "start", Principal: host.Who(ctx), Body: body})
		switch {
		case errors.Is(err, errOrphan):
			return r, true, host.Refuse("unavailable", "host %s was to start the run, and is gone; see whether it did before you start it again", m.ID)
		case err != nil:
			return r, true, err // it may have started there
		case out.Refusal != nil && (out.Refusal.Code == "unavailable" || out.Refusal.Code == "connection_not_ready" || out.Refusal.Code == "rate_limited"):
			continue
		case out.Refusal != nil:
			return r, true, out.Refusal
		case out.Absent:
			return r, true, store.ErrNotFound
		case out.Failed:
			return r, true, fmt.Errorf("start at host %s failed; its log says how", m.ID)
		}
		return r, true, json.Unmarshal(out.Body, &r)
	}
	return r, false, nil
}

// startHere is StartRun for another host, which nobody passes on.
func (rs *runs) startHere(ctx context.Context, q host.StartRun) (store.Run, error) {
	c, err := rs.workflows.connections.permanent(ctx, store.ConnectionID(q.WorkflowID))
	if err == nil && !rs.hosts.fits(c) {
		return store.Run{}, host.Refuse("unavailable", "this host cannot serve the connection")
	}
	return rs.start(ctx, q, branch{})
}
