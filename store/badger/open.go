package badger

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Open opens the store in the data directory dir and creates what is missing. It returns *store.BusyError when another
// process has it open, store.ErrNoSpace when less than store.free_stop is free, and *store.DamageError when the engine
// cannot be opened. A store that opens but provably lost or changed commits is returned read-only: Damage gives the
// reason, and writes return store.ErrReadOnly.
func Open(dir string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	for _, d := range []string{dir, filepath.Join(dir, "db"), bulkPath(dir), filepath.Join(dir, "witness")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("make data directory: %w", err)
		}
	}
	for _, d := range []string{filepath.Join(dir, "db"), dir} { // so that new directories, too, survive a power cut
		if err := bulk.SyncDir(d); err != nil {
			return nil, fmt.Errorf("sync data directory: %w", err)
		}
	}
	if !opts.AllowNetworkFS {
		if err := checkFS(dir); err != nil {
			return nil, err
		}
	}
	lock, err := acquireLock(dir)
	if err != nil {
		return nil, err
	}
	s, err := openLocked(dir, opts)
	if err != nil {
		_ = releaseLock(lock)
		return nil, err
	}
	s.lock = lock
	return s, nil
}

// emptied is the name of an engine's directory that is being removed.
const emptied = "db.emptied"

// Empty deletes all content of the store in a data directory. If it is interrupted, the store still opens, with either
// all of the engine's content or none.
func Empty(dir string) (err error) {
	lock, err := acquireLock(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, releaseLock(lock)) }()
	for _, name := range []string{"witness", "files", "ballast", "unclean", emptied} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(dir, "db"), filepath.Join(dir, emptied)); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(dir, emptied)), bulk.SyncDir(dir))
}

// OpenMemory opens a store that exists only in memory.
func OpenMemory(opts Options) (*Store, error) {
	opts.bulkRoll = cmp.Or(opts.bulkRoll, bulkRollMemory)
	return openLocked("", opts.withDefaults())
}

func openLocked(dir string, opts Options) (*Store, error) {
	s := newStore(dir, opts)
	s.bulk = bulk.OpenDir("")
	if dir != "" {
		s.bulk = bulk.OpenDir(bulkPath(dir))
		if err := spacious(dir, opts); err != nil {
			return nil, err
		}
		for _, left := range []string{filepath.Join("db", "orders"), emptied} { // earlier versions kept keys in the first
			if err := os.RemoveAll(filepath.Join(dir, left)); err != nil {
				return nil, fmt.Errorf("remove old files: %w", err)
			}
		}
		private()
		var err error
		if s.unclean, err = markUnclean(dir); err != nil {
			return nil, err
		}
		if err := s.space.reserveBallast(); err != nil {
			return nil, err
		}
	}
	db, err := openEngine(engineDir(dir), opts, false)
	if err != nil {
		return nil, err
	}
	s.db = db
	t, err := s.examine()
	if err != nil {
		db.Close()
		return nil, err
	}
	s.start(t)
	return s, nil
}

// bulkPath returns the directory of the bulk files, which lies among the engine's files but is not used by the engine.
func bulkPath(dir string) string { return filepath.Join(dir, "db", "bulk") }

// examine verifies that the store is complete. If it is not, it records the damage, which makes the store read-only.
func (s *disk) examine() (bulk.Tail, error) {
	if s.dir != "" {
		s.damage = verifyTables(s.db)
	}
	if s.damage != nil {
		s.opts.Logger.Error(s.damage.Error())
	}
	if err := s.checkWitness(); err != nil {
		return bulk.Tail{}, err
	}
	r := s.reader(s.visible.commit)
	defer r.txn.Discard()
	t, err := s.loadBulk(r)
	var damage *store.DamageError
	if errors.As(err, &damage) {
		s.opts.Logger.Error(damage.Error())
		s.damage = damage
		return t, nil
	}
	if err != nil || s.damage != nil {
		return t, err
	}
	return t, s.dropOrphans(t)
}

// markUnclean creates the marker that Close removes and reports whether it existed already.
func markUnclean(dir string) (unclean bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "unclean"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("mark data directory: %w", err)
	}
	return false, f.Close()
}

// checkWitness compares the engine with the witness and takes the chain and the newest commit from the engine.
func (s *disk) checkWitness() error {
	r := s.reader(s.db.MaxVersion())
	d, err := r.chain()
	r.txn.Discard()
	if err != nil {
		return err
	}
	s.writer.chain, s.visible.commit = d, d.seq
	if s.dir == "" {
		return nil
	}
	dir := filepath.Join(s.dir, "witness")
	s.writer.witness = witness{dir: dir, roll: witnessRoll}
	t, err := readWitness(filepath.Join(dir, witnessName))
	if err != nil && !errors.Is(err, errWitnessBroken) {
		return err
	}
	verdict := compareWitness(d, t, err)
	if verdict.damage != nil {
		s.opts.Logger.Error(verdict.damage.Error())
		if !s.opts.AcceptLoss {
			s.damage = verdict.damage
		}
		verdict.rebuild = true
	}
	if s.damage != nil {
		return nil
	}
	if verdict.rebuild && d.seq > 0 {
		s.opts.Logger.Warn("store_witness_behind", "store", d.seq, "witness", t.last.seq)
	}
	return s.writer.witness.resume(d, t, verdict)
}

// A witnessVerdict is the result of comparing the engine with the witness: see docs/spec/security.md, "Embedded store".
type witnessVerdict struct {
	damage  *store.DamageError
	rebuild bool // rebuild the witness from the engine
	append  bool // append the one missing entry
}

func compareWitness(d chain, t witnessContent, err error) witnessVerdict {
	w := t.last
	switch {
	case err != nil:
		return witnessVerdict{damage: store.Corrupt("%v", err)}
	case !t.found:
		return witnessVerdict{rebuild: true}
	case d.seq < w.seq:
		return witnessVerdict{damage: &store.DamageError{
			Code: "store_truncated",
			Detail: fmt.Sprintf("%d acknowledged commits are gone: the store ends at %d, its witness at %d",
				w.seq-d.seq, d.seq, w.seq),
		}}
	case d.seq == w.seq && d.link != w.link:
		return witnessVerdict{damage: store.Corrupt("commit %d differs between the store and its witness", d.seq)}
	case d.seq == w.seq+1:
		return witnessVerdict{append: true}
	case d.seq > w.seq:
		return witnessVerdict{rebuild: true}
	}
	return witnessVerdict{}
}

// chain returns the head of the commit chain and checks that it belongs to the newest commit.
func (r reader) chain() (chain, error) {
	b, ok, err := r.get(key(kindChain))
	if err != nil || !ok {
		return chain{}, err
	}
	c, err := decodeChain(b)
	if err == nil && c.seq != r.ts {
		err = store.Corrupt("chain head is of commit %d, the newest write of %d", c.seq, r.ts)
	}
	return c, err
}
