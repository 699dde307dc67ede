package badger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/store/badger/bulk"

	"github.com/sluicehost/sluice/store"
)

// The witness proves that no acknowledged commit is missing from the engine. It is kept outside the engine's directory
// and has one entry per commit:
//
//	sequence u64  check u64  link [32]byte                    little-endian
//
// link is that of the chain. check is the start of SHA-256 over the previous link, the sequence and the link, so that a
// damaged entry is detected by itself. A file is rolled at witnessRoll bytes. The first entry of a file repeats the
// last one of the file before.
const (
	witnessEntry = 48
	witnessRoll  = 64 << 20
	witnessKeep  = 4 // rolled files kept
	witnessName  = "commits.log"
)

type witness struct {
	dir  string
	roll int64
	f    *os.File // nil in memory
	size int64
	mu   sync.Mutex // held while files are renamed or read
}

// append writes and syncs the entry of next, whose predecessor is last.
func (w *witness) append(next, last chain) error {
	if w.f == nil {
		return nil
	}
	if w.size >= w.roll {
		if err := w.rotate(last); err != nil {
			return fmt.Errorf("roll witness: %w", err)
		}
	}
	if _, err := w.f.WriteAt(witnessLine(next, last.link), w.size); err != nil {
		return fmt.Errorf("append witness: %w", err)
	}
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("sync witness: %w", err)
	}
	w.size += witnessEntry
	return nil
}

func witnessLine(c chain, prev [sha256.Size]byte) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, witnessEntry), c.seq)
	b = binary.LittleEndian.AppendUint64(b, entryCheck(c, prev))
	return append(b, c.link[:]...)
}

func entryCheck(c chain, prev [sha256.Size]byte) uint64 {
	b := append(make([]byte, 0, 72), prev[:]...)
	b = binary.LittleEndian.AppendUint64(b, c.seq)
	b = append(b, c.link[:]...)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// rotate starts a new file whose first entry is last. The old one is named after the last sequence in it.
func (w *witness) rotate(last chain) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := filepath.Join(w.dir, witnessName)
	if err := os.Rename(old, filepath.Join(w.dir, fmt.Sprintf("commits.%020d.log", last.seq))); err != nil {
		return err
	}
	w.f.Close()
	if err := w.create(last); err != nil {
		return err
	}
	names, err := rolled(w.dir)
	if err != nil {
		return err
	}
	for len(names) > witnessKeep {
		if err := os.Remove(filepath.Join(w.dir, names[0])); err != nil {
			return err
		}
		names = names[1:]
	}
	return nil
}

// create makes a new file whose first entry is c, with itself as predecessor.
func (w *witness) create(c chain) error {
	f, err := os.OpenFile(filepath.Join(w.dir, witnessName+".new"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(witnessLine(c, c.link))
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(w.dir, witnessName))
	}
	if err == nil {
		err = bulk.SyncDir(w.dir)
	}
	if err != nil {
		f.Close()
		return err
	}
	w.f, w.size = f, witnessEntry
	return nil
}

// resume opens the witness for appending. t is its content, d the head of the store's chain.
func (w *witness) resume(d chain, t witnessContent, v witnessVerdict) error {
	if v.rebuild {
		if err := w.forget(); err != nil {
			return err
		}
		return w.create(d)
	}
	f, err := os.OpenFile(filepath.Join(w.dir, witnessName), os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open witness: %w", err)
	}
	w.f, w.size = f, t.size
	if err := f.Truncate(t.size); err != nil { // removes a torn entry
		return fmt.Errorf("trim witness: %w", err)
	}
	if v.append {
		return w.append(d, t.last)
	}
	return nil
}

// forget removes the rolled files, which a rebuilt witness does not continue.
func (w *witness) forget() error {
	names, err := rolled(w.dir)
	if err != nil {
		return fmt.Errorf("rebuild witness: %w", err)
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
			return fmt.Errorf("rebuild witness: %w", err)
		}
	}
	return nil
}

// verify reads all witness files. Each must continue the one before, and the last must contain the head of the chain.
func (w *witness) verify(head chain) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, err := rolled(w.dir)
	if err != nil {
		return err
	}
	var last chain
	for _, name := range append(names, witnessName) {
		t, err := readWitness(filepath.Join(w.dir, name))
		if errors.Is(err, errWitnessBroken) {
			return store.Corrupt("%s: %v", name, err)
		}
		if err != nil {
			return err
		}
		if last != (chain{}) && t.first != last {
			return store.Corrupt("%s does not continue the file before", name)
		}
		last = t.last
	}
	if last.seq < head.seq {
		return store.Corrupt("the witness ends at %d, the store at %d", last.seq, head.seq)
	}
	if last.seq == head.seq && last.link != head.link {
		return store.Corrupt("commit %d differs between the store and its witness", head.seq)
	}
	return nil
}

func rolled(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range all {
		middle, ok := strings.CutPrefix(e.Name(), "commits.")
		middle, ok2 := strings.CutSuffix(middle, ".log")
		if _, err := strconv.ParseUint(middle, 10, 64); ok && ok2 && err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// errWitnessBroken reports damage to an entry other than the last.
var errWitnessBroken = errors.New("witness entry broken")

// A witnessContent is a summary of a witness file.
type witnessContent struct {
	first, last chain
	found       bool  // at least one whole entry
	size        int64 // of complete entries
}

// readWitness reads one file.
func readWitness(path string) (witnessContent, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return witnessContent{}, nil
	}
	if err != nil {
		return witnessContent{}, fmt.Errorf("read witness: %w", err)
	}
	return parseWitness(data)
}

// parseWitness decodes entries. It ignores a torn last entry and returns errWitnessBroken for an earlier damaged one.
func parseWitness(data []byte) (witnessContent, error) {
	var t witnessContent
	for off := 0; off+witnessEntry <= len(data); off += witnessEntry {
		e := data[off : off+witnessEntry]
		c := chain{seq: binary.LittleEndian.Uint64(e), link: [sha256.Size]byte(e[16:])}
		prev := t.last.link
		if !t.found {
			prev = c.link
		}
		sound := binary.LittleEndian.Uint64(e[8:]) == entryCheck(c, prev) && (!t.found || c.seq == t.last.seq+1)
		if !sound {
			if off+2*witnessEntry > len(data) && t.found {
				return t, nil // torn
			}
			return t, fmt.Errorf("%w: entry %d", errWitnessBroken, off/witnessEntry)
		}
		if !t.found {
			t.first, t.found = c, true
		}
		t.last, t.size = c, int64(off+witnessEntry)
	}
	return t, nil
}
