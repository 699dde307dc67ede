//go:build unix

package badger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
	"github.com/sluicehost/sluice/tests/campaign"
)

// grow opens the store in dir, makes commits n from..to of connection "a", and
// closes it.
func grow(t *testing.T, dir string, from, to int) {
	t.Helper()
	s, err := badger.Open(dir, crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	commitAll(t, s, from, to)
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// commitAll makes commits n from..to of connection "a".
func commitAll(t *testing.T, s *badger.Store, from, to int) {
	t.Helper()
	l, err := s.Acquire(t.Context(), store.Run{ID: store.RunID(fmt.Sprintf("run_%026d", from)), ConnectionID: "a"}, "h",
		"b", 1e12)
	if err != nil {
		t.Fatal(err)
	}
	for n := from; n <= to; n++ {
		r, err := s.Submit(t.Context(), &store.Commit{
			Lease: l, Batches: []*store.Batch{crashBatch(n)}, End: n == to,
			Advance: []store.State{{Stream: "s", Cursor: fmt.Append(nil, n)}},
			Events:  []store.Event{{Type: "run.batch_ingested", RunID: l.RunID}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Result(); err != nil {
			t.Fatal(err)
		}
	}
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What engine and witness mean side by side, one case a subtest.
func TestSurgery(t *testing.T) {
	early, late, foreign := t.TempDir(), t.TempDir(), t.TempDir()
	grow(t, late, 1, 30)
	if err := os.CopyFS(early, os.DirFS(late)); err != nil {
		t.Fatal(err)
	}
	grow(t, late, 31, 60)
	grow(t, foreign, 1, 150) // upkeep commits too, so 60 need not be more than late has
	witness := func(dir string) string { return filepath.Join(dir, "witness", "commits.log") }
	const entry = 48
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		code   string // "" opens for writing
		detail string
	}{
		{"untouched", func(*testing.T, string) {}, "", ""},
		{"stopped between engine and witness", func(t *testing.T, dir string) {
			edit(t, witness(dir), func(b []byte) []byte { return b[:len(b)-entry] })
		}, "", ""},
		{"last entry torn", func(t *testing.T, dir string) {
			edit(t, witness(dir), func(b []byte) []byte { return b[:len(b)-10] })
		}, "", ""},
		{"witness cut", func(t *testing.T, dir string) {
			edit(t, witness(dir), func(b []byte) []byte { return b[:len(b)-10*entry] })
		}, "", ""},
		{"witness lost", func(t *testing.T, dir string) { os.Remove(witness(dir)) }, "", ""},
		{"stopped while the engine made its logs", func(t *testing.T, dir string) {
			for _, name := range []string{"000099.vlog", "00099.mem"} {
				if err := os.WriteFile(filepath.Join(dir, "db", name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}, "", ""},
		{"entry broken inside", func(t *testing.T, dir string) {
			edit(t, witness(dir), func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
		}, "store_corrupt", "entry"},
		{"store from the past", func(t *testing.T, dir string) {
			os.RemoveAll(filepath.Join(dir, "db"))
			if err := os.CopyFS(filepath.Join(dir, "db"), os.DirFS(filepath.Join(early, "db"))); err != nil {
				t.Fatal(err)
			}
		}, "store_truncated", "acknowledged commits are gone"},
		{"store lost", func(t *testing.T, dir string) { os.RemoveAll(filepath.Join(dir, "db")) }, "store_truncated", ""},
		{"witness of another store", func(t *testing.T, dir string) {
			b, err := os.ReadFile(witness(foreign))
			if err != nil {
				t.Fatal(err)
			}
			mine, err := os.ReadFile(witness(dir))
			if err != nil {
				t.Fatal(err)
			}
			if len(b) < len(mine) {
				t.Fatalf("the other store has %d bytes of witness, this one %d", len(b), len(mine))
			}
			edit(t, witness(dir), func([]byte) []byte { return b[:len(mine)] })
		}, "store_corrupt", "differs"},
		{"bulk file lost", func(t *testing.T, dir string) {
			files, _ := filepath.Glob(filepath.Join(dir, "db", "bulk", "*"))
			os.Remove(files[0])
		}, "store_corrupt", "bulk file"},
		{"bulk file cut", func(t *testing.T, dir string) {
			files, _ := filepath.Glob(filepath.Join(dir, "db", "bulk", "*"))
			edit(t, files[len(files)-1], func(b []byte) []byte { return b[:len(b)-1] })
		}, "store_corrupt", "bulk file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyDir(t, late)
			c.change(t, dir)
			s, err := badger.Open(dir, crashOptions)
			if err != nil {
				t.Fatal(err)
			}
			damage := s.Damage()
			if c.code == "" {
				if damage != nil {
					t.Fatal(damage)
				}
				w := &writer{t: t, s: s, model: crashModel(60)}
				w.compare("a")
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				grow(t, dir, 61, 65)
				return
			}
			defer s.Close()
			if damage == nil || damage.Code != c.code || !strings.Contains(damage.Detail, c.detail) {
				t.Fatalf("damage = %v, want %s %s", damage, c.code, c.detail)
			}
			readOnly(t, s)
		})
	}
}

// readOnly: nothing is written, reading goes on.
func readOnly(t *testing.T, s *badger.Store) {
	t.Helper()
	if err := s.PutConnection(t.Context(), store.Connection{ID: "x"}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("write: %v", err)
	}
	if _, err := s.Submit(t.Context(), &store.Commit{}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("submit: %v", err)
	}
	if _, err := s.Connections(t.Context()); err != nil {
		t.Errorf("read: %v", err)
	}
}

// With AcceptLoss a store that lost commits works on from what is left,
// and its cursors fit its records.
func TestAcceptLoss(t *testing.T) {
	dir := t.TempDir()
	grow(t, dir, 1, 20)
	past := copyDir(t, dir)
	grow(t, dir, 21, 40)
	os.RemoveAll(filepath.Join(dir, "db"))
	if err := os.CopyFS(filepath.Join(dir, "db"), os.DirFS(filepath.Join(past, "db"))); err != nil {
		t.Fatal(err)
	}
	opts := crashOptions
	opts.AcceptLoss = true
	s, err := badger.Open(dir, opts)
	if err != nil || s.Damage() != nil {
		t.Fatal(err, s.Damage())
	}
	states, err := s.States(t.Context(), "a", "")
	if err != nil || len(states) != 1 || string(states[0].Cursor) != "20" {
		t.Fatalf("states = %v, %v", states, err)
	}
	(&writer{t: t, s: s, model: crashModel(20)}).check2("a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	grow(t, dir, 21, 25)
}

// A witness that was lost is made anew, and no older part of it is taken for damage.
func TestWitnessLost(t *testing.T) {
	dir := t.TempDir()
	grow(t, dir, 1, 20)
	witness := filepath.Join(dir, "witness")
	if err := os.Rename(filepath.Join(witness, "commits.log"),
		filepath.Join(witness, fmt.Sprintf("commits.%020d.log", 20))); err != nil {
		t.Fatal(err)
	}
	s, err := badger.Open(dir, crashOptions)
	if err != nil || s.Damage() != nil {
		t.Fatal(err, s.Damage())
	}
	w := &writer{t: t, s: s, model: crashModel(20)}
	w.check2("a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	grow(t, dir, 21, 25)
	if err := os.Remove(filepath.Join(witness, "commits.log")); err != nil {
		t.Fatal(err)
	}
	if s, err = badger.Open(dir, crashOptions); err != nil || s.Damage() != nil {
		t.Fatal(err, s.Damage())
	}
	defer s.Close()
	(&writer{t: t, s: s, model: crashModel(25)}).check2("a")
}

func (w *writer) check2(c store.ConnectionID) {
	w.compare(c)
	if err := w.s.Verify(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// childInspect reads everything and prints what it found: "whole", or what is
// wrong. It ends with another code than 0 or 4 only when it crashes.
func childInspect(dir string) {
	report := func(err error) {
		var d *store.DamageError
		if !errors.As(err, &d) {
			fmt.Println("unclear:", err)
			os.Exit(5)
		}
		fmt.Println(d)
		os.Exit(4)
	}
	s, err := badger.Open(dir, crashOptions)
	if err != nil {
		report(err)
	}
	if s.Damage() != nil {
		report(s.Damage())
	}
	ctx := context.Background()
	q := store.RecordQuery{Connection: "a", Stream: "s", Deleted: true, Limit: 1000}
	model := crashModel(60)
	for {
		page, err := s.Records(ctx, q)
		if err != nil {
			report(err)
		}
		for _, r := range page.Records {
			q.After = r.Version
			if want, ok := model[r.Key]; !ok || want != string(r.Data) {
				fmt.Printf("WRONG %s\n", r.Key)
				os.Exit(6)
			}
			delete(model, r.Key)
		}
		if !page.More {
			break
		}
	}
	if len(model) != 0 {
		fmt.Printf("MISSING %d\n", len(model))
		os.Exit(6)
	}
	if err := s.Verify(ctx); err != nil {
		report(err)
	}
	fmt.Println("whole")
	os.Exit(0)
}

// A flipped bit is reported or harmless: data is never silently wrong or missing, and
// nothing crashes.
func TestBitFlips(t *testing.T) {
	c := campaign.New(t, "one bit flipped, the store")
	clean := t.TempDir()
	grow(t, clean, 1, 60)
	killed := leftOpen(t, 60)
	records := len(crashModel(60))
	for range c.Length(16, 5) {
		dir := clean
		if c.IntN(2) == 0 { // the engine's log holds everything
			dir = killed
		}
		file, at := anyByte(t, c, dir)
		copied := copyDir(t, dir)
		bit := byte(1) << c.IntN(8)
		edit(t, filepath.Join(copied, file), func(b []byte) []byte { b[at] ^= bit; return b })
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SLUICE_CHILD=inspect", "SLUICE_DIR="+copied)
		out, _ := cmd.CombinedOutput()
		c.Cycle()
		c.Checked(records)
		switch code := cmd.ProcessState.ExitCode(); code {
		case 0: // harmless
		case 4:
			c.Refused()
		default:
			c.Torn("bit %#x of byte %d of %s: exit %d\n%.2000s", bit, at, file, code, out)
		}
		os.RemoveAll(copied)
	}
}

// leftOpen is a store with commits 1 to n as a killed process leaves it.
func leftOpen(t *testing.T, n int) (dir string) {
	t.Helper()
	open := t.TempDir()
	grow(t, open, 1, n/2)
	s, err := badger.Open(open, crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	commitAll(t, s, n/2+1, n)
	dir = copyDir(t, open)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// anyByte is one of a store. Half of the time the file is chosen first, so that
// small ones get their share.
func anyByte(t *testing.T, c *campaign.Campaign, dir string) (file string, at int64) {
	t.Helper()
	var files []string
	var sizes []int64
	total := int64(0)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" || d.Name() == "lock" {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 {
			rel, _ := filepath.Rel(dir, path)
			files, sizes, total = append(files, rel), append(sizes, info.Size()), total+info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.IntN(2) == 0 {
		i := c.IntN(len(files))
		return files[i], c.Int64N(sizes[i])
	}
	at = c.Int64N(total)
	for i := range files {
		if file = files[i]; at < sizes[i] {
			break
		}
		at -= sizes[i]
	}
	return file, at
}
