package cli

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/export"
)

// A recordFile is a file of records that is written under another name and
// gets its own once it is complete, so that a file that exists is whole.
type recordFile struct {
	path     string
	format   string   // .jsonl, .csv, .parquet or .sqlite
	file     *os.File // nil: the standard output
	buffer   *bufio.Writer
	sum      hash.Hash
	records  int64
	exporter func() *client.Exporter
	files    *exportedFiles // that go beside it; nil for none
}

// recordFormat returns an error if the format of a path cannot be written.
func recordFormat(flag, path string) error {
	switch ext := filepath.Ext(path); ext {
	case ".jsonl", ".csv", ".parquet", ".sqlite":
		return nil
	default:
		return usagef("%s %s: the name must end in .jsonl, .csv, .parquet or .sqlite", flag, path)
	}
}

// createRecords opens the file. The caller must call commit or abandon.
func createRecords(flag, path string) (*recordFile, error) {
	if err := recordFormat(flag, path); err != nil {
		return nil, err
	}
	return createFile(flag, path)
}

// createFile is createRecords for any content.
func createFile(flag, path string) (*recordFile, error) {
	path = app.Home(path)
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return nil, usagef("%s %s: not a regular file", flag, path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	var not *fs.PathError
	if errors.As(err, &not) {
		return nil, usagef("%s %s: %w", flag, path, not.Err) // the error's path is the temporary file's
	}
	if err != nil {
		return nil, usagef("%s %s: %w", flag, path, err)
	}
	sum := sha256.New()
	return &recordFile{path: path, format: filepath.Ext(path), file: f, sum: sum,
		buffer: bufio.NewWriterSize(io.MultiWriter(f, sum), 256*abi.KiB)}, nil
}

// writeRecords is createRecords for the standard output, which keeps what was written
// before an error.
func writeRecords(w io.Writer, format string) *recordFile {
	sum := sha256.New()
	return &recordFile{path: "-", format: format, sum: sum,
		buffer: bufio.NewWriterSize(io.MultiWriter(w, sum), 256*abi.KiB)}
}

// commit makes the file durable and gives it its name.
func (f *recordFile) commit() error {
	if f.file == nil {
		return f.buffer.Flush()
	}
	err := errors.Join(f.buffer.Flush(), f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.file.Name())
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

// abandon removes the unfinished file.
func (f *recordFile) abandon() {
	if f.file == nil {
		return
	}
	f.file.Close()
	os.Remove(f.file.Name())
}

func (f *recordFile) digest() string { return "sha256:" + hex.EncodeToString(f.sum.Sum(nil)) }

// write writes the selected records.
func (f *recordFile) write(ctx context.Context, s export.Selection) (err error) {
	switch f.format {
	case ".parquet":
		return f.writeParquet(ctx, s)
	case ".sqlite":
		return f.writeSQLite(ctx, s)
	}
	reader := f.exporter()
	defer reader.Close()
	asSent := f.files == nil // as the host writes them
	switch {
	case f.format == ".jsonl" && asSent:
		return f.writeLines(ctx, reader, s)
	case f.format == ".jsonl":
		f.records, err = s.WriteNDJSON(ctx, f.buffer, f.files.wrap(reader, s))
		return err
	case asSent && len(s.Streams) == 1:
		f.records, err = reader.CSV(ctx, s.Query(s.Streams[0]), f.buffer)
		return err
	}
	columns, _, err := s.Columns(ctx, reader)
	if errors.Is(err, export.ErrColumns) {
		return fmt.Errorf("%w; export to .jsonl", err)
	}
	if err != nil {
		return err
	}
	f.records, err = s.WriteCSV(ctx, f.buffer, f.files.wrap(reader, s), columns)
	return err
}

// writeLines copies the lines of whole streams as the host sends them.
func (f *recordFile) writeLines(ctx context.Context, from *client.Exporter, s export.Selection) error {
	for _, st := range s.Streams {
		if err := from.Lines(ctx, s.Query(st), func(line []byte) error {
			f.records++
			_, err := f.buffer.Write(line)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
