package badger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"

	"github.com/sluicehost/sluice/store"
)

var _ store.Files = (*Store)(nil)

// smallFile is the size up to which a content is part of the commit that names it. A longer one is written to a file of
// its own beforehand.
const smallFile = 64 << 10

// A fileOf is the stored metadata of a content.
type fileOf struct {
	Refs int64 `json:"refs"` // number of records that hold it
	store.File
}

func fileKey(kind byte, c store.ConnectionID, d store.Digest) []byte {
	return key(kind, string(c), string(d))
}

func sumOf(b []byte) store.Digest {
	sum := sha256.Sum256(b)
	return store.DigestOf(sum[:])
}

func heldKey(c store.ConnectionID, s store.Stream, k string) []byte {
	return key(kindHeld, string(c), string(s), k)
}

// fileUsage decodes the usage of a connection.
func fileUsage(payload []byte) (u store.FileUsage, err error) {
	if len(payload) != 16 {
		return u, store.Corrupt("usage of files has %d bytes", len(payload))
	}
	return store.FileUsage{Files: binary.LittleEndian.Uint64(payload), Bytes: binary.LittleEndian.Uint64(payload[8:])}, nil
}

func usageValue(u store.FileUsage) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(newValue(16), u.Files), u.Bytes)
}

// erased reports whether a connection is being erased.
func (r reader) erased(c store.ConnectionID) (bool, error) {
	_, erased, err := r.get(eraseNote(erasedConnection, string(c)))
	return erased, err
}

// fileOf reads the metadata of a content. It returns store.ErrNotFound if there is none.
func (r reader) fileOf(c store.ConnectionID, d store.Digest) (fileOf, error) {
	var f fileOf
	b, ok, err := r.get(fileKey(kindFileOf, c, d))
	if err == nil && ok {
		var erased bool
		erased, err = r.erased(c)
		ok = !erased
	}
	if err != nil || !ok {
		return f, missing(err, "file %s of connection %s", d, c)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, store.Corrupt("file %s: %v", d, err)
	}
	return f, nil
}

// HasFile implements store.Files.
func (s *files) HasFile(ctx context.Context, c store.ConnectionID, d store.Digest) (store.File, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return store.File{}, err
	}
	defer r.close()
	f, err := r.fileOf(c, d)
	return f.File, err
}

// FileUsage implements store.Files.
func (s *files) FileUsage(ctx context.Context, c store.ConnectionID) (store.FileUsage, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return store.FileUsage{}, err
	}
	defer r.close()
	b, ok, err := r.get(key(kindUsage, string(c)))
	if err != nil || !ok {
		return store.FileUsage{}, err
	}
	if erased, err := r.erased(c); err != nil || erased {
		return store.FileUsage{}, err
	}
	return fileUsage(b)
}

// HeldFiles implements store.Files.
func (s *files) HeldFiles(ctx context.Context, q store.FileQuery) (store.FilePage, error) {
	var p store.FilePage
	limit := q.Limit
	if limit <= 0 || limit > 1000 {
		limit = 100
	}
	after, err := base64.RawURLEncoding.DecodeString(q.After)
	if err != nil {
		return p, store.ErrCursorExpired
	}
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return p, err
	}
	defer r.close()
	if erased, err := r.erased(q.Connection); err != nil || erased {
		return p, err
	}
	prefix := key(kindHeld, string(q.Connection), "")
	if q.Stream != "" {
		prefix = heldKey(q.Connection, q.Stream, "")
	}
	if len(after) > 0 && !bytes.HasPrefix(after, prefix) {
		return p, store.ErrCursorExpired
	}
	if q.Key != "" {
		p.Files, err = r.heldBy(heldKey(q.Connection, q.Stream, q.Key))
		return p, err
	}
	for _, k := range r.listKeys(prefix, after, false, limit) {
		held, err := r.heldBy(k)
		if err != nil {
			return p, err
		}
		p.Files, after, limit = append(p.Files, held...), k, limit-1
	}
	p.More = limit == 0 && len(r.listKeys(prefix, after, false, 1)) > 0
	p.After = base64.RawURLEncoding.EncodeToString(after)
	return p, ctx.Err()
}

