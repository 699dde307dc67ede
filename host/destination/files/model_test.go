package files_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/files"
)

var owner = destination.Owner{Host: "host-1", Destination: "d"}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

var id = destination.StreamID{Connection: "mail", Stream: "items"}

// A scenario is the batches that a stream makes, the same each time.
type scenario struct {
	mode    destination.Mode
	batches [][]destination.Row
	shapes  []*destination.Shape
}

// scene makes n batches of random changes. Every third grows the shape, every fifth widens it.
func scene(mode destination.Mode, n, rows int) *scenario {
	r := rand.New(rand.NewPCG(7, 7)) // #nosec G404 -- a test
	s := &scenario{mode: mode}
	shape := &destination.Shape{}
	version := uint64(0)
	for i := range n {
		seen := map[string]bool{}
		var batch []destination.Row
		for range rows {
			version++
			key := fmt.Sprintf(`key "%d"`, r.IntN(rows*2))
			if seen[key] {
				continue
			}
			seen[key] = true
			row := destination.Row{Key: key, Version: version, At: time.UnixMicro(1_700_000_000_000_000 + int64(version)).UTC(), Deleted: r.IntN(4) == 0} // #nosec G115
			if !row.Deleted {
				row.Values, row.Rest = shape.Row([]byte(data(r, i)), nil)
			}
			batch = append(batch, row)
		}
		s.batches = append(s.batches, batch)
		s.shapes = append(s.shapes, shape.Clone())
	}
	return s
}

func data(r *rand.Rand, i int) string {
	text := fmt.Sprintf(`{"n":%d,"text":"it's, \"%d\"\n","list":[%d,null]`, r.IntN(1000), r.IntN(9), r.IntN(9))
	if i >= 3 {
		text += fmt.Sprintf(`,"new%d":%v`, i/3, r.IntN(2) == 0)
	}
	if i >= 5 {
		text = strings.Replace(text, `"list":[`, `"list":"some","more":[`, 1)
	}
	return text + "}"
}

// play brings in what is missing, and returns how many batches the directory then has.
func (s *scenario) play(ctx context.Context, sink destination.Sink, until int) (done int, err error) {
	for {
		holdings, err := sink.Holdings(ctx)
		if err != nil {
			return 0, err
		}
		h, there := holdings[id]
		if !there && until == 0 || there && int(h.Mark) >= until { // #nosec G115
			return int(h.Mark), nil // #nosec G115
		}
		b := s.batch(int(h.Mark), h, there) // #nosec G115
		if err := sink.Apply(ctx, b); err != nil {
			return int(h.Mark), err // #nosec G115
		}
	}
}

// batch is the one after mark batches.
func (s *scenario) batch(mark int, h destination.Holding, there bool) *destination.Batch {
	b := &destination.Batch{ID: id, Rows: slices.Clone(s.batches[mark]), To: destination.Holding{Mode: s.mode, Mark: uint64(mark) + 1, Shape: s.shapes[mark]}} // #nosec G115
	if there {
		b.From = &h
	}
	return b
}

// want is what a table has after so many batches: of each row the version, when it was
// deleted or ended, and one value.
func (s *scenario) want(batches int) []string {
	type live struct {
		version  uint64
		from, to string
		n        string
	}
	now := map[string]*live{}
	var out []string
	line := func(key string, l *live) {
		out = append(out, fmt.Sprintf("%s %d %s %s %s", key, l.version, l.from, l.to, l.n))
	}
	for _, batch := range s.batches[:batches] {
		for _, r := range batch {
			at, was := files.Stamp(r.At), now[r.Key]
			switch {
			case s.mode == destination.History:
				if was != nil {
					was.to = at
					line(r.Key, was)
				}
				delete(now, r.Key)
				if !r.Deleted {
					now[r.Key] = &live{r.Version, at, "", r.Values[0].Text}
				}
			case !r.Deleted:
				now[r.Key] = &live{r.Version, at, "", r.Values[0].Text}
			case s.mode == destination.Current:
				delete(now, r.Key)
			case was == nil:
				now[r.Key] = &live{r.Version, at, at, ""}
			default:
				was.version, was.from, was.to = r.Version, at, at
			}
		}
	}
	for key, l := range now {
		line(key, l)
	}
	return slices.Sorted(slices.Values(out))
}

func got(rows []map[string]string) []string {
	var out []string
	for _, r := range rows {
		to := r["_deleted_at"] + r["_valid_to"]
		out = append(out, fmt.Sprintf("%s %s %s %s %s", r["_key"], r["_version"], r["_committed_at"], to, r["n"]))
	}
	return slices.Sorted(slices.Values(out))
}

