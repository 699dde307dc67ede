package search

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/store"
)

// A finding is a record that may be a hit. The lower its rank, the better it fits.
type finding struct {
	connection store.ConnectionID
	stream     store.Stream
	key        string
	rank       float64
	at         int64 // microseconds since 1970, when it was committed
	row        int64 // grows with each change of a stream
}

// find finds the best records of a stream. Counting all records that have a frequent word is
// what makes ranking slow, so only words that are rare in the stream say how well a record
// fits; without any, the newest do.
func (x *index) find(stream store.Stream, t terms, most int) ([]finding, error) {
	id := x.parts[stream].id
	var telling []phrase
	for _, p := range t.want {
		n, err := x.count(id, p)
		if n == 0 || err != nil {
			return nil, err
		}
		if n <= rare {
			telling = append(telling, p)
		}
	}
	switch {
	case len(telling) == 0:
		return x.list(fmt.Sprintf("SELECT k.key, 0, k.at, k.id FROM w%[1]d w JOIN k%[1]d k ON k.id = w.rowid WHERE w%[1]d MATCH ? ORDER BY w.rowid DESC LIMIT ?", id), t.match(), int64(most))
	case len(telling) == len(t.want) && len(t.without) == 0:
		return x.list(fmt.Sprintf("SELECT k.key, f.rank, k.at, k.id FROM (SELECT rowid, rank FROM w%[1]d WHERE w%[1]d MATCH ? ORDER BY rank LIMIT ?) f JOIN k%[1]d k ON k.id = f.rowid", id), t.match(), int64(most))
	}
	fits := map[int64]bool{}
	if err := x.rows(fmt.Sprintf("SELECT rowid FROM w%[1]d WHERE w%[1]d MATCH ?", id), func(st *sqlite3.Stmt) { fits[st.ColumnInt64(0)] = true }, t.match()); err != nil || len(fits) == 0 {
		return nil, err
	}
	return x.ranked(id, telling, fits, most)
}

// ranked are the best of those that fit, by the words that tell.
func (x *index) ranked(id int64, telling []phrase, fits map[int64]bool, most int) (out []finding, err error) {
	var best []int64
	ranks := map[int64]float64{}
	err = x.rows(fmt.Sprintf("SELECT rowid, rank FROM w%[1]d WHERE w%[1]d MATCH ? ORDER BY rank", id), func(st *sqlite3.Stmt) {
		if row := st.ColumnInt64(0); fits[row] && len(best) < most {
			best = append(best, row)
			ranks[row] = st.ColumnFloat(1)
		}
	}, all(telling))
	for _, row := range best {
		if err != nil {
			break
		}
		err = x.rows(fmt.Sprintf("SELECT key, at, id FROM k%d WHERE id = ?", id), func(st *sqlite3.Stmt) {
			out = append(out, finding{key: st.ColumnText(0), rank: ranks[row], at: st.ColumnInt64(1), row: st.ColumnInt64(2)})
		}, row)
	}
	return out, err
}

// count is how many records have a phrase, which is not counted beyond rare.
func (x *index) count(id int64, p phrase) (n int64, err error) {
	err = x.rows(fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM w%[1]d WHERE w%[1]d MATCH ? LIMIT %[2]d)", id, rare+1),
		func(st *sqlite3.Stmt) { n = st.ColumnInt64(0) }, p.String())
	return n, err
}

func (x *index) list(sql, match string, most int64) (out []finding, err error) {
	err = x.rows(sql, func(st *sqlite3.Stmt) {
		out = append(out, finding{key: st.ColumnText(0), rank: st.ColumnFloat(1), at: st.ColumnInt64(2), row: st.ColumnInt64(3)})
	}, match, most)
	return out, err
}
