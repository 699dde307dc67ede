package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

const (
	batchSize = 50      // objects of one request
	maxObject = 8 << 20 // bytes
	maxFailed = 20      // objects of a collection; with more it is the collection
)

// fetch reads objects in batches, which bounds what is in memory.
func (s *syncing) fetch(ctx context.Context, objects []*object) error {
	s.total = len(objects)
	for len(objects) > 0 {
		n := min(len(objects), batchSize)
		if err := s.batch(ctx, objects[:n]); err != nil {
			return err
		}
		objects = objects[n:]
		err := s.run.Progress("Reading "+s.label(), guest.OnStream(s.holds[0].name), guest.Count(s.done),
			guest.Total(s.total))
		if err != nil {
			return err
		}
	}
	return nil
}

// label is how a collection is called in messages.
func (s *syncing) label() string {
	if name := clean(s.col.props.Name); name != "" {
		return abi.Cut(name, 200)
	}
	return abi.Cut(s.col.path, 200)
}

// batch fetches objects with one request, and halves it when that fails, until
// it is known which object is to blame.
func (s *syncing) batch(ctx context.Context, objects []*object) error {
	if len(objects) == 1 {
		return s.single(ctx, objects[0])
	}
	left, err := s.multiget(ctx, objects)
	switch {
	case err == nil:
		for _, o := range left {
			if err := s.single(ctx, o); err != nil {
				return err
			}
		}
		return nil
	case lasting(err):
		return err
	case len(left) == 0:
		return nil
	}
	half := (len(left) + 1) / 2
	if err := s.batch(ctx, left[:half]); err != nil || half == len(left) {
		return err
	}
	return s.batch(ctx, left[half:])
}

// multiget fetches objects with one request and returns those that the answer
// does not have.
func (s *syncing) multiget(ctx context.Context, objects []*object) (left []*object, err error) {
	open := make(map[string]*object, len(objects))
	for _, o := range objects {
		open[o.path] = o
	}
	q := ask{method: "REPORT", url: s.col.url, depth: "1", body: askObjects(s.kind.multiget, objects)}
	_, err = s.d.client.multistatus(ctx, q, func(base *url.URL, r *response) error {
		for _, href := range r.Hrefs {
			u, ok := resolve(base, href)
			if !ok || open[u.Path] == nil {
				continue
			}
			o := open[u.Path]
			if r.status() == http.StatusNotFound {
				delete(open, u.Path)
				s.done++
				return s.gone(o.key)
			}
			p, _ := r.found()
			data := p.Calendar
			if s.kind.multiget == addressbookMultiget {
				data = p.Card
			}
			if data == "" {
				continue // alone it may be had
			}
			delete(open, u.Path)
			if o.etag == "" {
				o.etag = p.ETag
			}
			return s.take(ctx, o, []byte(data))
		}
		return nil
	})
	for _, o := range objects {
		if open[o.path] != nil {
			left = append(left, o)
		}
	}
	return left, err
}

// single fetches one object. One that cannot be had is a gap, until a later run
// has it.
func (s *syncing) single(ctx context.Context, o *object) error {
	data, etag, err := s.d.client.get(ctx, o.url, maxObject)
	var t *trouble
	switch {
	case err == nil:
		if o.etag == "" {
			o.etag = etag
		}
		return s.take(ctx, o, data)
	case lasting(err):
		return err
	case !errors.As(err, &t):
		return err
	}
	if t.status == http.StatusNotFound || t.status == http.StatusGone {
		s.done++
		return s.gone(o.key)
	}
	if s.failed++; s.failed > maxFailed {
		return t
	}
	return s.gap(o, t)
}

// gap tells that the detail of an object is missing.
func (s *syncing) gap(o *object, t *trouble) error {
	locator, err := json.Marshal(map[string]string{"path": o.path})
	if err != nil {
		return err
	}
	last, err := json.Marshal(map[string]string{"message": abi.Cut(t.Error(), 1000)})
	if err != nil {
		return err
	}
	again := true
	missing := s.holds[:1]
	if o.old.marks != 0 {
		missing = nil
		for _, to := range s.holds {
			if o.old.marks&to.mark != 0 {
				missing = append(missing, to)
			}
		}
	}
	for _, to := range missing {
		err := s.run.Gap(guest.Gap{Stream: to.name, RecordKey: o.key.String(), Reason: t.reason, Retryable: &again,
			DetailLocator: locator, LastError: last})
		if err != nil {
			return err
		}
	}
	return nil
}

// take emits what an object holds. One that cannot be read is told and not asked
// for again until it changes; its last version stays.
func (s *syncing) take(ctx context.Context, o *object, data []byte) error {
	s.done++
	now, err := s.kind.emit(s.collector, ctx, o, data)
	if bad, ok := errors.AsType[*badObject](err); ok {
		t := &trouble{reason: "malformed_object", hint: guest.ManualActionRequired,
			err: errors.New(o.path + ": " + bad.Error())}
		now, err = o.old.marks, s.skip(s.holds, o.path, t)
	}
	if err != nil {
		return err
	}
	for _, to := range s.holds {
		if o.old.marks&to.mark == 0 || now&to.mark != 0 {
			continue
		}
		if !to.Admits(o.key.String()) { // as in gone
			now |= to.mark
			continue
		}
		if err := s.run.Delete(to.name, o.key.String()); err != nil {
			return err
		}
	}
	version := digest{}
	if o.etag != "" {
		version = digestOf(o.etag)
	}
	if o.lacks != nil {
		version = digest{}
	}
	s.next.entries[o.key] = entry{version, now | o.old.marks&^s.scope()}
	if o.lacks != nil {
		s.failed++
		return s.gap(o, o.lacks)
	}
	return s.recovered(o.key)
}
