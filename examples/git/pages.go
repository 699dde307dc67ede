package main

import (
	"errors"
	"io"
	"os"
	"slices"
)

const (
	// pageSize is what one read of a host brings at least.
	pageSize = 64 << 10
	// maxOpen keeps the files of a repository with many packs below what a host
	// lets a guest have open.
	maxOpen = 32
)

// A pagedFile reads a file in whole pages and keeps the recent ones: packs are
// read in small pieces all over the place, and each read of a file is a call to
// the host.
type pagedFile struct {
	name  string
	size  int64
	pager *pager
	file  *os.File // nil: not open at the moment
}

// A pager holds what the paged files share: the pages, and the right to be open.
type pager struct {
	pages *recent[pageKey, []byte]
	open  []*pagedFile // by last opening
}

// A pageKey names a page.
type pageKey struct {
	file  *pagedFile
	index int64
}

func newPager(limit int) *pager {
	return &pager{pages: newRecent[pageKey](limit, func(b []byte) int { return len(b) })}
}

func (p *pager) file(name string) (*pagedFile, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	return &pagedFile{name: name, size: st.Size(), pager: p}, nil
}

// Close closes the files that are open.
func (p *pager) Close() error {
	var err error
	for _, f := range p.open {
		err = errors.Join(err, f.file.Close())
		f.file = nil
	}
	p.open = nil
	return err
}

// slice returns up to n bytes from off on, fewer only at the end of the file.
// They belong to the file's pages and must not be changed.
func (f *pagedFile) slice(off int64, n int) ([]byte, error) {
	if off < 0 || off >= f.size {
		return nil, io.ErrUnexpectedEOF
	}
	n = int(min(int64(n), f.size-off))
	page, err := f.page(off / pageSize)
	if err != nil {
		return nil, err
	}
	rest := page[off%pageSize:]
	if len(rest) >= n {
		return rest[:n], nil
	}
	joined := append(make([]byte, 0, n), rest...)
	for len(joined) < n {
		if page, err = f.page((off + int64(len(joined))) / pageSize); err != nil {
			return nil, err
		}
		joined = append(joined, page[:min(len(page), n-len(joined))]...)
	}
	return joined, nil
}

func (f *pagedFile) page(index int64) ([]byte, error) {
	key := pageKey{f, index}
	if page, ok := f.pager.pages.get(key); ok {
		return page, nil
	}
	file, err := f.opened()
	if err != nil {
		return nil, err
	}
	page := make([]byte, min(pageSize, f.size-index*pageSize))
	if n, err := file.ReadAt(page, index*pageSize); n < len(page) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // cut short since its size was taken
		}
		return nil, err
	}
	f.pager.pages.put(key, page)
	return page, nil
}

// opened opens the file if need be, and closes the one opened longest ago.
func (f *pagedFile) opened() (*os.File, error) {
	if f.file != nil {
		return f.file, nil
	}
	p := f.pager
	if len(p.open) == maxOpen {
		oldest := p.open[0]
		p.open = slices.Delete(p.open, 0, 1)
		err := oldest.file.Close()
		oldest.file = nil
		if err != nil {
			return nil, err
		}
	}
	file, err := os.Open(f.name)
	if err != nil {
		return nil, err
	}
	f.file = file
	p.open = append(p.open, f)
	return file, nil
}
