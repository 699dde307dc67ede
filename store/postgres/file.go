package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

var _ store.Files = (*Store)(nil)

// sumIn returns a digest in the database's form, or nil if d is invalid.
func sumIn(d store.Digest) []byte {
	_, digits, _ := strings.Cut(string(d), ":")
	sum, _ := hex.DecodeString(digits) // no row contains nil
	return sum
}

// HasFile implements store.Files.
func (s *files) HasFile(ctx context.Context, c store.ConnectionID, d store.Digest) (store.File, error) {
	return one[store.File](ctx, s.db, "file", string(d),
		"select body from file f join heap h on h.number = f.heap where connection = $1 and not erased and digest = $2",
		string(c), sumIn(d))
}

// FileUsage implements store.Files.
func (s *files) FileUsage(ctx context.Context, c store.ConnectionID) (u store.FileUsage, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *conn) error {
		return absent(conn.QueryRow(ctx, "select files, file_bytes from heap where connection = $1 and not erased",
			string(c)).Scan(&u.Files, &u.Bytes))
	})
	return u, err
}

// A heldCursor is the end of a page of files.
type heldCursor struct {
	Connection store.ConnectionID
	Stream     store.Stream
	Key        string
}

// HeldFiles implements store.Files.
func (s *files) HeldFiles(ctx context.Context, q store.FileQuery) (p store.FilePage, err error) {
	at := heldCursor{Connection: q.Connection}
	if q.After != "" {
		text, err := base64.RawURLEncoding.DecodeString(q.After)
		if err != nil || json.Unmarshal(text, &at) != nil || at.Connection != q.Connection ||
			q.Stream != "" && at.Stream != q.Stream {
			return p, store.ErrCursorExpired
		}
	}
	limit := bounded(q.Limit)
	sql, args := `select stream, key, body from held f join heap h on h.number = f.heap where connection = $1 and not erased
		and (stream, key) > ($2, $3) and ($4 = '' or stream = $4) order by stream, key limit $5`,
		[]any{string(q.Connection), string(at.Stream), []byte(at.Key), string(q.Stream), limit + 1}
	if q.Key != "" {
		sql, args = `select stream, key, body from held f join heap h on h.number = f.heap where connection = $1 and not erased and stream = $2 and key = $3`,
			[]any{string(q.Connection), string(q.Stream), []byte(q.Key)}
	}
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx, sql, args...)
		if err == nil {
			p, err = heldPage(rows, at, limit)
		}
		return err
	})
	return p, err
}

// heldPage reads the files of up to limit records. An additional row means that there is another page.
func heldPage(rows pgx.Rows, at heldCursor, limit int) (p store.FilePage, err error) {
	defer rows.Close()
	for n := 0; rows.Next(); n++ {
		if n == limit {
			p.More = true
			break
		}
		var key, body []byte
		var held []store.Held
		if err := rows.Scan(&at.Stream, &key, &body); err != nil {
			return p, err
		}
		if err := decode(body, &held); err != nil {
			return p, err
		}
		at.Key = string(key)
		for _, h := range held {
			p.Files = append(p.Files, store.HeldFile{Stream: at.Stream, Key: at.Key, Field: h.Field, File: h.File})
		}
	}
	text, err := json.Marshal(at)
	p.After = base64.RawURLEncoding.EncodeToString(text)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	return p, err
}

// OpenFile implements store.Files.
func (s *files) OpenFile(ctx context.Context, c store.ConnectionID, d store.Digest) (store.FileContent, error) {
	out := &content{s: s, ctx: context.WithoutCancel(ctx), digest: d, piece: -1}
	err := s.read(ctx, func(ctx context.Context, conn *conn) error {
		var number *int64
		err := conn.QueryRow(ctx,
			"select size, data, content from file f join heap h on h.number = f.heap where connection = $1 and not erased and digest = $2",
			string(c), sumIn(d)).Scan(&out.size, &out.data, &number)
		if errors.Is(err, pgx.ErrNoRows) {
			return missing(nil, "file %s of connection %s", d, c)
		}
		if err == nil && number != nil {
			out.number = *number
			return nil
		}
		if err == nil && (int64(len(out.data)) != out.size || !isDigest(out.data, d)) {
			err = store.Corrupt("file %s has another content", d)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case out.number == 0:
		return shortContent{bytes.NewReader(out.data)}, nil
	}
	if out.reader, err = s.beginReading(ctx, out.number); err != nil {
		return nil, err
	}
	return out, nil
}

func isDigest(b []byte, d store.Digest) bool {
	sum := sha256.Sum256(b)
	return store.DigestOf(sum[:]) == d
}

type shortContent struct{ *bytes.Reader }

func (shortContent) Close() error  { return nil }
func (c shortContent) Size() int64 { return c.Reader.Size() }

// A content reads a long content piece by piece and verifies the checksum of each. It is not safe for concurrent use.
type content struct {
	s      *files
	ctx    context.Context
	digest store.Digest
	size   int64
	number int64
	reader int64 // row of table reading; 0 for none
	piece  int64 // number of the piece in data; -1 for none
	data   []byte
	offset int64
}

func (c *content) Size() int64 { return c.size }

func (c *content) Close() error {
	if c.reader != 0 {
		c.s.contents.close(c.reader)
		c.reader = 0
	}
	return nil
}

func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.offset
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	c.offset = offset
	return offset, nil
}

func (c *content) Read(p []byte) (int, error) {
	if c.offset >= c.size {
		return 0, io.EOF
	}
	if n := c.offset / pieceBytes; n != c.piece {
		if err := c.load(n); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.data[c.offset%pieceBytes:])
	c.offset += int64(n)
	return n, nil
}

func (c *content) load(n int64) error {
	c.piece = -1
	var sum int64
	err := c.s.read(c.ctx, func(ctx context.Context, conn *conn) error {
		return conn.QueryRow(ctx, "select sum, data from piece where content = $1 and n = $2", c.number,
			n).Scan(&sum, &c.data)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return store.Corrupt("file %s: piece %d is missing", c.digest, n)
	case err != nil:
		return err
	case int64(len(c.data)) != min(pieceBytes, c.size-n*pieceBytes) || int64(crc32.Checksum(c.data, castagnoli)) != sum:
		return store.Corrupt("file %s: piece %d does not match its checksum", c.digest, n)
	}
	c.piece = n
	return nil
}
