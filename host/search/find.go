package search

import (
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/store"
)

// A finding is a possible hit. A lower rank is a better match.
type finding struct {
	connection store.ConnectionID
	stream     store.Stream
	key        string
	rank       float64
	at         int64  // time of the commit, in microseconds since 1970
	row        int64  // grows with each change in the stream
	version    uint64 // of the record when it was indexed, by which the store finds it fastest; 0 if a Store does not tell
}

// find returns the best records of a stream. Ranking by a frequent word is slow because it counts all records that have
// it. So only words that are rare in the stream determine the rank; without any, the newest records are the best.
func (x *index) find(stream store.Stream, t terms, most int) (found []finding, err error) {
	id := x.parts[stream].id
	var telling []phrase
	for _, p := range t.want {
		frequent := false
		if err := x.rows(fmt.Sprintf("SELECT 1 FROM w%[1]d WHERE w%[1]d MATCH ? LIMIT 1 OFFSET ?", id),
			func(*sqlite3.Stmt) { frequent = true }, p.String(), int64(rare)); err != nil {
			return nil, err
		}
		if !frequent {
			telling = append(telling, p)
		}
	}
	switch {
	case len(telling) == 0:
		found, err = x.match(id, t.match(), newest, most)
	case len(telling) == len(t.want) && len(t.without) == 0:
		found, err = x.match(id, t.match(), best, most)
	default:
		found, err = x.ranked(id, t, telling)
	}
	if err != nil {
		return nil, err
	}
	return x.keyed(id, found[:min(most, len(found))])
}

// ranked returns the matching records, ranked by the rare phrases in telling.
func (x *index) ranked(id int64, t terms, telling []phrase) (out []finding, err error) {
	fits := map[int64]bool{}
	if err := x.rows(fmt.Sprintf("SELECT rowid FROM w%[1]d WHERE w%[1]d MATCH ?", id),
		func(st *sqlite3.Stmt) { fits[st.ColumnInt64(0)] = true }, t.match()); err != nil || len(fits) == 0 {
		return nil, err
	}
	all, err := x.match(id, all(telling), best, rare)
	return slices.DeleteFunc(all, func(f finding) bool { return !fits[f.row] }), err
}

// Queries for matching records in two orders, with their rank.
const (
	newest = "SELECT rowid, 0 FROM w%[1]d WHERE w%[1]d MATCH ? ORDER BY rowid DESC LIMIT ?"
	best   = "SELECT rowid, rank FROM w%[1]d WHERE w%[1]d MATCH ? ORDER BY rank LIMIT ?"
)

// match returns the first matching records in an order, without their keys.
func (x *index) match(id int64, words, order string, most int) (out []finding, err error) {
	err = x.rows(fmt.Sprintf(order, id), func(st *sqlite3.Stmt) {
		out = append(out, finding{row: st.ColumnInt64(0), rank: st.ColumnFloat(1)})
	}, words, int64(most))
	return out, err
}

// keyed adds the keys and times of records.
func (x *index) keyed(id int64, found []finding) ([]finding, error) {
	for i := range found {
		f := &found[i]
		if err := x.rows(fmt.Sprintf("SELECT key, at, version FROM k%d WHERE id = ?", id), func(st *sqlite3.Stmt) {
			f.key, f.at, f.version = st.ColumnText(0), st.ColumnInt64(1), uint64(st.ColumnInt64(2)) // #nosec G115 -- it was one
		}, f.row); err != nil {
			return nil, err
		}
	}
	return found, nil
}
