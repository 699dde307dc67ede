package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// A keptFile is a file whose pieces are to be listed.
type keptFile struct {
	heap    int64
	digest  []byte
	content *int64
}

func (f *keptFile) name() string { return string(store.DigestOf(f.digest)) }

// files lists the items that concern files, connection by connection.
func (l *lister) files() error {
	connections, err := l.groups(
		"select array[connection] from heap where not erased and (files > 0 or exists (select from held where held.heap = number))")
	if err != nil {
		return err
	}
	for _, c := range connections {
		var heap int64
		if err := l.c.QueryRow(l.ctx, "select number from heap where connection = $1 and not erased",
			c[0]).Scan(&heap); err != nil {
			return err
		}
		if l.after.Kind == store.HeldItem {
			err = l.held(c[0], heap)
		} else {
			err = l.filesOf(c[0], heap)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// filesOf lists the files of a connection, or the pieces of their contents.
func (l *lister) filesOf(c string, heap int64) error {
	digest, from, seq := []byte{}, []byte(nil), int64(-1)
	if rest := l.last([]string{c}); rest != nil {
		name := string(rest)
		if l.after.Kind == store.PieceItem {
			names, n, err := l.after.Numbered(3)
			if err != nil {
				return err
			}
			name, seq = names[1], int64(n) // #nosec G115 -- it was below 1 << 31
		}
		digest, _ = hex.DecodeString(strings.TrimPrefix(name, "sha256:")) // if invalid, start from the beginning
		from = digest
	}
	condition := "digest > $2"
	if l.after.Kind == store.PieceItem {
		condition = "digest >= $2"
	}
	return pages(func() (int, error) {
		var some []keptFile
		n, err := l.page(func(r pgx.Rows) error {
			f := keptFile{heap: heap}
			var v store.FileValue
			var body []byte
			if err := r.Scan(&f.digest, &f.content, &v.Refs, &body); err != nil {
				return err
			}
			if digest = f.digest; l.after.Kind == store.PieceItem {
				some = append(some, f)
				return nil
			}
			if err := decode(body, &v.File); err != nil {
				return err
			}
			return l.value(v, store.ItemKey(c, f.name()))
		}, "select digest, content, refs, body from file where heap = $1 and "+condition+" order by digest", heap, digest)
		condition = "digest > $2"
		for _, f := range some {
			behind := int64(-1)
			if string(f.digest) == string(from) {
				behind = seq
			}
			if err := l.pieces(c, f, behind); err != nil {
				return n, err
			}
		}
		return n, err
	})
}

func (l *lister) pieces(c string, f keptFile, behind int64) error {
	if f.content == nil {
		var data []byte
		err := l.c.QueryRow(l.ctx, "select data from file where heap = $1 and digest = $2", f.heap, f.digest).Scan(&data)
		if err != nil || behind >= 0 {
			return err
		}
		return l.fn(store.Item{Kind: store.PieceItem, Key: store.ItemKey(c, f.name(), store.ItemNumber(0)), Value: data})
	}
	for {
		var data []byte
		err := l.c.QueryRow(l.ctx, "select n, data from piece where content = $1 and n > $2 order by n limit 1", *f.content,
			behind).Scan(&behind, &data)
		if err != nil {
			return absent(err)
		}
		err = l.fn(store.Item{Kind: store.PieceItem, Key: store.ItemKey(c, f.name(), store.ItemNumber(uint64(behind))), Value: data}) // #nosec G115 -- it counts up from 0
		if err != nil {
			return err
		}
	}
}

func (l *lister) held(c string, heap int64) error {
	stream, key := "", []byte(nil)
	if l.last([]string{c}) != nil {
		names, err := l.after.Parts(3)
		if err != nil {
			return err
		}
		stream, key = names[1], []byte(names[2])
	}
	return pages(func() (int, error) {
		return l.page(func(r pgx.Rows) error {
			var text json.RawMessage
			if err := r.Scan(&stream, &key, &text); err != nil {
				return err
			}
			return l.value(text, store.ItemKey(c, stream, string(key)))
		}, `select stream, key, body from held where heap = $1 and (octet_length(stream), stream, key) > (octet_length($2::text), $2, coalesce($3, ''::bytea))
			order by octet_length(stream), stream, key`, heap, stream, key)
	})
}

// queueFile queues the statements for an item that concerns files.
func (f *filler) queueFile(ctx context.Context, t *tx, b *pgx.Batch, i store.Item) error {
	k, err := i.Parts(map[store.ItemKind]int{store.FileItem: 2, store.PieceItem: 3, store.HeldItem: 3}[i.Kind])
	if err != nil {
		return err
	}
	heap, err := t.findHeap(ctx, k[0])
	if err != nil {
		return err
	}
	switch i.Kind {
	case store.FileItem:
		return queueContent(b, i, heap, f.s.db)
	case store.PieceItem:
		return f.queuePiece(ctx, t, b, i, heap)
	}
	b.Queue("insert into held (heap, stream, key, body) values ($1, $2, $3, $4)", heap, k[1], []byte(k[2]), i.Value)
	b.Queue("update stream set holds = true where heap = $1 and name = $2 and not holds", heap, k[1])
	return nil
}

// queueContent inserts a content whose pieces follow.
func queueContent(b *pgx.Batch, i store.Item, heap int64, s *db) error {
	var v store.FileValue
	if err := i.Decode(&v); err != nil {
		return err
	}
	body, err := json.Marshal(v.File)
	if err != nil {
		return err
	}
	b.Queue("update heap set files = files + 1, file_bytes = file_bytes + $2 where number = $1", heap, v.Size)
	if v.Size <= smallFile {
		b.Queue("insert into file (heap, digest, refs, size, body, data) values ($1, $2, $3, $4, $5, '')", heap,
			sumIn(v.Digest), v.Refs, v.Size, body)
		return nil
	}
	b.Queue(`with c as (insert into content (epoch, heap) values ($6, $1) returning number)
		insert into file (heap, digest, refs, size, body, content) select $1, $2, $3, $4, $5, number from c`, heap, sumIn(v.Digest), v.Refs, v.Size, body, s.opts.Self.Epoch)
	return nil
}

func (f *filler) queuePiece(ctx context.Context, t *tx, b *pgx.Batch, i store.Item, heap int64) error {
	names, n, err := i.Numbered(3)
	if err != nil {
		return err
	}
	var content *int64
	err = t.QueryRow(ctx, "select content from file where heap = $1 and digest = $2", heap,
		sumIn(store.Digest(names[1]))).Scan(&content)
	switch {
	case absent(err) != nil:
		return err
	case err != nil:
		return store.Corrupt("piece of a file that is none: %.80q", i.Key)
	case content == nil:
		b.Queue("update file set data = $3 where heap = $1 and digest = $2", heap, sumIn(store.Digest(names[1])), i.Value)
	default:
		b.Queue("insert into piece (content, n, sum, data) values ($1, $2, $3, $4)", *content, n,
			int64(crc32.Checksum(i.Value, castagnoli)), i.Value)
	}
	return nil
}
