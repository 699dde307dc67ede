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
	"sync"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// LabelBrowser is the label of hosts that lend browsers.
const LabelBrowser = "browser"

// noLabel is the code of the refusal when this host lacks a label that the connection requires.
const noLabel = "host_label_missing"

const maxLabels = 16

// The verbs by which a host has another one start a run. Hosts of versions that do not know StartRun.At do not know the
// others.
const (
	verbStart   = "start"
	verbStartAt = "start at"
	verbForkAt  = "fork at"
)

var labelForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,62}(=[A-Za-z0-9._-]{1,63})?$`)
})

// CheckLabels checks the labels of a host, or those that a connection requires.
func CheckLabels(all []string) error {
	if len(all) > maxLabels {
		return fmt.Errorf("want at most %d labels", maxLabels)
	}
	for _, l := range all {
		if !labelForm().MatchString(l) {
			return errors.New("want labels such as gpu or site=berlin: a name of small letters and digits, and a value behind =")
		}
	}
	return nil
}

// needs returns the labels that a host must have to run a connection.
func needs(c store.Connection) []string {
	if c.Approved.Browser {
		return append(slices.Clone(c.Labels), LabelBrowser)
	}
	return c.Labels
}

// lacking returns the needs that are not among labels.
func lacking(labels, needs []string) (out []string) {
	for _, n := range needs {
		if !slices.Contains(labels, n) {
			out = append(out, n)
		}
	}
	return out
}

// labelled refuses a start if this host lacks a required label, and names the hosts that have all of them.
func (hs *hosts) labelled(ctx context.Context, id store.ConnectionID) error {
	c, err := hs.Store.Connection(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil // a connection that is made for the run requires no labels
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
		return host.Refuse("connection_not_ready",
			"connection %s runs only at a host with the label %s, which this one lacks: serve it with --label %s", c.ID, labels,
			missing[0]).With("code", noLabel)
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
		return host.Refuse("connection_not_ready",
			"connection %s runs only at a host with the label %s, and none that starts runs has it: serve one with --label %s",
			c.ID, labels, missing[0]).With("code", noLabel)
	}
	return host.Refuse("connection_not_ready",
		"connection %s runs only at a host with the label %s, which this one lacks: start it at %s", c.ID, labels,
		strings.Join(fit, " or ")).With("code", noLabel)
}

// fitting returns a function that reports whether a host may run a connection: it has the needed labels, and is
// admitted to the vault if the connection may get a secret.
func fitting(c store.Connection) func(store.Member) bool {
	needs, secret := needs(c), wantsSecret(c)
	return func(m store.Member) bool { return len(lacking(m.Labels, needs)) == 0 && (opensVault(m) || !secret) }
}

// candidates returns the other hosts that fit and accept runs, those with most free capacity first.
func candidates(all []store.Member, self string, fits func(store.Member) bool) []store.Member {
	out := slices.DeleteFunc(slices.Clone(all), func(m store.Member) bool {
		return m.Epoch == self || m.Draining || m.Capacity == 0 || len(m.Key) == 0 || !fits(m)
	})
	slices.SortStableFunc(out, func(a, b store.Member) int { return cmp.Compare(b.Capacity-b.Runs, a.Capacity-a.Runs) })
	return out
}

// takers returns the candidates for a run of a connection that this host can ask to take it.
func takers(all []store.Member, self string, c store.Connection) []store.Member {
	fits := fitting(c)
	return candidates(all, self, func(m store.Member) bool { return opensVault(m) && fits(m) })
}

// fits reports whether this host has all that a connection needs: labels, a browser, and the approved
// directories.
func (hs *hosts) fits(c store.Connection) bool {
	hs.mu.Lock()
	labels := append(slices.Clone(hs.about.Labels), hs.Options.Labels...)
	hs.mu.Unlock()
	return len(lacking(labels, needs(c))) == 0 && !slices.ContainsFunc(c.Approved.Mounts, unreachable)
}

// startElsewhere has another host start a run that this one cannot serve, has no place for, or leaves to others because
// it is drained. ask returns the command. done is false if no other host takes the run either; this host then reports
// why.
func (rs *runs) startElsewhere(ctx context.Context, q host.StartRun,
	ask func(host.StartRun) (verb string, body any)) (r store.Run, done bool, err error) {
	p := rs.hosts.peers
	if p == nil || q.Overrides != nil {
		return r, false, nil
	}
	all, err := rs.hosts.list(ctx)
	if err != nil {
		return r, false, err
	}
	// A workflow that is no connection needs nothing, as far as this host knows.
	c, err := rs.workflows.connections.permanent(ctx, store.ConnectionID(q.WorkflowID))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return r, false, err
	}
	here := slices.IndexFunc(all, func(m store.Member) bool { return m.Epoch == rs.Epoch })
	if here < 0 || !opensVault(all[here]) || rs.hosts.fits(c) && rs.controller.Full() == nil && !all[here].Draining {
		return r, false, nil
	}
	if q.With != nil { // its writes join the commit there
		id := run.NewRunID(store.Now(rs.Store))
		rec := store.Run{ID: id, TraceID: run.NewTraceID(), Status: "active", Phase: "preparing"}
		q.At = &host.StartAt{RunID: rec.ID, TraceID: rec.TraceID, Writes: q.With(rec)}
	}
	verb, asked := ask(q)
	body, err := json.Marshal(asked)
	if err != nil {
		return r, false, err
	}
	for _, m := range takers(all, rs.hosts.Epoch, c) {
		out, err := p.ask(ctx, &m, command{Verb: verb, Principal: host.Who(ctx), Body: body})
		switch {
		case errors.Is(err, errOrphan):
			return r, true, host.Refuse("unavailable",
				"host %s was to start the run, and is gone; see whether it did before you start it again", m.ID)
		case err != nil:
			return r, true, err // the run may have started there
		case out.Refusal != nil && (out.Refusal.Code == "unavailable" || out.Refusal.Code == "connection_not_ready" ||
			out.Refusal.Code == "rate_limited"):
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

// askToStart returns the command for a start.
func askToStart(q host.StartRun) (verb string, body any) {
	if q.At != nil {
		return verbStartAt, q
	}
	return verbStart, q
}

// startHere starts a run at the request of another host, and never passes it on.
func (rs *runs) startHere(ctx context.Context, q host.StartRun) (store.Run, error) {
	return rs.startWith(ctx, q, branch{})
}

// startWith starts a run, or a branch, at the request of another host.
func (rs *runs) startWith(ctx context.Context, q host.StartRun, b branch) (store.Run, error) {
	if q.At != nil {
		q.With = func(store.Run) []store.Write { return q.At.Writes }
	}
	c, err := rs.workflows.connections.permanent(ctx, store.ConnectionID(q.WorkflowID))
	if err == nil && !rs.hosts.fits(c) {
		return store.Run{}, host.Refuse("unavailable", "this host cannot serve the connection")
	}
	return rs.start(ctx, q, b)
}
