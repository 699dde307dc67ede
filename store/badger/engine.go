package badger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"

	engine "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// engineOptions returns options that sync every transaction, keep values out of the value log, and use small tables,
// which suffice because bulk is stored elsewhere.
func engineOptions(dir string, opts Options) engine.Options {
	p := opts.profile()
	o := engine.DefaultOptions(dir).
		WithSyncWrites(!opts.noSync).
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithCompression(options.None).
		WithValueThreshold(1 << 20).
		WithValueLogFileSize(64 << 20).
		WithMemTableSize(p.memTable).
		WithNumMemtables(2).
		WithBaseTableSize(p.table). // the engine keeps up to eight buffers of twice as much
		WithBlockCacheSize(p.blockCache).
		WithIndexCacheSize(0).
		WithNumCompactors(2).
		WithMetricsEnabled(false).
		WithBypassLockGuard(true). // DATA/lock guards it; a child process being started keeps the engine's own lock
		WithLogger(engineLog{opts.Logger})
	if dir == "" {
		o = o.WithInMemory(true).WithSyncWrites(false)
	}
	return o
}

// MemoryLimit returns the soft memory limit in bytes to set for the Go runtime. The engine fills and drops large
// buffers; a collector that waits for the heap to double would keep each of them twice.
func (s *disk) MemoryLimit() int64 { return s.opts.profile().process }

// engineDir returns the engine's directory, "" for a store in memory.
func engineDir(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "db")
}

// openEngine opens the engine. Every way in which it rejects a damaged directory, including a panic, becomes a
// *store.DamageError.
func openEngine(dir string, opts Options, readOnly bool) (db *engine.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = store.Corrupt("engine refused to open: %v", r)
		}
	}()
	o := engineOptions(dir, opts).WithReadOnly(readOnly)
	if o.ValueThreshold > 15*o.MemTableSize/100 {
		o = o.WithValueThreshold(15 * o.MemTableSize / 100)
	}
	if dir != "" && !readOnly {
		if err := dropEmptyLogs(dir); err != nil {
			return nil, err
		}
	}
	db, err = engine.OpenManaged(o)
	if err != nil {
		return nil, store.Corrupt("open engine: %v", err)
	}
	return db, nil
}

// verifyTables checks every block of every table. The engine treats a block with a bad checksum as one that lacks the
// requested key, so damage must be found before the first read. Without the bulk the tables are small: a few megabytes
// for a million records. The engine's own option for this check would end the process on damage.
func verifyTables(db *engine.DB) (damage *store.DamageError) {
	defer func() {
		if r := recover(); r != nil {
			damage = store.Corrupt("engine table: %v", r)
		}
	}()
	if err := db.VerifyChecksum(); err != nil {
		return store.Corrupt("engine table: %v", err)
	}
	return nil
}

// dropEmptyLogs removes log files that are empty because the engine was killed between creating and sizing them. The
// engine refuses to open with them. If something else emptied a log, the witness reveals it.
func dropEmptyLogs(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list engine files: %w", err)
	}
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext != ".mem" && ext != ".vlog" {
			continue
		}
		info, err := f.Info()
		if err == nil && info.Size() == 0 {
			err = os.Remove(filepath.Join(dir, f.Name()))
		}
		if err != nil {
			return fmt.Errorf("drop empty engine log: %w", err)
		}
	}
	return nil
}

// A reader reads the engine as of one commit. It is not safe for concurrent use.
type reader struct {
	txn  *engine.Txn
	bulk *bulk.Dir
	ts   uint64
}

func (s *disk) reader(ts uint64) reader {
	return reader{txn: s.db.NewTransactionAt(ts, false), bulk: s.bulk, ts: ts}
}

// get returns a copy of the value of k; ok is false when there is none.
func (r reader) get(k []byte) (payload []byte, ok bool, err error) {
	item, err := r.txn.Get(k)
	if errors.Is(err, engine.ErrKeyNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read key: %w", err)
	}
	payload, err = r.value(item, k)
	return payload, err == nil, err
}

// value copies the value of an item, verifies it and reads what it refers to.
func (r reader) value(item *engine.Item, k []byte) ([]byte, error) {
	raw, err := item.ValueCopy(nil)
	if err != nil {
		return nil, store.Corrupt("read value: %v", err)
	}
	form, payload, err := unseal(k, raw)
	if err != nil {
		return nil, store.Corrupt("key %.40q: %v", k, err)
	}
	switch form {
	case formChunks:
		return r.chunks(payload)
	case formExtent:
		p, ok := bulk.DecodePlace(payload)
		if !ok {
			return nil, store.Corrupt("key %.40q: bad place", k)
		}
		return r.bulk.Read(k, p)
	}
	return payload, nil
}

