package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// contents are what is to be done about long contents.
type contents struct {
	wake chan struct{} // capacity 1: there may be some to remove

	mu        sync.Mutex // guards what follows
	closed    []int64    // rows of reading whose readers are done
	discarded []int64    // contents that no commit has
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

// beginReading notes a reader of a content, for all hosts; ErrNotFound when it was removed. Where
// the server has no space for that, nobody can remove anything either.
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

// removeAtOnce is how many contents go in one transaction.
const removeAtOnce = 100

// remove deletes the contents that nobody can commit or look up any more.
func (s *files) remove(ctx context.Context) {
	err := s.doom(ctx)
	if err == nil {
		err = s.removeErased(ctx)
	}
	if err != nil {
		s.opts.Logger.Warn("files_not_removed", "error", err) // it is tried again
	}
}

// doom marks contents that nobody can commit any more: those of hosts before this one, and
// those that were discarded. It forgets readers that are done, or whose host is gone.
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

// removeErased deletes the contents that are erased, but those that some host reads: whoever is
// about to has locked the row, or finds none.
func (s *files) removeErased(ctx context.Context) error {
	for after := int64(0); ; {
		var numbers []int64
		err := s.read(ctx, func(ctx context.Context, c *conn) (err error) {
			rows, err := c.Query(ctx, "select number from content where erased and number > $1 order by number limit $2", after, removeAtOnce)
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
			rows, err = t.Query(ctx, "delete from content where number = any($1) and not exists (select from reading r where r.content = content.number) returning number", locked)
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
