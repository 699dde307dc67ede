package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// A holding counts the references of one commit to contents.
type holding struct {
	g      *group
	t      *tx
	files  []store.StagedFile
	staged map[store.Digest]*staged
	delta  map[store.Digest]int64      // change in the number of records that hold it
	added  map[store.Digest]store.File // as first named by the commit
}

func (g *group) holding(t *tx, cm *store.Commit) *holding {
	h := &holding{g: g, t: t, files: cm.Files, staged: map[store.Digest]*staged{}, delta: map[store.Digest]int64{},
		added: map[store.Digest]store.File{}}
	for _, f := range cm.Files {
		if x := f.(*staged); h.staged[x.digest] == nil {
			h.staged[x.digest] = x
		}
	}
	return h
}

// part updates the references of records that changed. The changes in part, which starts at index base of the batch,
// have different keys. kept lists the indexes in part of those that changed anything.
func (h *holding) part(ctx context.Context, b *store.Batch, part []store.Change, base int, kept []int64) error {
	if len(kept) == 0 {
		return nil
	}
	keys := make([][]byte, len(kept))
	for i, n := range kept {
		keys[i] = part[n].Key
	}
	before, err := h.before(ctx, b.Stream, keys)
	if err != nil {
		return err
	}
	var put, bodies, gone [][]byte
	for i, n := range kept {
		files := b.Held(base + int(n))
		was, known := before[string(keys[i])]
		h.count(was, files)
		switch {
		case len(files) > 0:
			body, err := json.Marshal(files)
			if err != nil {
				return err
			}
			put, bodies = append(put, keys[i]), append(bodies, body)
		case known:
			gone = append(gone, keys[i])
		}
	}
	q := &pgx.Batch{}
	if len(put) > 0 {
		q.Queue(`insert into held (heap, stream, key, body) select $1, $2, key, body from unnest($3::bytea[], $4::bytea[]) as i (key, body)
			on conflict (heap, stream, key) do update set body = excluded.body`, h.g.heap, string(b.Stream), put, bodies)
	}
	if len(gone) > 0 {
		q.Queue("delete from held where heap = $1 and stream = $2 and key = any($3)", h.g.heap, string(b.Stream), gone)
	}
	if q.Len() == 0 {
		return nil
	}
	return h.t.SendBatch(ctx, q).Close()
}

// before reads which files records hold so far.
func (h *holding) before(ctx context.Context, stream store.Stream, keys [][]byte) (map[string][]store.Held, error) {
	rows, err := h.t.Query(ctx, "select key, body from held where heap = $1 and stream = $2 and key = any($3)", h.g.heap,
		string(stream), keys)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string][]store.Held{}
	for rows.Next() {
		var key, body []byte
		var held []store.Held
		if err := rows.Scan(&key, &body); err != nil {
			return nil, err
		}
		if err := decode(body, &held); err != nil {
			return nil, err
		}
		all[string(key)] = held
	}
	return all, rows.Err()
}

// count adjusts the reference counts for a record that held was and now holds is.
func (h *holding) count(was, is []store.Held) {
	before := map[store.Digest]bool{}
	for _, f := range was {
		before[f.Digest] = true
	}
	after := map[store.Digest]bool{}
	for _, f := range is {
		if !before[f.Digest] && !after[f.Digest] {
			h.delta[f.Digest]++
			if _, ok := h.added[f.Digest]; !ok {
				h.added[f.Digest] = f.File
			}
		}
		after[f.Digest] = true
	}
	for d := range before {
		if !after[d] {
			h.delta[d]--
		}
	}
}

// maxLoose bounds the contents that the last commit of a run must erase. What a run drops beyond that is erased at
// once.
const maxLoose = 1000

// settle writes the reference counts to the database. Contents without references are kept until the run ends, because
// a later record of the run may name them again.
func (h *holding) settle(ctx context.Context) error {
	known, err := h.known(ctx)
	if err != nil {
		return err
	}
	var moved, loose [][]byte
	var by []int64
	fresh := map[store.Digest]int64{}
	for d, n := range h.delta {
		refs, ok := known[d]
		_, wanted := h.added[d]
		switch {
		case ok && n != 0:
			moved, by = append(moved, sumIn(d)), append(by, n)
		case !ok && wanted:
			fresh[d] = n
		}
		if refs+n == 0 && (ok || wanted) {
			loose = append(loose, sumIn(d))
		}
	}
	if len(moved) > 0 {
		_, err := h.t.exec(ctx, "update file f set refs = refs + n from unnest($2::bytea[], $3::int8[]) as d (digest, n) where heap = $1 and f.digest = d.digest",
			h.g.heap, moved, by)
		if err != nil {
			return err
		}
	}
	if err := h.keep(ctx, fresh); err != nil {
		return err
	}
	rest := max(0, min(len(loose), h.g.loose+len(loose)-maxLoose))
	h.g.loose += len(loose) - rest
	if rest == 0 {
		return nil
	}
	b := &pgx.Batch{}
	h.g.erase(b, loose[:rest])
	return h.t.SendBatch(ctx, b).Close()
}

