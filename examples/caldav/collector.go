package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A collector brings the streams of one kind up to date.
type collector struct {
	run     *guest.Run
	d       *discovery
	kind    *kind
	lists   *stream   // nil: not in scope
	holds   []*stream // those in scope
	ledgers map[string]*ledger
	gaps    map[string][]abi.ServedGap // by record key
	reports map[string]int             // by reason
	untold  *trouble                   // why there is nothing of the kind
}

// newCollector returns nil when no stream of the kind is in scope.
func newCollector(run *guest.Run, d *discovery, k *kind) (*collector, error) {
	c := &collector{run: run, d: d, kind: k, gaps: map[string][]abi.ServedGap{}, reports: map[string]int{}}
	var err error
	if c.lists, err = openStream(run, k.lists, 0); err != nil {
		return nil, err
	}
	for i, name := range k.holds {
		s, err := openStream(run, name, 1<<i)
		if err != nil {
			return nil, err
		}
		if s != nil {
			c.holds = append(c.holds, s)
		}
	}
	if c.lists == nil && c.holds == nil {
		return nil, nil
	}
	c.ledgers = join(c.holds)
	for _, g := range run.Start().DetailGaps {
		if slices.ContainsFunc(c.holds, func(s *stream) bool { return s.name == g.Stream }) {
			c.gaps[g.RecordKey] = append(c.gaps[g.RecordKey], g)
		}
	}
	return c, nil
}

// join makes one ledger of those that the streams of a kind have of a
// collection, since it is read once for all. Where they differ, or the scope
// does, what is there is known and its versions are not.
func join(streams []*stream) map[string]*ledger {
	out := map[string]*ledger{}
	for _, s := range streams {
		for k := range s.last.Ledgers {
			if out[k] == nil {
				out[k] = joined(streams, k)
			}
		}
	}
	return out
}

func joined(streams []*stream, k string) *ledger {
	out := &ledger{entries: map[key]entry{}}
	same := true
	for i, s := range streams {
		l := s.last.Ledgers[k]
		if l == nil {
			same = false
			continue
		}
		same = same && s.current()
		if i == 0 {
			out.Token, out.Tag, out.Known = l.Token, l.Tag, l.Known
		}
		same = same && out.Token == l.Token && out.Tag == l.Tag && out.Known == l.Known
		out.Partial = out.Partial || l.Partial
		for k, e := range l.entries {
			e.marks |= out.entries[k].marks
			out.entries[k] = e
		}
	}
	if !same {
		out.stale()
	}
	return out
}

// streams are all of the kind that are in scope.
func (c *collector) streams() []*stream {
	if c.lists == nil {
		return c.holds
	}
	return append([]*stream{c.lists}, c.holds...)
}

// collect reads everything of the kind. A *trouble says that nothing could be
// had.
func (c *collector) collect(ctx context.Context) error {
	list, whole, err := c.d.collections(ctx, c.kind)
	if t, ok := errors.AsType[*trouble](err); ok {
		c.untold = t
		return t
	}
	if err != nil {
		return err
	}
	if err := c.putCollections(list, whole); err != nil {
		return err
	}
	var last *trouble
	tried, failed := 0, 0
	for _, col := range list {
		if !c.wants(col) {
			continue
		}
		tried++
		err := c.sync(ctx, col)
		var t *trouble
		if errors.As(err, &t) {
			failed++
			last = t
			err = c.skip(c.holds, col.path, t)
		}
		if err != nil {
			return err
		}
	}
	if whole {
		if err := c.forget(list); err != nil {
			return err
		}
	}
	if err := c.checkpoint(); err != nil {
		return err
	}
	if failed > 0 && failed == tried {
		return last
	}
	return nil
}

// tell reports that there is nothing of the kind, if that has not been told.
func (c *collector) tell() error {
	if c.untold == nil {
		return nil
	}
	return c.skip(c.streams(), "", c.untold)
}

// wants reports whether any stream in scope may have records of a collection.
func (c *collector) wants(col *collection) bool {
	for _, s := range c.holds {
		if s.mayHave(col.path) && (s.name != "events" || col.mayHold("VEVENT")) &&
			(s.name != "todos" || col.mayHold("VTODO")) {
			return true
		}
	}
	return false
}

// mayHold reports whether a calendar accepts objects of a type; most say which they
// accept.
func (c *collection) mayHold(component string) bool {
	if len(c.props.Holds) == 0 {
		return true
	}
	for _, h := range c.props.Holds {
		if h.Name == component {
			return true
		}
	}
	return false
}

// putCollections emits the collections that are new or changed, and deletes what
// is gone.
func (c *collector) putCollections(list []*collection, whole bool) error {
	s := c.lists
	if s == nil {
		return nil
	}
	for _, col := range list {
		k := keyOf(col.path)
		old := s.last.Ledgers[k.String()]
		if !s.Admits(k.String(), col.path) {
			if old != nil {
				s.now[k.String()] = old
			}
			continue
		}
		r := collectionRecord(c.kind, col)
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		tag := keyOf(string(b)).String()
		s.now[k.String()] = &ledger{Tag: tag}
		if old != nil && old.Tag == tag && s.current() {
			continue
		}
		if err := s.put(k, r); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.last.Ledgers)) {
		if s.now[name] != nil {
			continue
		}
		if !whole || !s.Admits(name) {
			s.now[name] = s.last.Ledgers[name]
			continue
		}
		if err := s.run.Delete(s.name, name); err != nil {
			return err
		}
	}
	return nil
}

func collectionRecord(k *kind, c *collection) record {
	r := record{"id": keyOf(c.path).String(), "path": bounded(clean(c.path), maxPath), "name": text(clean(c.props.Name)),
		"read_only": c.readOnly}
	if k.multiget == addressbookMultiget {
		r["description"] = text(clean(c.props.BookAbout))
		return r
	}
	holds := []string{}
	for _, h := range c.props.Holds {
		if len(holds) < maxList {
			holds = append(holds, clean(h.Name))
		}
	}
	r["description"], r["color"], r["components"] = text(clean(c.props.About)), text(clean(c.props.Color)), holds
	return r
}

// forget deletes what was in collections that are gone.
func (c *collector) forget(list []*collection) error {
	there := map[string]bool{}
	for _, col := range list {
		there[keyOf(col.path).String()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.ledgers)) {
		if there[name] {
			continue
		}
		s := &syncing{collector: c, next: c.ledgers[name]}
		for k := range c.ledgers[name].entries {
			if err := s.gone(k); err != nil {
				return err
			}
		}
		if c.ledgers[name].stale(); len(c.ledgers[name].entries) == 0 {
			delete(c.ledgers, name)
		}
	}
	return nil
}

// checkpoint leaves the cursors for the next run.
func (c *collector) checkpoint() error {
	if err := c.skipRest(); err != nil {
		return err
	}
	if s := c.lists; s != nil {
		if err := c.run.Checkpoint(s.name, cursor{s.shape(), s.now}); err != nil {
			return err
		}
	}
	for _, s := range c.holds {
		at := cursor{s.shape(), c.ledgers}
		if !at.pack() {
			err := c.run.Skip(guest.Skip{Stream: s.name, Reason: "too_many_records",
				Message: fmt.Sprintf(
					"There are too many objects for one cursor: where a server forgets its sync token, deletions of some of the %ss' will not be noticed.", c.kind.name)})
			if err != nil {
				return err
			}
		}
		if err := c.run.Checkpoint(s.name, at); err != nil {
			return err
		}
	}
	return nil
}
