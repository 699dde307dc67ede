package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// filesAtOnce is how many rows of table file Verify reads at once; they include short contents.
const filesAtOnce = 100

// A fileRow is a row of table file.
type fileRow struct {
	heap, refs, size int64
	digest, data     []byte
	content          *int64
}

// verifyFiles reads every content and checks the reference counts: the sum of fileNumber over all references that
// records hold must equal the sum over all files of count times fileNumber.
func verifyFiles(ctx context.Context, c *pgx.Conn) error {
	var sum uint64
	usage := map[int64]store.FileUsage{}
	for last := (fileRow{}); ; {
		page, err := filesBehind(ctx, c, last)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, f := range page {
			if err := f.verify(ctx, c); err != nil {
				return err
			}
			sum += uint64(f.refs) * fileNumber(f.heap, f.digest) // #nosec G115 -- it is counted up
			u := usage[f.heap]
			usage[f.heap] = store.FileUsage{Files: u.Files + 1, Bytes: u.Bytes + uint64(f.size)} // #nosec G115 -- as above
		}
		last = page[len(page)-1]
	}
	if err := verifyUsage(ctx, c, usage); err != nil {
		return err
	}
	held, err := sumOfHeld(ctx, c)
	if err == nil && held != sum {
		err = store.Corrupt("records hold other files than are counted")
	}
	return err
}

func filesBehind(ctx context.Context, c *pgx.Conn, last fileRow) ([]fileRow, error) {
	rows, err := c.Query(ctx, `select heap, refs, size, digest, data, content from file join heap h on h.number = heap
		where not erased and (heap, digest) > ($1, $2) order by heap, digest limit $3`, last.heap, last.digest, filesAtOnce)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (f fileRow, err error) {
		return f, r.Scan(&f.heap, &f.refs, &f.size, &f.digest, &f.data, &f.content)
	})
}

// verify compares a content with its digest.
func (f *fileRow) verify(ctx context.Context, c *pgx.Conn) error {
	d := store.DigestOf(f.digest)
	if f.content == nil {
		if !isDigest(f.data, d) || int64(len(f.data)) != f.size {
			return store.Corrupt("file %s has another content", d)
		}
		return nil
	}
	rows, err := c.Query(ctx, "select data from piece where content = $1 order by n", *f.content)
	if err != nil {
		return err
	}
	h := sha256.New()
	defer rows.Close()
	for rows.Next() {
		h.Write(rows.RawValues()[0])
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if store.DigestOf(h.Sum(nil)) != d {
		return store.Corrupt("file %s has another content", d)
	}
	return nil
}

func verifyUsage(ctx context.Context, c *pgx.Conn, usage map[int64]store.FileUsage) error {
	rows, err := c.Query(ctx, "select number, connection, files, file_bytes from heap where not erased")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var heap int64
		var connection store.ConnectionID
		var counted store.FileUsage
		if err := rows.Scan(&heap, &connection, &counted.Files, &counted.Bytes); err != nil {
			return err
		}
		if u := usage[heap]; u != counted {
			return store.Corrupt("connection %s has %d files of %d bytes, and counts others", connection, u.Files, u.Bytes)
		}
	}
	return rows.Err()
}

// sumOfHeld returns the sum of fileNumber over all references that records hold.
func sumOfHeld(ctx context.Context, c *pgx.Conn) (sum uint64, err error) {
	rows, err := c.Query(ctx, "select heap, body from held join heap h on h.number = heap where not erased")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var heap int64
		var body []byte
		var held []store.Held
		if err := rows.Scan(&heap, &body); err != nil {
			return 0, err
		}
		if err := decode(body, &held); err != nil {
			return 0, err
		}
		seen := map[store.Digest]bool{}
		for _, f := range held {
			if !seen[f.Digest] {
				seen[f.Digest] = true
				sum += fileNumber(heap, sumIn(f.Digest))
			}
		}
	}
	return sum, rows.Err()
}

// fileNumber returns a number that two files are unlikely to share.
func fileNumber(heap int64, digest []byte) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(digest[:len(digest):len(digest)], uint64(heap))) // #nosec G115 -- any number will do
	return binary.BigEndian.Uint64(sum[:])
}
