package files_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/files"
	"github.com/sluicehost/sluice/host/export"
)

// A format is a kind, and how its files are read.
type format struct {
	files.Kind
	rows func(t *testing.T, file []byte) []map[string]string
	text func(string) string
}

var kinds = []format{
	{files.JSONL, readJSONL, nil},
	{files.CSV, readCSV, export.Cell},
}

func TestSuite(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.Format.Name(), func(t *testing.T) {
			destinationtest.Run(t, k.place)
		})
	}
}

func TestKill(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.Format.Name(), func(t *testing.T) { destinationtest.Kill(t, k.place(t), destinationtest.Kills(15)) })
	}
}

func (k format) place(t *testing.T) destinationtest.Place {
	dir := filepath.Join(t.TempDir(), "out")
	return destinationtest.Place{Kind: k, URL: k.Scheme() + dir, Text: k.text, Squat: squat(k, dir), Erase: erase(dir),
		File: destinationtest.FileIn(dir),
		Rows: func(t *testing.T, table string) []map[string]string { return readTable(t, dir, table, k.rows) }}
}

// squat puts somebody's file where a table is to be.
func squat(k destination.Kind, dir string) func(t *testing.T, table string) {
	return func(t *testing.T, table string) {
		s, err := k.Open(t.Context(), k.Scheme()+dir, destination.Owner{Host: "host-1", Destination: "d"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, table), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, table, "mine.csv"), []byte("mine\n1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func erase(dir string) func(t *testing.T) {
	return func(t *testing.T) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// readTable reads all files of a table as somebody would who knows of no manifest.
func readTable(t *testing.T, dir, table string,
	read func(*testing.T, []byte) []map[string]string) (out []map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, table, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, read(t, file)...)
	}
	return out
}

func readJSONL(t *testing.T, file []byte) (out []map[string]string) {
	t.Helper()
	for line := range bytes.Lines(file) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(line, &members); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		row := map[string]string{}
		for name, value := range members {
			row[name] = string(value)
			var text string
			if json.Unmarshal(value, &text) == nil {
				row[name] = text
			}
		}
		out = append(out, row)
	}
	return out
}

func readCSV(t *testing.T, file []byte) (out []map[string]string) {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range rows[1:] {
		row := map[string]string{}
		for i, cell := range cells {
			if cell != "" {
				row[rows[0][i]] = cell
			}
		}
		out = append(out, row)
	}
	return out
}

// Names of tables are those of folders on every system.
func TestFolderNames(t *testing.T) {
	for name, want := range map[string]string{
		"mail_items": "mail_items", "..": "__", ".": "_", "": "_", "/": "_", "a/../b": "a_.._b", "a\x00b": "a_b",
		"NUL": "_NUL", "com1.txt": "_com1.txt", "aux ": "aux_", "con.": "con_", "a.": "a_", ".hidden": "_hidden",
		"ünïcode": "ünïcode", `C:\x`: "C__x", "what?*": "what__",
	} {
		if got := files.FolderName(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
	if got := files.FolderName(strings.Repeat("/", 70_000)); len(got) > 63 {
		t.Errorf("a long name became %q", got)
	}
}

// Two keys are never one cell, and none is a formula.
func TestCSVKeys(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{"a", "a\u200b", "a\u200c", "=1", "'=1", "\u200b=1", "+49", "-1", "", "'", "a\nb",
		"a b", "a\tb", "a\rb"} {
		cell := files.CSV.Format.Key(key)
		if was, ok := seen[cell]; ok {
			t.Errorf("%q and %q are both %q", key, was, cell)
		}
		if seen[cell] = key; strings.IndexAny(cell, "=+-@") == 0 {
			t.Errorf("%q became the formula %q", key, cell)
		}
	}
	if cell := files.CSV.Format.Key("+49"); cell != "'+49" {
		t.Errorf("a key that a cell can hold became %q", cell)
	}
}

// What others have in a directory is neither taken nor touched.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(mine, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, mine} {
		if s, err := files.JSONL.Open(t.Context(), "jsonl:"+path, owner); err == nil {
			t.Errorf("opened %s: %v", path, s.Close())
		} else if !errors.Is(err, destination.ErrForeign) {
			t.Errorf("%s: %v", path, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	other := filepath.Join(t.TempDir(), "out")
	if s, err := files.JSONL.Open(t.Context(), "jsonl:"+other, owner); err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	if _, err := files.CSV.Open(t.Context(), "csv:"+other, owner); !errors.Is(err, destination.ErrForeign) {
		t.Errorf("a directory of another kind: %v", err)
	}
	for _, url := range []string{"csv:", "csv:relative", "csv:/a/../b", "csv:/a\x00"} {
		if _, err := files.CSV.Check(url, ""); err == nil {
			t.Errorf("%q passed", url)
		}
	}
	if !slices.Contains(names(t, other), "_sluice_manifest.json") {
		t.Error("there is no manifest")
	}
}