// known reads the reference counts of the contents that the commit touches.
func (h *holding) known(ctx context.Context) (map[store.Digest]int64, error) {
	if len(h.delta) == 0 {
		return nil, nil
	}
	var all [][]byte
	for d := range h.delta {
		all = append(all, sumIn(d))
	}
	rows, err := h.t.Query(ctx, "select digest, refs from file where heap = $1 and digest = any($2)", h.g.heap, all)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := map[store.Digest]int64{}
	for rows.Next() {
		var sum []byte
		var refs int64
		if err := rows.Scan(&sum, &refs); err != nil {
			return nil, err
		}
		known[store.DigestOf(sum)] = refs
	}
	return known, rows.Err()
}

// keep stores new contents with their reference counts. It erases staged contents of the commit that were not needed.
func (h *holding) keep(ctx context.Context, fresh map[store.Digest]int64) error {
	taken := map[*staged]bool{}
	var digests, bodies, data [][]byte
	var refs, sizes []int64
	var contents []*int64
	bytes := int64(0)
	for d, n := range fresh {
		f, x := h.added[d], h.staged[d]
		if x == nil || x.size != f.Size {
			return &store.SinkError{Code: "unknown_file", Err: fmt.Errorf("file %s is neither kept nor part of the commit", d)}
		}
		body, err := json.Marshal(f)
		if err != nil {
			return err
		}
		digests, bodies, refs, sizes = append(digests, sumIn(d)), append(bodies, body), append(refs, n), append(sizes, f.Size)
		bytes += f.Size
		if x.content == 0 {
			data, contents = append(data, append([]byte{}, x.buf...)), append(contents, nil) // not null, where it is empty
			continue
		}
		if err := h.take(ctx, x); err != nil {
			return err
		}
		taken[x] = true
		data, contents = append(data, nil), append(contents, &x.content)
	}
	q := &pgx.Batch{}
	if len(digests) > 0 {
		q.Queue(`insert into file (heap, digest, refs, size, body, data, content)
			select $1, * from unnest($2::bytea[], $3::int8[], $4::int8[], $5::bytea[], $6::bytea[], $7::int8[])`, h.g.heap, digests, refs, sizes, bodies, data, contents)
		q.Queue("update heap set files = files + $2, file_bytes = file_bytes + $3 where number = $1", h.g.heap,
			len(digests), bytes)
	}
	var unused []int64
	for _, it := range h.files {
		if x := it.(*staged); x.content != 0 && !taken[x] {
			unused = append(unused, x.content)
		}
	}
	if len(unused) > 0 {
		h.g.removes = true
		q.Queue("update content set erased = true where number = any($1) and heap is null", unused)
	}
	if q.Len() == 0 {
		return nil
	}
	return h.t.SendBatch(ctx, q).Close()
}

// take assigns a long content to the connection if it is complete. Its pieces were written without waiting for the
// disk, so they are gone if the server has crashed since.
func (h *holding) take(ctx context.Context, x *staged) error {
	var pieces int32
	var bytes int64
	err := h.t.QueryRow(ctx, `with mine as (update content set heap = $2 where number = $1 and heap is null and not erased returning number)
		select count(*), coalesce(sum(octet_length(data)), 0) from piece join mine on content = number`, x.content, h.g.heap).Scan(&pieces, &bytes)
	if err == nil && (pieces != x.pieces || bytes != x.size) {
		err = &store.SinkError{Code: "engine_rolled_back", Err: ErrRolledBack}
	}
	return err
}

// eraseSQL erases those contents of a connection that no record holds: all of them, or only those listed.
const eraseSQL = `
with mine as (
  select number from heap where connection = $1 and not erased
), gone as (
  delete from file f using mine where f.heap = mine.number and refs = 0 and ($2::bytea[] is null or digest = any($2)) returning f.size, f.content
), doomed as (
  update content set erased = true where number in (select content from gone)
), counted as (
  select count(*) as n, coalesce(sum(size), 0) as bytes from gone
)
update heap set files = files - n, file_bytes = file_bytes - bytes from mine, counted where heap.number = mine.number and n > 0`

func (g *group) erase(b *pgx.Batch, digests [][]byte) {
	g.removes = true
	b.Queue(eraseSQL, string(g.lease.ConnectionID), digests)
}