func (r reader) chunks(ref []byte) ([]byte, error) {
	total, first, n, ok := parseChunkRef(ref)
	if !ok {
		return nil, store.Corrupt("long value: bad reference")
	}
	value := make([]byte, 0, total)
	for i := range n {
		part, ok, err := r.get(numbered(kindChunk, first, uint64(i)))
		if err != nil {
			return nil, err
		}
		if !ok || len(value)+len(part) > total {
			return nil, store.Corrupt("long value: part %d is missing or too long", i)
		}
		value = append(value, part...)
	}
	if len(value) != total {
		return nil, store.Corrupt("long value: %d bytes of %d", len(value), total)
	}
	return value, nil
}

// parseChunkRef decodes the payload of a formChunks value.
func parseChunkRef(ref []byte) (total int, id uint64, parts int, ok bool) {
	if len(ref) != 12 {
		return 0, 0, 0, false
	}
	total = int(binary.LittleEndian.Uint32(ref))
	return total, binary.LittleEndian.Uint64(ref[4:]), (total + chunkBytes - 1) / chunkBytes, total <= math.MaxInt32
}

// iterate opens an iterator over the keys with prefix, positioned at seek or, if that is nil, at the first key. In
// reverse it is positioned at the greatest key not above seek, or at the last key.
func (r reader) iterate(prefix, seek []byte, reverse bool) *engine.Iterator {
	it := r.txn.NewIterator(engine.IteratorOptions{Prefix: prefix, Reverse: reverse})
	if seek == nil {
		seek = prefix
		if reverse {
			seek = append(slices.Clone(prefix), bytes.Repeat([]byte{0xFF}, 9)...)
		}
	}
	it.Seek(seek)
	return it
}

// scan calls fn for each item that iterate finds until fn returns false. fn may keep key and payload.
func (r reader) scan(prefix, seek []byte, reverse bool, fn func(k, payload []byte) (bool, error)) error {
	it := r.iterate(prefix, seek, reverse)
	defer it.Close()
	for ; it.ValidForPrefix(prefix); it.Next() {
		k := it.Item().KeyCopy(nil)
		payload, err := r.value(it.Item(), k)
		if err != nil {
			return err
		}
		if more, err := fn(k, payload); err != nil || !more {
			return err
		}
	}
	return nil
}

// keys iterates over the keys that iterate finds, without reading values.
func (r reader) keys(prefix, seek []byte, reverse bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		it := r.iterate(prefix, seek, reverse)
		defer it.Close()
		for ; it.ValidForPrefix(prefix); it.Next() {
			if !yield(it.Item().KeyCopy(nil)) {
				return
			}
		}
	}
}

// listKeys lists up to most keys with prefix, starting behind after if it is given or, in reverse, below it.
func (r reader) listKeys(prefix, after []byte, reverse bool, most int) (keys [][]byte) {
	for k := range r.keys(prefix, after, reverse) {
		if bytes.Equal(k, after) {
			continue
		}
		if keys = append(keys, k); len(keys) == most {
			break
		}
	}
	return keys
}

// lastKey returns the greatest key with prefix that is not above at, or nil if there is none.
func (r reader) lastKey(prefix, at []byte) []byte {
	for k := range r.keys(prefix, at, true) {
		return k
	}
	return nil
}

// An engineLog passes the engine's messages to slog.
type engineLog struct{ l *slog.Logger }

func (e engineLog) Errorf(f string, a ...any)   { e.l.Error("engine: " + fmt.Sprintf(f, a...)) }
func (e engineLog) Warningf(f string, a ...any) { e.l.Warn("engine: " + fmt.Sprintf(f, a...)) }
func (e engineLog) Infof(f string, a ...any)    { e.l.Debug("engine: " + fmt.Sprintf(f, a...)) }
func (e engineLog) Debugf(f string, a ...any)   { e.l.Debug("engine: " + fmt.Sprintf(f, a...)) }

// raw returns a copy of the sealed value of k, or nil if there is none.
func (r reader) raw(k []byte) ([]byte, error) {
	item, err := r.txn.Get(k)
	if errors.Is(err, engine.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return item.ValueCopy(nil)
}