// heldBy reads the files of one record, of which there may be none.
func (r reader) heldBy(k []byte) ([]store.HeldFile, error) {
	b, ok, err := r.get(k)
	if err != nil || !ok {
		return nil, err
	}
	held, err := decodeHeld(k, b)
	if err != nil {
		return nil, err
	}
	_, rest, ok1 := cutPart(k[1:])
	stream, record, ok2 := cutPart(rest)
	if !ok1 || !ok2 {
		return nil, store.Corrupt("key %.40q names no record", k)
	}
	out := make([]store.HeldFile, len(held))
	for i, h := range held {
		out[i] = store.HeldFile{Stream: store.Stream(stream), Key: string(record), Field: h.Field, File: h.File}
	}
	return out, nil
}

// cutPart splits the first length-prefixed part off b.
func cutPart(b []byte) (part, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b) < 2+n {
		return nil, nil, false
	}
	return b[2 : 2+n], b[2+n:], true
}

func decodeHeld(k, payload []byte) (held []store.Held, err error) {
	if err := json.Unmarshal(payload, &held); err != nil {
		return nil, store.Corrupt("files of %.40q: %v", k, err)
	}
	return held, nil
}

// OpenFile implements store.Files.
func (s *files) OpenFile(ctx context.Context, c store.ConnectionID, d store.Digest) (store.FileContent, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	f, err := r.fileOf(c, d)
	if err != nil {
		return nil, err
	}
	return s.content(r.reader, c, f)
}

// content opens a content whose metadata was read from r.
func (s *disk) content(r reader, c store.ConnectionID, f fileOf) (store.FileContent, error) {
	if b, ok, err := r.get(fileKey(kindContent, c, f.Digest)); err != nil || ok {
		if err == nil && (int64(len(b)) != f.Size || sumOf(b) != f.Digest) {
			err = store.Corrupt("file %s has another content", f.Digest)
		}
		return shortContent{bytes.NewReader(b)}, err
	}
	b, ok, err := r.get(fileKey(kindLocation, c, f.Digest))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, store.Corrupt("file %s is nowhere", f.Digest)
	}
	p, err := decodeLocation(b)
	if err != nil || p.Size != f.Size {
		return nil, store.Corrupt("file %s: its place does not fit", f.Digest)
	}
	at, err := s.contentFiles.open(p.Name)
	if err != nil {
		return nil, store.Corrupt("file %s: %v", f.Digest, err)
	}
	return &longContent{at: at, place: p, digest: f.Digest, block: -1}, nil
}

type shortContent struct{ *bytes.Reader }

func (shortContent) Close() error  { return nil }
func (c shortContent) Size() int64 { return c.Reader.Size() }

// A longContent reads a file block by block and verifies the checksum of each block.
type longContent struct {
	at     contentReader
	place  contentLocation
	digest store.Digest
	block  int64 // number of the block in data; -1 for none
	data   []byte
	offset int64
}

func (c *longContent) Size() int64  { return c.place.Size }
func (c *longContent) Close() error { return c.at.Close() }

func (c *longContent) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.offset
	case io.SeekEnd:
		offset += c.place.Size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	c.offset = offset
	return offset, nil
}

func (c *longContent) Read(p []byte) (int, error) {
	if c.offset >= c.place.Size {
		return 0, io.EOF
	}
	if n := c.offset / blockBytes; n != c.block {
		if err := c.load(n); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.data[c.offset%blockBytes:])
	c.offset += int64(n)
	return n, nil
}

func (c *longContent) load(n int64) error {
	c.block = -1
	if c.data == nil {
		c.data = make([]byte, blockBytes)
	}
	c.data = c.data[:min(blockBytes, c.place.Size-n*blockBytes)]
	if _, err := c.at.ReadAt(c.data, n*blockBytes); err != nil && err != io.EOF {
		return store.Corrupt("file %s: %v", c.digest, err)
	}
	if blockSum(c.data) != c.place.Sums[n] {
		return store.Corrupt("file %s: block %d does not match its checksum", c.digest, n)
	}
	c.block = n
	return nil
}

// checkContent reads a content to its end and compares the digest. It passes the blocks of blockBytes, the last of
// which may be shorter, to each unless that is nil.
func checkContent(ctx context.Context, c store.FileContent, d store.Digest, each func([]byte) error) error {
	var h hash.Hash = sha256.New()
	buf := make([]byte, blockBytes)
	for {
		n, err := io.ReadFull(c, buf)
		h.Write(buf[:n])
		if n > 0 && each != nil {
			if err := each(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			if store.DigestOf(h.Sum(nil)) != d {
				return store.Corrupt("file %s has another content", d)
			}
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}
