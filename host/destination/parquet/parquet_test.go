package parquet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	pq "github.com/parquet-go/parquet-go"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/files"
	"github.com/sluicehost/sluice/host/destination/parquet"
)

var owner = destination.Owner{Host: "host-1", Destination: "d"}

func TestSuite(t *testing.T) { destinationtest.Run(t, place) }

func TestKill(t *testing.T) { destinationtest.Kill(t, place(t), destinationtest.Kills(15)) }

func place(t *testing.T) destinationtest.Place {
	dir := filepath.Join(t.TempDir(), "out")
	return destinationtest.Place{
		Kind: parquet.Kind, URL: "parquet:" + dir, File: destinationtest.FileIn(dir),
		Rows: func(t *testing.T, table string) []map[string]string { return read(t, filepath.Join(dir, table)) },
		Erase: func(t *testing.T) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
		Squat: func(t *testing.T, table string) {
			open(t, dir)
			if err := errors.Join(os.Mkdir(filepath.Join(dir, table), 0o700),
				os.WriteFile(filepath.Join(dir, table, "mine.parquet"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func open(t *testing.T, dir string) destination.Sink {
	t.Helper()
	s, err := parquet.Kind.Open(t.Context(), "parquet:"+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// read reads all files of a folder with the library alone, which have one schema.
func read(t *testing.T, folder string) (out []map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.parquet"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	schema := ""
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		fi, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		file, err := pq.OpenFile(f, fi.Size())
		if err != nil {
			t.Fatal(err)
		}
		if text := file.Schema().String(); schema == "" {
			schema = text
		} else if text != schema {
			t.Fatalf("two schemas:\n%s\n%s", schema, text)
		}
		for _, g := range file.RowGroups() {
			out = append(out, readGroup(t, g, file.Schema().Fields())...)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func readGroup(t *testing.T, g pq.RowGroup, fields []pq.Field) (out []map[string]string) {
	t.Helper()
	rows := g.Rows()
	defer rows.Close()
	buf := make([]pq.Row, 10)
	for {
		n, err := rows.ReadRows(buf)
		for _, r := range buf[:n] {
			row := map[string]string{}
			for i, v := range r {
				if !v.IsNull() {
					row[fields[i].Name()] = text(v, fields[i].Type().String())
				}
			}
			out = append(out, row)
		}
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func text(v pq.Value, kind string) string {
	if strings.HasPrefix(kind, "TIMESTAMP") {
		return files.Stamp(time.UnixMicro(v.Int64()))
	}
	if v.Kind() == pq.ByteArray {
		return string(v.ByteArray())
	}
	return v.String()
}

// The logical types are those that readers know.
func TestTypes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	shape := &destination.Shape{}
	values, _ := shape.Row([]byte(`{"z":1,"a":1.5,"t":"2026-01-02T03:04:05Z","j":{},"s":"x","b":true,"none":null}`), nil)
	b := &destination.Batch{ID: destination.StreamID{Connection: "c", Stream: "s"},
		To:   destination.Holding{Mode: destination.Current, Mark: 1, Shape: shape},
		Rows: []destination.Row{{Key: "k", Version: 1, At: time.Unix(1, 0), Values: values}}}
	if err := open(t, dir).Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "c_s", "*"))
	f, err := os.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, _ := f.Stat()
	file, err := pq.OpenFile(f, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	want := `message row {
	required binary _key (STRING);
	required int64 _version (INT(64,true));
	required int64 _committed_at (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int64 _deleted_at (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int64 z (INT(64,true));
	optional double a;
	optional int64 t (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional binary j (JSON);
	optional binary s (STRING);
	optional boolean b;
	optional binary none (STRING);
	optional binary _rest (JSON);
}`
	if diff := cmp.Diff(want, file.Schema().String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const childEnv, batches, perBatch = "SLUICE_TEST_CHILD_DIR", 40, 200

func TestMain(m *testing.M) {
	destinationtest.Child(parquet.Kind)
	if dir := os.Getenv(childEnv); dir != "" {
		if err := play(dir); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var id = destination.StreamID{Connection: "mail", Stream: "items"}

// play brings in all batches that are missing.
func play(dir string) error {
	sink, err := parquet.Kind.Open(context.Background(), "parquet:"+dir, owner)
	if err != nil {
		return err
	}
	all, shapes := scene()
	for {
		holdings, err := sink.Holdings(context.Background())
		if err != nil {
			return err
		}
		h, there := holdings[id]
		if h.Mark == batches {
			return sink.Close()
		}
		b := &destination.Batch{ID: id, Rows: all[h.Mark],
			To: destination.Holding{Mode: destination.Current, Mark: h.Mark + 1, Shape: shapes[h.Mark]}}
		if there {
			b.From = &h
		}
		if err := sink.Apply(context.Background(), b); err != nil {
			return err
		}
	}
}

func scene() (all [][]destination.Row, shapes []*destination.Shape) {
	r := rand.New(rand.NewPCG(3, 3)) // #nosec G404 -- a test
	shape, version := &destination.Shape{}, uint64(0)
	for n := range batches {
		var batch []destination.Row
		for _, k := range r.Perm(3 * perBatch)[:perBatch] {
			version++
			row := destination.Row{Key: fmt.Sprint("k", k), Version: version, At: time.Unix(0, 0), Deleted: r.IntN(5) == 0}
			if !row.Deleted {
				x := fmt.Sprint(version)
				if n > batches/2 {
					x = strconv.Quote(x)
				}
				row.Values, _ = shape.Row(fmt.Appendf(nil, `{"x":%s,"new%d":true}`, x, n/10), nil)
			}
			batch = append(batch, row)
		}
		all, shapes = append(all, batch), append(shapes, shape.Clone())
	}
	return all, shapes
}

// A host that is killed at any time leaves a table of all keys as they were after one of
// the batches, and the next one goes on.
func TestKilled(t *testing.T) {
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)) // #nosec G115 G404 -- a test
	all, _ := scene()
	kills := 0
	for kills < 60 {
		dir := filepath.Join(t.TempDir(), "out")
		for wait := 5 * time.Millisecond; ; wait *= 2 { // until it comes to its end
			cmd := exec.CommandContext(t.Context(), os.Args[0]) // #nosec G204 -- this binary
			cmd.Env = append(os.Environ(), childEnv+"="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(wait/2+time.Duration(r.Int64N(int64(wait)))+10*time.Millisecond,
				func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
			err := cmd.Wait()
			timer.Stop()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
				t.Fatal(err)
			}
			compare(t, dir, all)
			if err == nil {
				break
			}
			kills++
		}
	}
	t.Logf("killed %d times", kills)
}

func compare(t *testing.T, dir string, all [][]destination.Row) {
	t.Helper()
	sink, err := parquet.Kind.Open(t.Context(), "parquet:"+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	holdings, err := sink.Holdings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]uint64{}
	for _, batch := range all[:holdings[id].Mark] {
		for _, r := range batch {
			if now[r.Key] = r.Version; r.Deleted {
				delete(now, r.Key)
			}
		}
	}
	var want, got []string
	for key, version := range now {
		want = append(want, fmt.Sprintf("%s %d %d", key, version, version))
	}
	if holdings[id].Mark > 0 {
		for _, r := range read(t, filepath.Join(dir, "mail_items")) {
			got = append(got, fmt.Sprintf("%s %s %s", r["_key"], r["_version"], r["x"]))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("after %d batches (-want +got):\n%s", holdings[id].Mark, diff)
	}
}

// A damaged file is an error, whatever the library makes of it.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5)) // #nosec G404 -- a test
	all, shapes := scene()
	for n := range 100 {
		dir := filepath.Join(t.TempDir(), "out")
		sink := open(t, dir)
		b := &destination.Batch{ID: id, Rows: all[0],
			To: destination.Holding{Mode: destination.Current, Mark: 1, Shape: shapes[0]}}
		if err := sink.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		paths, _ := filepath.Glob(filepath.Join(dir, "mail_items", "*"))
		raw, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + n%5 {
			raw[r.IntN(len(raw))] ^= byte(1 + r.IntN(255)) // #nosec G115
		}
		if err := os.WriteFile(paths[0], raw, 0o600); err != nil {
			t.Fatal(err)
		}
		again := open(t, dir)
		from := b.To
		b = &destination.Batch{ID: id, Rows: all[1], From: &from,
			To: destination.Holding{Mode: destination.Current, Mark: 2, Shape: shapes[11]}}
		_ = again.Apply(t.Context(), b) // an error or not: a changed text is still one
	}
}
