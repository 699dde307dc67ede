package postgres

import (
	"context"
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// recount compares everything with the counters. It has no time limit.
func recount(ctx context.Context, c *conn) error {
	if _, err := c.Exec(ctx, "set local statement_timeout = 0"); err != nil {
		return err
	}
	rows, err := c.Query(ctx,
		"select heap, s.number, name, live, dead, last, sum::text from stream s join heap h on h.number = heap where not erased order by heap, name")
	if err != nil {
		return err
	}
	var all []counters
	for rows.Next() {
		var n counters
		var sum string
		if err := rows.Scan(&n.heap, &n.number, &n.name, &n.live, &n.dead, &n.last, &sum); err != nil {
			rows.Close()
			return err
		}
		n.sum.SetString(sum, 10)
		all = append(all, n)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for i := range all {
		if err := all[i].verify(ctx, c.Conn); err != nil {
			return err
		}
	}
	if err := verifyFiles(ctx, c.Conn); err != nil {
		return err
	}
	return verifyTimelines(ctx, c.Conn)
}

// counters hold what a stream's records must add up to.
type counters struct {
	heap, number     int64
	name             store.Stream
	live, dead, last int64
	sum              big.Int
}

// verify recounts one stream from its records.
func (n *counters) verify(ctx context.Context, c *pgx.Conn) error {
	rows, err := c.Query(ctx,
		fmt.Sprintf("select version, flags, sum, key, data from records_%d where stream = $1", n.heap), n.number)
	if err != nil {
		return err
	}
	defer rows.Close()
	var live, dead, last int64
	var sum big.Int
	var scratch []byte
	for rows.Next() {
		var version, stored int64
		var flags int16
		var ch store.Change
		if err := rows.Scan(&version, &flags, &stored, &ch.Key, &ch.Data); err != nil {
			return err
		}
		if ch.Compound = flags&flagCompound != 0; flags&flagDeleted != 0 {
			ch.Op = store.Delete
			dead++
		} else {
			live++
		}
		var got int64
		if got, scratch = sumOf(ch, scratch); got != stored {
			return n.damage("version %d is not what was stored", version)
		}
		last = max(last, version)
		sum.Add(&sum, big.NewInt(got))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if live != n.live || dead != n.dead || last > n.last || sum.Cmp(&n.sum) != 0 {
		return n.damage("it has %d records and %d tombstones up to version %d, the counters say %d, %d and %d; sums equal: %v",
			live, dead, last, n.live, n.dead, n.last, sum.Cmp(&n.sum) == 0)
	}
	return nil
}

func (n *counters) damage(format string, args ...any) error {
	d := store.Corrupt("stream %s: "+format, append([]any{n.name}, args...)...)
	d.Stream = n.name
	return d
}

// verifyTimelines checks that no run lacks an event.
func verifyTimelines(ctx context.Context, c *pgx.Conn) error {
	rows, err := c.Query(ctx, "select week from timeline order by week")
	if err != nil {
		return err
	}
	weeks, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	for _, week := range weeks {
		var run store.RunID
		var want, got int64
		err := c.QueryRow(ctx, fmt.Sprintf(`select r.id, coalesce(l.next, r.next), coalesce(e.n, 0) from run r left join lease l on l.run = r.id
			left join (select run, count(*) as n, max(seq) as newest from timeline_%[1]d group by run) e on e.run = r.number
			where r.week = %[1]d and not r.pruned and (coalesce(l.next, r.next) <> coalesce(e.n, 0) or e.newest <> e.n - 1) limit 1`, week)).Scan(&run, &want, &got)
		if absent(err) != nil {
			return err
		}
		if err == nil {
			return store.Corrupt("run %s has %d events where %d belong", run, got, want)
		}
	}
	return nil
}
