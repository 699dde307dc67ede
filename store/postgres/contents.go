package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// contents are the long contents that are read, and those that are to go.
type contents struct {
	wake chan struct{} // capacity 1: there may be some to remove

	mu        sync.Mutex // guards what follows
	reading   map[*content]int64
	discarded []int64 // that no commit has
}

func (cs *contents) init() {
	cs.wake, cs.reading = make(chan struct{}, 1), map[*content]int64{}
}

func (cs *contents) changed() {
	select {
	case cs.wake <- struct{}{}:
	default:
	}
}

// opening notes a reader before it knows what it reads.
func (cs *contents) opening(c *content) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.reading[c] = 0
}

func (cs *contents) opened(c *content, number int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.number, cs.reading[c] = number, number
}

func (cs *contents) closed(c *content) {
	cs.mu.Lock()
	delete(cs.reading, c)
	cs.mu.Unlock()
	cs.changed()
}

func (cs *contents) discard(number int64) {
	cs.mu.Lock()
	cs.discarded = append(cs.discarded, number)
	cs.mu.Unlock()
	cs.changed()
}

// unread are those of numbers that nobody reads: none while somebody may be about to.
func (cs *contents) unread(numbers []int64) (free []int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	busy := map[int64]bool{}
	for _, n := range cs.reading {
		busy[n] = true
	}
	for _, n := range numbers {
		if !busy[0] && !busy[n] {
			free = append(free, n)
		}
	}
	return free
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
// those that were discarded.
func (s *files) doom(ctx context.Context) error {
	cs := &s.contents
	cs.mu.Lock()
	discarded := slices.Clone(cs.discarded)
	cs.mu.Unlock()
	err := s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "update content set erased = true where heap is null and not erased and (epoch not in (select epoch from member) or number = any($1))", discarded)
		return err
	})
	if err == nil {
		cs.mu.Lock()
		cs.discarded = cs.discarded[len(discarded):]
		cs.mu.Unlock()
	}
	return err
}

// removeErased deletes the contents that are erased, but those that are read. What is looked up
// from now on is none of these.
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
		free := s.contents.unread(numbers)
		if len(free) == 0 {
			continue
		}
		err = s.write(ctx, nil, func(ctx context.Context, t *tx) error {
			b := &pgx.Batch{}
			b.Queue("delete from piece where content = any($1)", free)
			b.Queue("delete from content where number = any($1)", free)
			return t.SendBatch(ctx, b).Close()
		})
		if err != nil {
			return err
		}
	}
}
