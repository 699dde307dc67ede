package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-github/v88/github"
)

const (
	pageSize = 100
	// maxPages bounds a list.
	maxPages = 1000
)

var (
	errCircle   = errors.New("the pages go in a circle")
	errTooMany  = fmt.Errorf("the list has more than %d pages", maxPages)
	errNameless = errors.New("an item has no id")
	errUnsorted = errors.New("the list is not in the order asked for")
)

// An item is what lists of go-github have.
type item interface{ GetID() int64 }

// A dated item can be asked for by the time it changed.
type dated interface {
	item
	GetUpdatedAt() github.Timestamp
}

// pages is a walk through a list that must go forward.
type pages struct {
	seen  map[int64]bool
	count int
}

func newPages() *pages { return &pages{seen: map[int64]bool{}} }

// fresh returns the items of a page that none before had. Only a first page may
// have none: since begins anew where the last page ended.
func fresh[T item](p *pages, page int, a answer[T]) ([]T, error) {
	var out []T
	for _, i := range a.items {
		id := i.GetID()
		if id <= 0 {
			return nil, again("answer_unreadable", errNameless)
		}
		if !p.seen[id] {
			p.seen[id] = true
			out = append(out, i)
		}
	}
	if p.count++; a.next == 0 {
		return out, nil
	}
	switch {
	case page > 1 && len(out) == 0 && len(a.items) > 0:
		return nil, again("answer_unreadable", errCircle)
	case p.count >= maxPages:
		return nil, final("answer_unreadable", errTooMany)
	}
	return out, nil
}

// A listed inventory is whole.
type listed struct {
	unchanged bool
	etag      string // of a list with one page: of more, it speaks for the first only
	there     map[int64]bool
}

// list walks through all of a list.
func list[T item](ctx context.Context, c *collection, etag string,
	q func(ctx context.Context, o github.ListOptions) ([]T, *github.Response, error), each func(T) error) (listed, error) {
	p := newPages()
	for page := 1; ; {
		a, err := ask(ctx, c, etag, func(ctx context.Context) ([]T, *github.Response, error) {
			return q(ctx, github.ListOptions{Page: page, PerPage: pageSize})
		})
		if err != nil {
			return listed{}, err
		}
		if a.unchanged {
			return listed{unchanged: true}, nil
		}
		items, err := fresh(p, page, a)
		if err != nil {
			return listed{}, err
		}
		for _, i := range items {
			if err := each(i); err != nil {
				return listed{}, err
			}
		}
		switch {
		case a.next == 0 && page > 1:
			return listed{there: p.seen}, nil
		case a.next == 0:
			return listed{etag: a.etag, there: p.seen}, nil
		case a.next <= page:
			return listed{}, again("answer_unreadable", errCircle)
		}
		etag, page = "", a.next
	}
}

// since walks through what changed since the mark, oldest change first, and
// moves the mark along. Each page is asked for by the time where the last one
// ended: by number, an item would be lost whenever one before it changes
// meanwhile and goes to the end.
func since[T dated](ctx context.Context, c *collection, m *mark, floor time.Time,
	q func(ctx context.Context, from time.Time, o github.ListOptions) ([]T, *github.Response, error),
	each func(T) error) error {
	known, from, etag := m.At, m.At, m.ETag
	if from.Before(floor) {
		from = floor
	}
	if etag != "" {
		from = m.Asked
	}
	p := newPages()
	for page := 1; ; {
		a, err := ask(ctx, c, etag, func(ctx context.Context) ([]T, *github.Response, error) {
			return q(ctx, from, github.ListOptions{Page: page, PerPage: pageSize})
		})
		if err != nil || a.unchanged {
			return err
		}
		m.ETag, m.Asked, etag = "", time.Time{}, ""
		last, err := ascending(a.items)
		if err != nil {
			return err
		}
		items, err := fresh(p, page, a)
		if err != nil {
			return err
		}
		for _, i := range items {
			if i.GetUpdatedAt().Before(known) {
				continue
			}
			if err := each(i); err != nil {
				return err
			}
		}
		m.move(last)
		switch {
		case a.next == 0 && page == 1:
			m.ETag, m.Asked = a.etag, from
			return nil
		case a.next == 0:
			return nil
		case last.After(from):
			from, page = last, 1
		case a.next <= page:
			return again("answer_unreadable", errCircle)
		default:
			page = a.next
		}
	}
}

// ascending returns the time of the last of items, which must be sorted.
func ascending[T dated](items []T) (last time.Time, err error) {
	for _, i := range items {
		at := i.GetUpdatedAt().UTC()
		if at.IsZero() || at.Before(last) {
			return last, again("answer_unreadable", errUnsorted)
		}
		last = at
	}
	return last, nil
}

// move moves a mark forward, not beyond the present: a date of the future would
// hide all that comes before it.
func (m *mark) move(to time.Time) {
	if now := time.Now().UTC().Truncate(time.Second); to.After(now) {
		to = now
	}
	if to.After(m.At) {
		m.At = to
	}
}

// recent walks through a list, latest change first, down to the mark, and moves
// the mark at the end. What changes meanwhile goes to the front, to be found by
// the next run.
func recent[T dated](ctx context.Context, c *collection, m *mark, floor time.Time,
	q func(ctx context.Context, o github.ListOptions) ([]T, *github.Response, error), each func(T) error) error {
	stop := m.At
	if stop.Before(floor) {
		stop = floor
	}
	p, first, latest := newPages(), "", time.Time{}
	above := time.Time{} // of the item before
	for page, etag := 1, m.ETag; ; etag = "" {
		a, err := ask(ctx, c, etag, func(ctx context.Context) ([]T, *github.Response, error) {
			return q(ctx, github.ListOptions{Page: page, PerPage: pageSize})
		})
		if err != nil || a.unchanged {
			return err
		}
		m.ETag = "" // it speaks for what was emitted before
		items, err := fresh(p, page, a)
		if err != nil {
			return err
		}
		done := a.next == 0
		for _, i := range items {
			at := i.GetUpdatedAt().UTC()
			if at.IsZero() || !above.IsZero() && at.After(above) {
				return again("answer_unreadable", errUnsorted)
			}
			above = at
			if at.After(latest) {
				latest = at
			}
			if done = done || at.Before(stop); at.Before(stop) {
				break
			}
			if err := each(i); err != nil {
				return err
			}
		}
		if page == 1 {
			first = a.etag
		}
		if done {
			m.ETag = first
			m.move(latest)
			return nil
		}
		if a.next <= page {
			return again("answer_unreadable", errCircle)
		}
		page = a.next
	}
}
