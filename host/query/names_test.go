package query_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// TestNames: streams, connections and fields may have names that SQLite or Sluice reserve, or that differ in case
// alone. Tables says how each is named in a statement.
func TestNames(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("long", 30)
	streams := map[store.ConnectionID][]store.Stream{
		"mail": {"T1", "t1", "sqlite_x", "_sluice_meta", "_files", "SELECT", `a"b`, "a/b", "with space",
			store.Stream(long), "main"},
		"main": {"x"}, "temp": {"x"}, "sqlite": {"x"},
	}
	for c, names := range streams {
		for _, s := range names {
			w.collect(c, s, fmt.Sprintf(`a {"is":%q,"rowid":1,"_sluice_was":1,"_rowid_":1}`, string(c)+"/"+string(s)))
		}
	}
	check := func() {
		t.Helper()
		tables, err := w.mirror.Tables(t.Context(), nil)
		w.must(err)
		if len(tables) != 14 {
			t.Errorf("%d tables", len(tables))
		}
		for _, table := range tables {
			w.equal(`SELECT "is" FROM `+table.Name, fmt.Sprintf(`[[%q]]`, table.ConnectionID+"/"+table.Stream))
		}
	}
	check()
	for c, names := range streams {
		for _, s := range names {
			w.collect(c, s, fmt.Sprintf(`a {"is":%q,"rowid":"x","_sluice_was":"x","_rowid_":"x"}`, string(c)+"/"+string(s)))
		}
	}
	check()
	w.equal(`SELECT count(*) FROM MAIL."Select", Mail."with space"`, `[[1]]`)
	for _, sql := range []string{`SELECT * FROM main.x`, `SELECT * FROM _mail.x`, `SELECT * FROM _main.y`,
		`SELECT * FROM MAIN.x`} {
		if code := w.refused(host.Query{SQL: sql}); code != "query_invalid" {
			t.Errorf("%s: %s", sql, code)
		}
	}
}

// TestDamaged: a copy that is not as it was written is made anew, also where that is seen only while a statement reads
// it.
func TestDamaged(t *testing.T) {
	w := newWorld(t)
	var rows []string
	for n := range 500 {
		rows = append(rows, fmt.Sprintf(`k%d {"n":%d,"text":%q}`, n, n, strings.Repeat("x", 100)))
	}
	w.collect("mail", "messages", rows...)
	path := filepath.Join(w.dir, "mail.db")
	for what, damage := range map[string]func() error{
		"pages": func() error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, append(b[:12<<10:12<<10], bytes.Repeat([]byte{0xff}, len(b)-12<<10)...), 0o600)
		},
		"cut":       func() error { return os.Truncate(path, 10_000) },
		"empty":     func() error { return os.Truncate(path, 0) },
		"directory": func() error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"log":       func() error { return os.MkdirAll(filepath.Join(path+"-wal", "x"), 0o700) },
		"link":      func() error { return os.Symlink("/dev/null", path) },
	} {
		w.equal(`SELECT count(*), sum(n), min(length(text)) FROM mail.messages`, `[[500,124750,100]]`)
		w.must(errors.Join(os.RemoveAll(path+"-wal"), os.RemoveAll(path+"-shm")))
		if what == "directory" || what == "link" {
			w.must(os.Remove(path))
		}
		if err := damage(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Log(what)
		w.equal(`SELECT count(*), sum(n), min(length(text)) FROM mail.messages`, `[[500,124750,100]]`)
	}
}
