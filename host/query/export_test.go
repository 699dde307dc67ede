package query

import (
	"context"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"
)

// Within bounds the time of a query.
func (m *Mirror) Within(d time.Duration) { m.within = d }

// Scratch bounds what a query sorts, in bytes.
func (m *Mirror) Scratch(n int64) { m.scratch = n }

// Matches reports whether LIKE (0), LIKE with ! as escape (1) or GLOB (2) takes a text.
func Matches(kind int, pattern, text string) bool {
	w := []wildcard{likes, likes, globs}[kind]
	if kind == 1 {
		w.escape = '!'
	}
	ok, err := w.match(context.Background(), []byte(pattern), []byte(text))
	return err == nil && ok
}

// ScratchFile opens a scratch file of a statement.
func ScratchFile(ctx context.Context) (vfs.File, error) {
	s := newScratch(maxScratch, func() context.Context { return ctx })
	defer s.end()
	f, _, err := s.Open("", vfs.OPEN_TEMP_DB)
	return f, err
}
