package main

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// An object is a resource of a collection that has to be fetched.
type object struct {
	url  *url.URL
	path string // decoded
	key  key
	etag string // of the list: what the next one is compared with
	old  entry
	in   *collection

	lacks *trouble // why an attachment is missing that may be had another time
}

// A syncing reads one collection.
type syncing struct {
	*collector
	col    *collection
	old    *ledger
	next   *ledger
	failed int // objects that could not be had
	done   int
	total  int
}

// A delta is what differs from a ledger.
type delta struct {
	objects []*object
	gone    []key
	token   string
	full    bool // everything was listed, seen is what there is
	seen    map[key]bool
	cut     bool // the answer says that it is not all
}

const (
	maxObjects = 100_000 // in a collection
	maxPages   = 1000
)

// sync reads what is new in a collection. After a *trouble the ledger has what
// was read before it, and the next run begins where this one did.
func (c *collector) sync(ctx context.Context, col *collection) error {
	name := keyOf(col.path).String()
	s := &syncing{collector: c, col: col, old: c.ledgers[name]}
	if s.old == nil {
		s.old = &ledger{entries: map[key]entry{}}
	}
	if s.old.Token != "" && s.old.Token == col.props.Token || s.old.Tag != "" && s.old.Tag == col.props.Tag {
		return nil // nothing is new
	}
	d, err := s.changes(ctx)
	if err != nil {
		return err
	}
	s.next = &ledger{Token: s.old.Token, Partial: s.old.Partial && !d.full, entries: maps.Clone(s.old.entries)}
	c.ledgers[name] = s.next
	if d.full && !d.cut {
		for k := range s.old.entries {
			if !d.seen[k] {
				d.gone = append(d.gone, k)
			}
		}
	}
	for _, k := range d.gone {
		if err := s.gone(k); err != nil {
			return err
		}
	}
	if err := s.fetch(ctx, d.objects); err != nil {
		return err
	}
	if s.failed == 0 && !d.cut { // otherwise the same is asked again
		s.next.Token, s.next.Tag = bounded(d.token, maxToken), bounded(col.props.Tag, maxTag)
	}
	return nil
}

// changes asks by sync token, then for everything with a new token, then for a
// list: a server that does not know the one may know the next.
func (s *syncing) changes(ctx context.Context) (*delta, error) {
	if s.col.syncs() {
		if s.old.Token != "" {
			d, err := s.report(ctx, s.old.Token)
			if err == nil || lasting(err) {
				return d, err
			}
		}
		d, err := s.report(ctx, "")
		if err == nil || lasting(err) {
			return d, err
		}
	}
	return s.list(ctx)
}

// report asks for the changes since a token, page by page.
func (s *syncing) report(ctx context.Context, token string) (*delta, error) {
	d := &delta{full: token == "", seen: map[key]bool{}}
	for range maxPages {
		more := false
		q := ask{method: "REPORT", url: s.col.url, depth: "0", body: askChanges(token)}
		next, err := s.d.client.multistatus(ctx, q, func(base *url.URL, r *response) error {
			self, err := s.note(d, base, r)
			more = more || self && r.status() == http.StatusInsufficientStorage
			return err
		})
		if err != nil {
			return nil, err
		}
		if d.token = next; !more {
			return d, nil
		}
		if next == "" || next == token {
			break
		}
		token = next
	}
	return nil, troublef(reasonMalformed, "REPORT %s: the list of changes does not end", s.col.url.Redacted())
}

// list asks for all objects and their ETags.
func (s *syncing) list(ctx context.Context) (*delta, error) {
	d := &delta{full: true, seen: map[key]bool{}}
	answered := false
	q := ask{method: "PROPFIND", url: s.col.url, depth: "1", body: askList}
	_, err := s.d.client.multistatus(ctx, q, func(base *url.URL, r *response) error {
		self, err := s.note(d, base, r)
		answered = answered || self || len(d.seen) > 0
		d.cut = d.cut || self && r.status() == http.StatusInsufficientStorage
		return err
	})
	if err != nil {
		return nil, err
	}
	if !answered { // the collection itself would be there
		return nil, troublef(reasonMalformed, "PROPFIND %s: the answer says nothing of it", s.col.url.Redacted())
	}
	return d, nil
}

// note takes what an answer says of one object into a delta. self says that it
// was the collection.
func (s *syncing) note(d *delta, base *url.URL, r *response) (self bool, err error) {
	for _, href := range r.Hrefs {
		u, ok := resolve(base, href)
		if !ok || u.Host != base.Host || u.Scheme != base.Scheme {
			continue
		}
		if folder(u) == s.col.path {
			self = true
			continue
		}
		p, _ := r.found()
		if !strings.HasPrefix(u.Path, s.col.path) || strings.HasSuffix(u.Path, "/") || p.Type.Collection != nil {
			continue
		}
		k := keyOf(u.Path)
		if status := r.status(); status == http.StatusNotFound || status == http.StatusGone {
			delete(d.seen, k)
			d.gone = append(d.gone, k)
			continue
		}
		if d.seen[k] {
			continue
		}
		d.seen[k] = true
		old := s.old.entries[k]
		if p.ETag != "" && old.version == digestOf(p.ETag) || r.status() >= http.StatusBadRequest {
			continue
		}
		if d.objects = append(d.objects,
			&object{url: u, path: u.Path, key: k, etag: p.ETag, old: old, in: s.col}); len(d.objects) > maxObjects {
			return self, troublef(reasonTooLarge, "%s: there are more than %d objects in it", s.col.path, maxObjects)
		}
	}
	return self, nil
}

// gone deletes the records of an object. Where a ledger has lost entries, every
// stream may have one. A scope of some resources does not let the connector
// delete others: those stay known for a wider one.
func (s *syncing) gone(k key) error {
	e, known := s.next.entries[k]
	for _, to := range s.holds {
		if (e.marks&to.mark != 0 || !known && s.next.Partial) && to.Admits(k.String()) {
			if err := s.run.Delete(to.name, k.String()); err != nil {
				return err
			}
			e.marks &^= to.mark
		}
	}
	if e.marks&s.scope() != 0 {
		s.next.entries[k] = entry{marks: e.marks}
	} else {
		delete(s.next.entries, k)
	}
	return s.recovered(k)
}

// scope are the marks of the streams that are in it.
func (c *collector) scope() (m marks) {
	for _, s := range c.holds {
		m |= s.mark
	}
	return m
}

// recovered closes the gaps of an object that is no longer missing.
func (s *syncing) recovered(k key) error {
	for _, g := range s.gaps[k.String()] {
		if err := s.run.Recovered(g); err != nil {
			return err
		}
	}
	delete(s.gaps, k.String())
	return nil
}
