package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluicehost/sluice/store"
)

// Flags of a record.
const (
	flagDeleted  = 1
	flagCompound = 2
)

// ingestSQL applies changes of different keys to a table of records: it skips changes without effect, gives the others
// the next versions in order, and updates the counters. The lookup is lateral so that the server uses the index even if
// its statistics of a growing table are outdated.
const ingestSQL = `
with input as (
  select * from unnest($2::bytea[], $3::bytea[], $4::int8[], $5::int2[], $6::int8[]) with ordinality as i (key, data, emitted, flags, sum, at)
), changed as (
  select i.*, r.place, r.flags as was, r.sum as old, row_number() over (order by i.at) as n
  from input i left join lateral (
    select ctid as place, flags, sum, data from TABLE where stream = $1 and key = i.key limit 1
  ) r on true
  where case when i.flags & 1 = 1 then r.flags & 1 = 0 else r.place is null or r.flags & 1 = 1 or r.data <> i.data end
), counted as (
  update stream s set last = last + n, live = live + up - alive, dead = dead + down - buried, bytes = bytes + size, sum = s.sum + more - less, updated = $8
  from (
    select count(*) as n, count(*) filter (where flags & 1 = 0) as up, count(*) filter (where flags & 1 = 1) as down,
      count(*) filter (where was & 1 = 0) as alive, count(*) filter (where was & 1 = 1) as buried,
      coalesce(sum(octet_length(key) + octet_length(data)), 0) as size, coalesce(sum(sum), 0) as more, coalesce(sum(old), 0) as less
    from changed
  ) c
  where s.number = $1 and n > 0 returning last - n as base
), added as (
  insert into TABLE (stream, version, emitted, ingested, run, sum, flags, key, data)
  select $1, base + n, emitted, $9, $7, sum, flags, key, data from changed, counted where place is null
), replaced as (
  update TABLE r set version = base + n, emitted = c.emitted, ingested = $9, run = $7, sum = c.sum, flags = c.flags, data = c.data
  from changed c, counted where r.ctid = c.place
)
select count(*), case when $10 then array_agg(at - 1 order by at) end from changed`

// ingest applies one batch to the records of the connection and returns how many records changed.
func (g *group) ingest(ctx context.Context, t *tx, b *store.Batch, h *holding) (changed int, err error) {
	if b.Len() == 0 {
		return 0, nil
	}
	if err := g.findHeap(ctx, t); err != nil {
		return 0, err
	}
	_, holds := b.Holds()
	stream, err := g.findStream(ctx, t, b.Stream, holds)
	if err != nil {
		return 0, err
	}
	statement, err := t.prepareIngest(ctx, g.heap)
	if err != nil {
		return 0, err
	}
	base := 0
	for _, part := range parts(b) {
		n, kept, err := g.lay(ctx, t, statement, stream, part)
		if err == nil && stream.holds {
			err = h.part(ctx, b, part, base, kept)
		}
		if err != nil {
			return 0, err
		}
		changed += n
		base += len(part)
	}
	return changed, nil
}

// parts splits a batch wherever a key repeats.
func parts(b *store.Batch) [][]store.Change {
	var all [][]store.Change
	seen, part := make(map[string]bool, b.Len()), make([]store.Change, 0, b.Len())
	for _, c := range b.Changes() {
		if seen[string(c.Key)] {
			all = append(all, part)
			part = nil
			clear(seen)
		}
		seen[string(c.Key)] = true
		part = append(part, c)
	}
	return append(all, part)
}

// prepareIngest prepares the statement for a table of records, unless that was done, and returns its name.
func (c *conn) prepareIngest(ctx context.Context, heap int64) (string, error) {
	name := fmt.Sprintf("ingest_%d", heap)
	if c.ingests[heap] {
		return name, nil
	}
	if len(c.ingests) >= manyIngests {
		if err := c.DeallocateAll(ctx); err != nil {
			return "", err
		}
		c.ingests = nil
	}
	_, err := c.Prepare(ctx, name, strings.ReplaceAll(ingestSQL, "TABLE", fmt.Sprintf("records_%d", heap)))
	if err != nil {
		return "", err
	}
	if c.ingests == nil {
		c.ingests = make(map[int64]bool)
	}
	c.ingests[heap] = true
	return name, nil
}