// leftovers are files that the manifest does not name.
func leftovers(t *testing.T, dir string) (out []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "_sluice_manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), "_sluice") && !bytes.Contains(raw, []byte(d.Name())) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// childEnv has the test binary be a host that is killed at one point.
const childEnv = "SLUICE_TEST_KILL_AT"

func TestMain(m *testing.M) {
	destinationtest.Child(files.JSONL, files.CSV)
	if at := os.Getenv(childEnv); at != "" {
		child(at)
	}
	os.Exit(m.Run())
}

// child plays a scenario in a directory and kills itself at a point: "kind mode point dir".
func child(at string) {
	part := strings.SplitN(at, " ", 4)
	last, err := strconv.Atoi(part[2])
	if err != nil {
		panic(err)
	}
	points := 0
	files.SetHook(func(string) error {
		if points++; points == last {
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Kill()
			}
			select {}
		}
		return nil
	})
	k := files.JSONL
	if part[0] == "csv" {
		k = files.CSV
	}
	sink, err := k.Open(context.Background(), k.Scheme()+part[3], owner)
	if err == nil {
		_, err = scene(destination.Mode(part[1]), killBatches, 30).play(context.Background(), sink, killBatches)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	os.Exit(0)
}

const killBatches = 9

// A host that is killed between any two things that it does to the disk leaves what it had
// before or after a step, and the next one goes on.
func TestKilled(t *testing.T) {
	for _, k := range kinds {
		for _, mode := range destination.Modes {
			t.Run(k.Format.Name()+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				kills := 0
				for point := 1; ; point += 3 {
					dir := filepath.Join(t.TempDir(), "out")
					if !killedAt(t, k.Kind, mode, point, dir) {
						break
					}
					kills++
					goesOn(t, k.Kind, k.rows, mode, dir, point)
				}
				if t.Logf("killed %d times", kills); kills < 15 {
					t.Errorf("that is too few")
				}
			})
		}
	}
}

// killedAt reports whether a child was killed, rather than at its end before.
func killedAt(t *testing.T, k files.Kind, mode destination.Mode, point int, dir string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0]) // #nosec G204 -- this binary
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %s", childEnv, k.Format.Name(), mode, point, dir))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.ExitCode() == -1:
		return true
	}
	t.Fatalf("%v: %s", err, out)
	return false
}

