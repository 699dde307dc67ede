package postgres

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluicehost/sluice/host/destination"
)

var _ destination.FileKeeper = (*Sink)(nil)

// filesRow exists in the meta table if the table of files is Sluice's.
const filesRow = "files table"

// maxContent is the size in bytes up to which contents are stored in the table, because the server needs several times
// as much memory. Longer ones have a row with the size only.
const maxContent = 256 << 20

// FilePath implements destination.FileKeeper.
func (*Sink) FilePath(destination.File) string { return "" }

// KeepFiles implements destination.FileKeeper.
func (s *Sink) KeepFiles(ctx context.Context, files []destination.File) error {
	return s.own(ctx, nil, func(ctx context.Context, _ int64) (end string, err error) {
		if end, err = s.filesTable(ctx); err != nil {
			return "", err
		}
		missing, err := s.missing(ctx, files)
		if err != nil || len(missing) == 0 {
			return end, err
		}
		from, to := io.Pipe()
		go func() { _ = to.CloseWithError(writeFiles(ctx, to, missing)) }() // ends when from is closed
		_, err = s.conn.CopyFrom(ctx, from,
			"COPY "+s.in(destination.FilesTable)+" (digest, media_type, size, bytes) FROM STDIN (FORMAT binary)")
		return end, errors.Join(err, from.Close())
	})
}

// filesTable creates the table if necessary and returns the statement that marks it as Sluice's.
func (s *Sink) filesTable(ctx context.Context) (mark string, err error) {
	rows, err := s.query(ctx, "SELECT 1 FROM "+s.meta()+" WHERE name = "+literal(filesRow))
	if err != nil || len(rows) > 0 {
		return "SELECT 1", err
	}
	if err := s.vacant(ctx, destination.FilesTable); err != nil {
		return "", err
	}
	err = s.exec(ctx, "CREATE TABLE "+s.in(destination.FilesTable)+
		" (digest text PRIMARY KEY, media_type text, size bigint NOT NULL, bytes bytea);"+
		" ALTER TABLE "+s.in(destination.FilesTable)+" ALTER bytes SET STORAGE EXTERNAL")
	if err != nil {
		return "", err
	}
	return s.setMeta(filesRow, true, 0)
}

// missing returns those files that the table lacks.
func (s *Sink) missing(ctx context.Context, files []destination.File) (out []destination.File, err error) {
	var digests []string
	for _, f := range files {
		digests = append(digests, literal(string(f.Digest)))
	}
	rows, err := s.query(ctx, "SELECT digest FROM "+s.in(destination.FilesTable)+" WHERE digest IN ("+
		strings.Join(digests, ", ")+")")
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, r := range rows {
		there[string(r[0])] = true
	}
	for _, f := range files {
		if !there[string(f.Digest)] {
			out = append(out, f)
		}
	}
	return out, nil
}

// writeFiles writes contents in the binary format of COPY, a piece at a time.
func writeFiles(ctx context.Context, to io.Writer, files []destination.File) error {
	w := bufio.NewWriterSize(to, 64<<10)
	_, _ = w.WriteString("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00") // Flush returns the error
	for _, f := range files {
		if err := writeFile(ctx, w, f); err != nil && !errors.Is(err, destination.ErrGone) {
			return fmt.Errorf("keep file %s: %w", f.Digest, err)
		}
	}
	_, _ = w.Write([]byte{0xff, 0xff})
	return w.Flush()
}

func writeFile(ctx context.Context, w *bufio.Writer, f destination.File) error {
	content, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer content.Close()
	n := content.Size()
	b := binary.BigEndian.AppendUint16(nil, 4)
	for _, text := range []string{string(f.Digest), withoutNUL(f.MediaType)} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...) // #nosec G115 -- less than a record
	}
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(n)) // #nosec G115 -- a size
	if n > maxContent {
		_, err := w.Write(binary.BigEndian.AppendUint32(b, 0xffffffff)) // NULL
		return err
	}
	if _, err := w.Write(binary.BigEndian.AppendUint32(b, uint32(n))); err != nil { // #nosec G115 -- at most maxContent
		return err
	}
	copied, err := io.Copy(w, content)
	if err == nil && copied != n {
		err = io.ErrUnexpectedEOF
	}
	return err
}
