package badger

import (
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Pages and filters of index runs lie under the number of their stream, the id of
// the run, and their own number.

func pageKey(number, run, page uint64) []byte { return numbered(kindPage, number, run, page) }

func filterKey(number, run uint64, part int) []byte {
	return numbered(kindFilter, number, run, uint64(part))
}

// page reads one page of an index run.
func (r reader) page(number uint64, run bulk.RunInfo, n uint64) ([]byte, error) {
	page, ok, err := r.get(pageKey(number, run.ID, n))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, store.Corrupt("page %d of index run %d is missing", n, run.ID)
	}
	return page, run.CheckPage(n, page)
}

// find looks a key up in one index run.
func (r reader) find(number uint64, run bulk.RunInfo, h1, h2 uint64) (bulk.Row, bool, error) {
	page, err := r.page(number, run, run.PageOf(h1))
	if err != nil {
		return bulk.Row{}, false, err
	}
	found, ok := bulk.Find(page, h1, h2)
	return found, ok, nil
}

// loadRun reads the filter of a run.
func (r reader) loadRun(number uint64, info bulk.RunInfo) (*bulk.IndexRun, error) {
	return bulk.LoadRun(info, func(part int) ([]byte, error) {
		payload, _, err := r.get(filterKey(number, info.ID, part))
		return payload, err
	})
}

// rows opens a reading of the rows of a run.
func (r reader) rows(number uint64, info bulk.RunInfo) (*bulk.RowCursor, error) {
	return bulk.NewRowCursor(info, func(n uint64) ([]byte, error) { return r.page(number, info, n) })
}
