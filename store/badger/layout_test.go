//go:build unix

package badger_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	engine "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// BenchmarkLayout compares ways to lay records into the engine: new records of
// 200 bytes in flushes of 500, four flushes a synced transaction, into a store
// that holds LAYOUT_EXISTING records (300,000). It is why the driver is built
// as it is; docs/RATIONALE.md has the figures.
//
//	keys      a key per record and one per version
//	segments  a value per flush and an index key per record
//	bulk      a value per flush and index runs, in files beside the engine: what
//	          the driver does
func BenchmarkLayout(b *testing.B) {
	existing := 300_000
	if n, err := strconv.Atoi(os.Getenv("LAYOUT_EXISTING")); err == nil {
		existing = n
	}
	b.Run("keys", func(b *testing.B) { benchBare(b, existing, layKeys) })
	b.Run("segments", func(b *testing.B) { benchBare(b, existing, laySegment) })
	b.Run("bulk", func(b *testing.B) { benchStore(b, existing, badger.Options{}) })
}

func benchStore(b *testing.B, existing int, opts badger.Options) {
	dir := benchDir(b)
	s, err := badger.Open(dir, opts)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	f := newFeeder(b, s)
	f.feed(existing)
	f.drain()
	before := dirBytes(b, dir)
	measure(b, f.feed, f.drain)
	b.ReportMetric(float64(dirBytes(b, dir)-before)/float64(measured*b.N), "disk-B/record")
}

// A lay puts one flush into a transaction.
type lay func(txn *engine.Txn, version uint64, flush *store.Batch) error

func benchBare(b *testing.B, existing int, put lay) {
	dir := benchDir(b)
	db, err := engine.Open(engine.DefaultOptions(dir).WithSyncWrites(true).WithNumVersionsToKeep(1).WithDetectConflicts(false).
		WithChecksumVerificationMode(options.OnBlockRead).WithCompression(options.None).WithValueThreshold(1 << 20).
		WithMemTableSize(32 << 20).WithNumMemtables(2).WithBlockCacheSize(16 << 20).WithNumCompactors(2).WithLogger(nil))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	f := &feeder{tb: b, data: testData()}
	flush := new(store.Batch)
	feed := func(n int) {
		for n > 0 {
			err := db.Update(func(txn *engine.Txn) error {
				for range 4 {
					f.fill(flush, f.next, 500, 0, 1, 0)
					if err := put(txn, uint64(f.next), flush); err != nil {
						return err
					}
					f.next += 500
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			n -= 2000
		}
	}
	feed(existing)
	before := dirBytes(b, dir)
	measure(b, feed, func() {})
	b.ReportMetric(float64(dirBytes(b, dir)-before)/float64(measured*b.N), "disk-B/record")
}

func layKeys(txn *engine.Txn, version uint64, flush *store.Batch) error {
	for _, c := range flush.Changes() {
		version++
		digest := sha256.Sum256(c.Data)
		if known, err := present(txn, append([]byte("k"), c.Key...), digest[:16]); err != nil || known {
			return err
		}
		index := append(binary.LittleEndian.AppendUint64(nil, version), digest[:16]...)
		if err := txn.Set(append([]byte("k"), c.Key...), index); err != nil {
			return err
		}
		record := append(bytes.Clone(c.Key), c.Data...)
		if err := txn.Set(binary.BigEndian.AppendUint64([]byte("v"), version), record); err != nil {
			return err
		}
	}
	return nil
}

func laySegment(txn *engine.Txn, version uint64, flush *store.Batch) error {
	first := version + 1
	for off, c := range flush.Changes() {
		version++
		digest := sha256.Sum256(c.Data)
		if known, err := present(txn, append([]byte("k"), c.Key...), digest[:16]); err != nil || known {
			return err
		}
		index := binary.LittleEndian.AppendUint64(nil, version)
		index = binary.LittleEndian.AppendUint32(index, uint32(off))
		if err := txn.Set(append([]byte("k"), c.Key...), append(index, digest[:16]...)); err != nil {
			return err
		}
	}
	return txn.Set(binary.BigEndian.AppendUint64([]byte("s"), first), bytes.Clone(flush.Packed()))
}

// present says whether the key is there with this digest.
func present(txn *engine.Txn, k, digest []byte) (bool, error) {
	item, err := txn.Get(k)
	if err == engine.ErrKeyNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v, err := item.ValueCopy(nil)
	return bytes.HasSuffix(v, digest), err
}

func dirBytes(tb testing.TB, dir string) (n int64) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".mem" || filepath.Ext(path) == ".vlog" {
			return nil // logs of fixed size; files may go while we look
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
