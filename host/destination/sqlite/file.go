package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host/destination"
)

var _ destination.FileKeeper = (*Sink)(nil)

// maxContent is the size in bytes up to which contents are stored in the table. Longer ones have a row with the size
// only.
const maxContent = 900 << 20

// FilePath implements destination.FileKeeper.
func (*Sink) FilePath(destination.File) string { return "" }

// KeepFiles implements destination.FileKeeper.
func (s *Sink) KeepFiles(ctx context.Context, files []destination.File) error {
	return s.own(ctx, func() error {
		if err := s.filesTable(); err != nil {
			return err
		}
		for _, f := range files {
			if err := s.keep(ctx, f); err != nil && !errors.Is(err, destination.ErrGone) {
				return fmt.Errorf("keep file %s: %w", f.Digest, err)
			}
		}
		return nil
	})
}

func (s *Sink) filesTable() error {
	var ours bool
	if _, err := s.meta("files table", &ours); err != nil || ours {
		return err
	}
	if kind, err := s.tableKind(destination.FilesTable); err != nil || kind != "" {
		return errors.Join(err, foreign(destination.FilesTable))
	}
	if err := s.db.Exec("CREATE TABLE " + destination.FilesTable +
		" (digest TEXT PRIMARY KEY, media_type TEXT, size INTEGER NOT NULL, bytes BLOB)"); err != nil {
		return err
	}
	return s.setMeta("files table", true)
}

// keep stores a content without loading it into memory as a whole.
func (s *Sink) keep(ctx context.Context, f destination.File) error {
	there := false
	err := s.query("SELECT 1 FROM "+destination.FilesTable+" WHERE digest = ?", func(*sqlite3.Stmt) error {
		there = true
		return nil
	}, string(f.Digest))
	if err != nil || there {
		return err
	}
	content, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer content.Close()
	st, _, err := s.db.Prepare("INSERT INTO " + destination.FilesTable + " VALUES (?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer st.Close()
	n := content.Size()
	whole := n <= maxContent
	err = errors.Join(st.BindText(1, string(f.Digest)), st.BindText(2, f.MediaType), st.BindInt64(3, n))
	if whole {
		err = errors.Join(err, st.BindZeroBlob(4, n))
	}
	if err != nil {
		return err
	}
	st.Step()
	if err := st.Reset(); err != nil || !whole {
		return err
	}
	blob, err := s.db.OpenBlob("main", destination.FilesTable, "bytes", s.db.LastInsertRowID(), true)
	if err != nil {
		return err
	}
	copied, err := io.Copy(blob, content)
	if err == nil && copied != n {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, blob.Close())
}
