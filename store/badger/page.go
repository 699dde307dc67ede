package badger

import (
	"github.com/sluicehost/sluice/store"
)

// Pages and filters of index runs lie under the number of their stream, the id of
// the run, and their own number.

func pageKey(number, run, page uint64) []byte { return numbered(kindPage, number, run, page) }

func filterKey(number, run uint64, part int) []byte {
	return numbered(kindFilter, number, run, uint64(part))
}

// page reads one page of an index run.
func (r reader) page(number uint64, run runInfo, n uint64) ([]byte, error) {
	page, ok, err := r.get(pageKey(number, run.ID, n))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, store.Corrupt("page %d of index run %d is missing", n, run.ID)
	}
	return page, run.checkPage(n, page)
}

// find looks a key up in one index run.
func (r reader) find(number uint64, run runInfo, h1, h2 uint64) (row, bool, error) {
	page, err := r.page(number, run, run.pageOf(h1))
	if err != nil {
		return row{}, false, err
	}
	found, ok := findInPage(page, h1, h2)
	return found, ok, nil
}

// loadRun reads the filter of a run.
func (r reader) loadRun(number uint64, info runInfo) (*indexRun, error) {
	return loadFilter(info, func(part int) ([]byte, error) {
		payload, _, err := r.get(filterKey(number, info.ID, part))
		return payload, err
	})
}

// rows opens a reading of the rows of a run.
func (r reader) rows(number uint64, info runInfo) (*rowCursor, error) {
	return newRowCursor(info, func(n uint64) ([]byte, error) { return r.page(number, info, n) })
}