// lay runs the statement and returns how many records changed and, for a stream that holds files, which. It encodes the
// arguments itself in one pass, without an allocation per record.
func (g *group) lay(ctx context.Context, t *tx, statement string, in stream,
	part []store.Change) (int, []int64, error) {
	size := 0
	for _, c := range part {
		size += len(c.Key) + len(c.Data)
	}
	keys, data := array(pgtype.ByteaOID, len(part), size), array(pgtype.ByteaOID, len(part), size)
	emitted, sums, flags := array(pgtype.Int8OID, len(part), 8*len(part)), array(pgtype.Int8OID, len(part), 8*len(part)),
		array(pgtype.Int2OID, len(part), 2*len(part))
	var scratch []byte
	for _, c := range part {
		keys, data = element(keys, c.Key), element(data, c.Data)
		emitted = int8Of(element(emitted, nil), c.EmittedAt)
		var sum int64
		sum, scratch = sumOf(c, scratch)
		sums = int8Of(element(sums, nil), sum)
		flags = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(flags, 2), flagsOf(c))
	}
	at := t.now.UnixMicro()
	args := [][]byte{int8Arg(in.number), keys, data, emitted, flags, sums, int8Arg(g.number),
		int8Arg(at - epoch2000), int8Arg(at), {0}}
	if in.holds {
		args[len(args)-1][0] = 1
	}
	binaries := slices.Repeat([]int16{1}, len(args))
	r := t.PgConn().ExecPrepared(ctx, statement, args, binaries, binaries[:2]).Read()
	if r.Err != nil {
		return 0, nil, r.Err
	}
	if len(r.Rows) != 1 || len(r.Rows[0][0]) != 8 {
		return 0, nil, store.Corrupt("the database counted no changes")
	}
	var kept []int64
	if err := t.TypeMap().Scan(pgtype.Int8ArrayOID, pgtype.BinaryFormatCode, r.Rows[0][1], &kept); err != nil {
		return 0, nil, err
	}
	return int(binary.BigEndian.Uint64(r.Rows[0][0])), kept, nil // #nosec G115 -- at most len(part)
}

// epoch2000 is the epoch of the server's times, in microseconds since 1970.
const epoch2000 = 946684800 * 1_000_000

// array begins a one-dimensional array in the protocol's binary format.
func array(element uint32, n, size int) []byte {
	b := make([]byte, 0, 20+4*n+size)
	for _, v := range []uint32{1, 0, element, uint32(n), 1} { // #nosec G115 -- dimensions, no nulls, type, length, first index
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func element(b, value []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...) // #nosec G115 -- less than 4 GiB
}

// int8Of sets the element just begun at the end of b to v.
func int8Of(b []byte, v int64) []byte {
	binary.BigEndian.PutUint32(b[len(b)-4:], 8)
	return binary.BigEndian.AppendUint64(b, uint64(v)) // #nosec G115 -- the same bits
}

func int8Arg(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) } // #nosec G115 -- the same bits

func flagsOf(c store.Change) (flags uint16) {
	if c.Op == store.Delete {
		flags |= flagDeleted
	}
	if c.Compound {
		flags |= flagCompound
	}
	return flags
}

// sumOf returns a record's contribution to the sum of its stream, with which Verify detects data that the server
// changed or lost.
func sumOf(c store.Change, scratch []byte) (int64, []byte) {
	b := append(scratch[:0], byte(flagsOf(c)))
	b = append(element(b, c.Key), c.Data...)
	h := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(h[:])), b // #nosec G115 -- any number will do
}
