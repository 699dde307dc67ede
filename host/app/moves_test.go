//go:build unix

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
	"github.com/sluicehost/sluice/store/storetest"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/postgres"
)

// moves makes this binary do a Move, which is in the variable as JSON.
const moves = "SLUICE_TEST_MOVES"

func init() { children[moves] = move }

// A Move is what moves a whole store: a copy, a backup or a restore.
type Move struct {
	Do       string // copy, backup or restore
	From, To string // stores, or the file of a backup
	KillAt   int    // number of the step at which the process kills itself; 0 for never
}

// move does a move, and prints the names of its steps.
func move(text string) int {
	var m Move
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return 2
	}
	step := func(point string) error {
		fmt.Println(point)
		if m.KillAt--; m.KillAt == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	app.SetFault(step)
	if err := m.do(context.Background(), func(p store.CopyProgress) { _ = step("told " + string(p.Stage)) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (m Move) do(ctx context.Context, tell func(store.CopyProgress)) error {
	switch m.Do {
	case "copy":
		_, err := app.CopyStore(ctx, app.CopyOptions{From: m.From, To: m.To, Tell: tell})
		return err
	case "restore":
		_, err := app.Restore(ctx, m.To, app.RestoreOptions{File: m.From})
		return err
	}
	h, err := app.Open(ctx, app.Options{Store: m.From, NoSandbox: true, Prespawn: -1})
	if err != nil {
		return err
	}
	_, err = h.Backup(ctx, host.NewBackup{Plain: true, Out: m.To})
	return errors.Join(err, h.Close())
}

// child starts the process of a move.
func (m Move) child(t *testing.T) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	cmd, out = exec.Command(os.Args[0]), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), moves+"="+string(text))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// finish does the move again until it is done, or was before. A server notices only after a while that a process was
// killed.
func (m Move) finish(t *testing.T) {
	t.Helper()
	m.KillAt = 0
	var busy *store.BusyError
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := m.do(t.Context(), func(store.CopyProgress) {})
		if err == nil || errors.Is(err, app.ErrCopyChoice) || errors.Is(err, backup.ErrNotEmpty) {
			return
		}
		if !errors.As(err, &busy) || time.Now().After(deadline) {
			t.Fatalf("%+v repeated: %v", m, err)
		}
	}
}

// A moved is a store of each kind with something of everything in it, and what that is.
type moved struct {
	t      *testing.T
	stores map[string]string // by kind
	backup map[string]string // files, by kind
	source map[string]string // of each backup
	empty  []byte            // items of an empty store
}