func goesOn(t *testing.T, k files.Kind, read func(*testing.T, []byte) []map[string]string, mode destination.Mode,
	dir string, point int) {
	t.Helper()
	s := scene(mode, killBatches, 30)
	sink, err := k.Open(t.Context(), k.Scheme()+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	for _, until := range []int{0, killBatches} {
		done, err := s.play(t.Context(), sink, until)
		if err != nil {
			t.Fatalf("after point %d: %v", point, err)
		}
		if diff := cmp.Diff(s.want(done), got(readTable(t, dir, "mail_items", read))); diff != "" {
			t.Fatalf("killed at point %d, after %d batches (-want +got):\n%s", point, done, diff)
		}
		if left := leftovers(t, dir); len(left) > 0 {
			t.Fatalf("killed at point %d, left over: %v", point, left)
		}
	}
}

// A disk that fails at any point leaves what was there, in the same process too, and says so.
func TestFullDisk(t *testing.T) {
	for _, k := range kinds {
		for _, mode := range destination.Modes {
			t.Run(k.Format.Name()+"/"+string(mode), func(t *testing.T) { fullDisk(t, k.Kind, k.rows, mode) })
		}
	}
}

func fullDisk(t *testing.T, k files.Kind, read func(*testing.T, []byte) []map[string]string, mode destination.Mode) {
	defer files.Unhook()
	dir := filepath.Join(t.TempDir(), "out")
	sink, err := k.Open(t.Context(), k.Scheme()+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	s := scene(mode, 20, 30)
	failures := 0
	for fail := 1; ; fail++ { // one more point each time
		points := 0
		files.SetHook(func(string) error {
			if points++; points == fail%11+1 {
				failures++
				return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
			}
			return nil
		})
		holdings, err := sink.Holdings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h, there := holdings[id]
		if int(h.Mark) == len(s.batches) { // #nosec G115
			break
		}
		if err := sink.Apply(t.Context(), s.batch(int(h.Mark), h, there)); err != nil && !strings.HasPrefix(err.Error(), "the disk is full") { // #nosec G115
			t.Fatalf("a full disk says: %v", err)
		}
		files.Unhook()
		if err := sink.Describe(t.Context(), nil); err != nil { // any step settles
			t.Fatal(err)
		}
		holdings, _ = sink.Holdings(t.Context())
		if diff := cmp.Diff(s.want(int(holdings[id].Mark)), got(readTable(t, dir, "mail_items", read))); diff != "" { // #nosec G115
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if left := leftovers(t, dir); len(left) > 0 {
			t.Fatalf("left over: %v", left)
		}
	}
	if failures < 20 {
		t.Errorf("failed %d times only", failures)
	}
}

// Many steps leave few files, and a step of few changes rewrites few rows.
func TestParts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	sink, err := files.JSONL.Open(t.Context(), "jsonl:"+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	shape, mark := &destination.Shape{}, uint64(0)
	var have *destination.Holding
	step := func(keys ...int) {
		t.Helper()
		b := &destination.Batch{ID: id, From: have, To: destination.Holding{Mode: destination.Current}}
		for _, key := range keys {
			mark++
			r := destination.Row{Key: fmt.Sprint(key), Version: mark, At: time.Unix(0, 0)}
			r.Values, _ = shape.Row([]byte(`{"x":1}`), nil)
			b.Rows = append(b.Rows, r)
		}
		b.To.Mark, b.To.Shape = mark, shape.Clone()
		if err := sink.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		have = &b.To
	}
	key := 0
	more := func(n int) (keys []int) {
		for range n {
			keys = append(keys, key)
			key++
		}
		return keys
	}
	for range 100 {
		step(more(10)...)
	}
	if n := len(names(t, filepath.Join(dir, "mail_items"))); n > 10 {
		t.Errorf("%d files of 1,000 rows", n)
	}
	for range 70 {
		step(more(10_000)...)
	}
	parts := names(t, filepath.Join(dir, "mail_items"))
	if len(parts) > 64 {
		t.Errorf("%d files", len(parts))
	}
	step(5, 500_000)
	after := names(t, filepath.Join(dir, "mail_items"))
	stay := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return !slices.Contains(after, p) })
	if len(parts)-len(stay) > 2 {
		t.Errorf("two changes rewrote %d of %d files", len(parts)-len(stay), len(parts))
	}
	rows := map[string]string{}
	count := 0
	for _, r := range readTable(t, dir, "mail_items", readJSONL) {
		rows[r["_key"]] = r["_version"]
		count++
	}
	if count != key || len(rows) != key || rows["5"] != fmt.Sprint(mark-1) || rows["500000"] != fmt.Sprint(mark) {
		t.Errorf("%d rows of %d keys, want %d", count, len(rows), key)
	}
	var m struct {
		Tables []struct{ Parts []struct{ Rows int } }
	}
	raw, err := os.ReadFile(filepath.Join(dir, "_sluice_manifest.json"))
	if err != nil || json.Unmarshal(raw, &m) != nil {
		t.Fatal(err)
	}
	total := 0
	for _, p := range m.Tables[0].Parts {
		total += p.Rows
		if p.Rows > 250_000 {
			t.Errorf("a file of %d rows", p.Rows)
		}
	}
	if total != key {
		t.Errorf("the manifest counts %d rows, want %d", total, key)
	}
}

// A stream that is cleared leaves nothing, and what somebody put into its folder.
func TestClear(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	sink, err := files.CSV.Open(t.Context(), "csv:"+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	s := scene(destination.Current, 2, 10)
	if _, err := s.play(t.Context(), sink, 2); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "mail_items", "notes.txt")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sink.Clear(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Join(dir, "mail_items")); !slices.Equal(got, []string{"notes.txt"}) {
		t.Errorf("left: %v", got)
	}
	if _, err := s.play(t.Context(), sink, 1); !errors.Is(err, destination.ErrForeign) {
		t.Errorf("beside a file of somebody's: %v", err)
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	if _, err := s.play(t.Context(), sink, 1); err != nil {
		t.Fatal(err)
	}
	if err := sink.Clear(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); slices.Contains(got, "mail_items") {
		t.Errorf("left: %v", got)
	}
}

// A part that is not as it was written is an error that says what mends it, and Clear is it.
func TestDamage(t *testing.T) {
	for _, do := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.Truncate(path, 10) },
		func(path string) error { return os.WriteFile(path, []byte("x\n"), 0o600) },
	} {
		dir := filepath.Join(t.TempDir(), "out")
		s := scene(destination.Current, 2, 10)
		for _, until := range []int{1, 2} {
			sink, err := files.JSONL.Open(t.Context(), "jsonl:"+dir, owner)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.play(t.Context(), sink, until)
			if until == 2 && (err == nil || !strings.Contains(err.Error(), "rebuild")) {
				t.Errorf("%v", err)
			}
			if until == 2 {
				if err := sink.Clear(t.Context(), id); err != nil {
					t.Error(err)
				}
				if done, err := s.play(t.Context(), sink, 2); err != nil || done != 2 {
					t.Errorf("after Clear: %d %v", done, err)
				}
			} else if err := do(filepath.Join(dir, "mail_items", names(t, filepath.Join(dir, "mail_items"))[0])); err != nil {
				t.Fatal(err)
			}
			if err := sink.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
