package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// contents holds pending work on long contents.
type contents struct {
	wake chan struct{} // capacity 1: there may be contents to remove

	mu        sync.Mutex // guards the fields below
	closed    []int64    // rows of table reading whose readers are closed
	discarded []int64    // contents that are part of no commit
}

func (cs *contents) init() { cs.wake = make(chan struct{}, 1) }

func (cs *contents) changed() {
	select {
	case cs.wake <- struct{}{}:
	default:
	}
}

func (cs *contents) close(reader int64) {
	cs.mu.Lock()
	cs.closed = append(cs.closed, reader)
	cs.mu.Unlock()
	cs.changed()
}

func (cs *contents) discard(number int64) {
	cs.mu.Lock()
	cs.discarded = append(cs.discarded, number)
	cs.mu.Unlock()
	cs.changed()
}

// beginReading registers a reader of a content for all hosts to see. It returns ErrNotFound if the content was removed.
// If the server has no space for the row, it returns 0: then no host can remove anything either.
func (s *files) beginReading(ctx context.Context, content int64) (reader int64, err error) {
	err = s.told(ctx, s.once(ctx, nil, func(ctx context.Context, t *tx) error {
		return t.QueryRow(ctx, `with there as (select number from content where number = $1 for key share)
			insert into reading (content, epoch) select number, $2 from there returning number`, content, s.opts.Self.Epoch).Scan(&reader)
	}))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, missing(nil, "content %d", content)
	case errors.Is(err, store.ErrNoSpace):
		return 0, nil
	}
	return reader, err
}

// removeAtOnce is how many contents are deleted in one transaction.
const removeAtOnce = 100

// remove deletes the contents that can no longer be committed or looked up.
func (s *files) remove(ctx context.Context) {
	err := s.doom(ctx)
	if err == nil {
		err = s.removeErased(ctx)
	}
	if err != nil {
		s.opts.Logger.Warn("files_not_removed", "error", err) // remove will be called again
	}
}

// doom marks contents that can no longer be committed: those of earlier hosts and discarded ones. It also deletes
// readers that are closed or whose host is gone.
func (s *files) doom(ctx context.Context) error {
	cs := &s.contents
	cs.mu.Lock()
	discarded, closed := slices.Clone(cs.discarded), slices.Clone(cs.closed)
	cs.mu.Unlock()
	err := s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "delete from reading where number = any($1) or epoch not in (select epoch from member)", closed)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, "update content set erased = true where heap is null and not erased and (epoch not in (select epoch from member) or number = any($1))", discarded)
		return err
	})
	if err == nil {
		cs.mu.Lock()
		cs.discarded, cs.closed = cs.discarded[len(discarded):], cs.closed[len(closed):]
		cs.mu.Unlock()
	}
	return err
}

// removeErased deletes erased contents that no host is reading. A host that is about to read one has either locked the
// row or will not find it.
func (s *files) removeErased(ctx context.Context) error {
	for after := int64(0); ; {
		var numbers []int64
		err := s.read(ctx, func(ctx context.Context, c *conn) (err error) {
			rows, err := c.Query(ctx, "select number from content where erased and number > $1 order by number limit $2",
				after, removeAtOnce)
			if err == nil {
				numbers, err = pgx.CollectRows(rows, pgx.RowTo[int64])
			}
			return err
		})
		if err != nil || len(numbers) == 0 {
			return err
		}
		after = numbers[len(numbers)-1]
		err = s.write(ctx, nil, func(ctx context.Context, t *tx) error {
			rows, err := t.Query(ctx, "select number from content where number = any($1) for update skip locked", numbers)
			if err != nil {
				return err
			}
			locked, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err != nil {
				return err
			}
			rows, err = t.Query(ctx,
				"delete from content where number = any($1) and not exists (select from reading r where r.content = content.number) returning number", locked)
			if err != nil {
				return err
			}
			free, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err == nil && len(free) > 0 {
				_, err = t.exec(ctx, "delete from piece where content = any($1)", free)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
}