func newMoved(t *testing.T) *moved {
	t.Helper()
	dir := t.TempDir()
	w := &moved{t: t, stores: map[string]string{}, backup: map[string]string{}, source: map[string]string{}}
	w.stores["badger"] = "badger:" + filepath.Join(dir, "badger")
	w.stores["postgres"] = w.place("postgres")
	s := w.open(w.stores["badger"])
	storetest.Populate(t, s)
	w.empty = w.itemsIn("memory:", nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(filepath.Join(dir, "badger"))
	if err == nil {
		err = v.Set("a", "token", []byte("the token"))
	}
	if err != nil {
		t.Fatal(err)
	}
	Move{Do: "copy", From: w.stores["badger"], To: w.stores["postgres"]}.finish(t)
	for kind, s := range w.stores {
		w.backup[kind] = filepath.Join(dir, kind+".tar")
		w.source[w.backup[kind]] = s
		Move{Do: "backup", From: s, To: w.backup[kind]}.finish(t)
	}
	return w
}

// place returns the address of an empty store.
func (w *moved) place(kind string) string {
	dir := filepath.Join(w.t.TempDir(), "data")
	if kind == "badger" {
		return "badger:" + dir
	}
	return postgres.New(w.t) + "&durability=weak&data=" + dir
}

type imaged interface {
	store.Store
	store.Imager
}

func (w *moved) open(url string) imaged {
	w.t.Helper()
	url, _, _ = strings.Cut(url, "&data=")
	s, err := drivers.Open(url, drivers.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return s.(imaged)
}

// itemsOf returns the items of a store, of some kinds unless that is nil. They have the contents of all files.
func (w *moved) itemsOf(s imaged, kinds []store.ItemKind) []byte {
	w.t.Helper()
	image, err := s.Image(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	defer image.Close()
	var b bytes.Buffer
	if kinds == nil {
		err = store.WriteItems(w.t.Context(), &b, image)
	}
	for _, kind := range kinds {
		err = errors.Join(err, image.Items(w.t.Context(), kind, nil, func(i store.Item) error {
			fmt.Fprintf(&b, "%s %x %x\n", kind, i.Key, i.Value)
			return nil
		}))
	}
	if err := errors.Join(err, s.Verify(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
	return b.Bytes()
}

func (w *moved) itemsIn(url string, kinds []store.ItemKind) []byte {
	w.t.Helper()
	s := w.open(url)
	defer s.Close()
	return w.itemsOf(s, kinds)
}

// restored are the kinds of items that a restore changes nothing of.
var restored = []store.ItemKind{store.RunItem, store.EventItem, store.StreamItem, store.RecordItem,
	store.FileItem, store.PieceItem}

func dirOf(t *testing.T, url string) string {
	t.Helper()
	a, err := drivers.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return a.Dir
}

// struck looks at what a killed move left: nothing of it is taken for a whole store.
func (w *moved) struck(c *campaign.Campaign, m Move) {
	w.t.Helper()
	switch m.Do {
	case "backup":
		if _, err := os.Stat(m.To); err == nil { // it was finished
			w.source[m.To] = m.From
			w.whole(c, Move{Do: "restore", From: m.To, To: w.place("badger")})
			if err := os.Remove(m.To); err != nil {
				w.t.Fatal(err)
			}
		}
	case "restore":
		for _, dir := range []string{dirOf(w.t, m.To), dirOf(w.t, m.To) + ".restoring"} {
			if _, err := os.Stat(filepath.Join(dir, "db")); err != nil {
				continue
			}
			h, err := app.Open(w.t.Context(), app.Options{Store: "badger:" + dir, NoSandbox: true, Prespawn: -1})
			if err == nil {
				if err := h.Close(); err != nil {
					w.t.Error(err)
				}
				if backup.Begun(dirOf(w.t, m.To)) {
					c.Torn("a restore that was not finished is opened as a store")
				}
			} else if !errors.Is(err, backup.ErrUnfinished) ||
				!strings.Contains(err.Error(), "give the same sluice restore again") {
				c.Torn("%s is refused with: %v", dir, err)
			}
		}
	case "copy":
		s := w.open(m.To)
		defer s.Close()
		if _, err := s.Document(w.t.Context(), store.Copying, store.CopyNote); !errors.Is(err, store.ErrNotFound) {
			return // the store is refused
		}
		if got := w.itemsOf(s, nil); !bytes.Equal(got, w.empty) && !bytes.Equal(got, w.itemsIn(m.From, nil)) {
			c.Torn("a copy that was not finished, with %d bytes of items, is not marked", len(got))
		}
	}
}

// whole finishes a move and checks that everything is there.
func (w *moved) whole(c *campaign.Campaign, m Move) {
	w.t.Helper()
	if m.Do == "backup" {
		if err := os.Remove(m.To); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
	m.finish(w.t)
	if m.Do == "backup" {
		dir := filepath.Join(filepath.Dir(m.To), "data")
		if err := os.RemoveAll(dir); err != nil {
			w.t.Fatal(err)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(m.To), ".tmp-*"))
		if err != nil || !slices.Equal(left, foreign(m.To)) {
			c.Torn("beside the backup there is %v, want %v", left, foreign(m.To))
		}
		if left, _ := filepath.Glob(filepath.Join(backup.Dir(dirOf(w.t, m.From)), ".tmp-*")); len(left) > 0 {
			c.Torn("in the directory of backups there is %v", left)
		}
		w.source[m.To] = m.From
		m = Move{Do: "restore", From: m.To, To: "badger:" + dir}
		m.finish(w.t)
	}
	kinds, dir, source := restored, dirOf(w.t, m.To), m.From
	if m.Do == "copy" {
		kinds = nil
	}
	if m.Do == "restore" {
		source = w.source[m.From]
	}
	if got, want := w.itemsIn(m.To, kinds), w.itemsIn(source, kinds); !bytes.Equal(got, want) {
		c.Lost(1, "%+v: there are %d bytes of items, want %d", m, len(got), len(want))
	}
	if sealed, err := os.ReadFile(filepath.Join(dir, "vault", "a", "token.age")); err != nil || len(sealed) == 0 {
		c.Lost(1, "the secret: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*.restoring"))
	for _, name := range []string{"copying", "restoring", "db.handed-over", "db.emptied"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		c.Torn("%+v left %v", m, left)
	}
	c.Checked(1)
	h, err := app.Open(w.t.Context(), app.Options{Store: m.To, NoSandbox: true, Prespawn: -1})
	if err == nil {
		err = h.Close()
	}
	if err != nil {
		c.Torn("%+v cannot be opened: %v", m, err)
	}
}

// foreign are files beside a backup that look like those of an interrupted one, and are not of this host.
func foreign(file string) []string {
	return []string{filepath.Join(filepath.Dir(file), ".tmp-host_1111111111111111-1"),
		filepath.Join(filepath.Dir(file), ".tmp-mine")}
}

// A route is what a move does, from and to which kind of store.
type route struct{ do, from, to string }

func routes() (out []route) {
	kinds := []string{"badger", "postgres"}
	for _, from := range kinds {
		out = append(out, route{"backup", from, "file"})
		for _, to := range kinds {
			out = append(out, route{"copy", from, to}, route{"restore", from, to})
		}
	}
	return out
}

// begin returns a move to a place that is empty.
func (w *moved) begin(r route) Move {
	w.t.Helper()
	switch r.do {
	case "copy":
		return Move{Do: r.do, From: w.stores[r.from], To: w.place(r.to)}
	case "restore":
		return Move{Do: r.do, From: w.backup[r.from], To: w.place(r.to)}
	}
	file := filepath.Join(w.t.TempDir(), "b.tar")
	for _, path := range foreign(file) {
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return Move{Do: r.do, From: w.stores[r.from], To: file}
}

// kill does a move that is killed at a step, or after a while if that is not 0. It reports whether the move was killed,
// and which steps there were.
func (w *moved) kill(m Move, after time.Duration) (killed bool, steps []string) {
	w.t.Helper()
	cmd, out := m.child(w.t)
	if after > 0 {
		late := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
	}
	err := cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() && status.ExitStatus() != 0 && !strings.Contains(out.String(), "in use") {
		w.t.Fatalf("%+v ended by itself: %v\n%s", m, err, out)
	}
	return err != nil, strings.Split(strings.TrimSpace(out.String()), "\n")
}

// round kills a move at some steps or moments in a row, then finishes it.
func (w *moved) round(c *campaign.Campaign, m Move, next func(*Move) (after time.Duration), times int) {
	w.t.Helper()
	for range times {
		after := next(&m)
		killed, steps := w.kill(m, after)
		if !killed {
			break
		}
		c.Cycle()
		w.t.Logf("%s from %.60s to %.60s killed after %s", m.Do, m.From, m.To, steps[len(steps)-1])
		w.struck(c, m)
	}
	w.whole(c, m)
}

// TestKillMoves kills backups, restores and copies of stores with files, at their steps and at any time, once or
// several times in a row. What is left is never taken for a whole store, the same command finishes it, and everything
// is there.
func TestKillMoves(t *testing.T) {
	c := campaign.New(t, "kill -9, backups, restores and copies")
	w := newMoved(t)
	all := routes()
	if campaign.Soak() {
		for _, r := range all {
			w.everyStep(c, r)
		}
	}
	for range c.Length(4, 1) {
		w.round(c, w.begin(all[c.IntN(len(all))]), func(m *Move) time.Duration {
			if m.KillAt = c.IntN(12); m.KillAt > 0 {
				return 0
			}
			return time.Duration(20+c.IntN(800)) * time.Millisecond
		}, 1+c.IntN(2))
	}
}

// everyStep kills a route's move at each of its steps, but of a copy's progress only at some.
func (w *moved) everyStep(c *campaign.Campaign, r route) {
	w.t.Helper()
	killed, steps := w.kill(w.begin(r), 0)
	if killed {
		w.t.Fatal("killed without being asked to")
	}
	told := 0
	for i, step := range steps {
		if strings.HasPrefix(step, "told") {
			if told++; told%7 != 1 {
				continue
			}
		}
		w.round(c, w.begin(r), func(m *Move) time.Duration { m.KillAt = i + 1; return 0 }, 1)
	}
}
