package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/term"

	"github.com/sluicehost/sluice/host"
)

// TestHistory: what was typed is there the next time, bounded, and for its user alone.
func TestHistory(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	path := historyFile()
	h := openHistory(path)
	for _, line := range []string{"SELECT 1;", "SELECT 1;", "  ", strings.Repeat("x", maxHistoryLine+1),
		"a\nb", "SELECT", "  2;"} {
		h.Add(line)
	}
	for _, h := range []*history{h, openHistory(path)} {
		if h.Len() != 3 || h.At(0) != "  2;" || h.At(2) != "SELECT 1;" {
			t.Errorf("%q", h.lines)
		}
	}
	mode := func(want os.FileMode) {
		t.Helper()
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	mode(0o600)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	for n := range 2 * maxHistory {
		h.Add(fmt.Sprint("SELECT ", n))
	}
	mode(0o600)
	again := openHistory(path)
	if again.Len() != maxHistory || again.At(0) != fmt.Sprint("SELECT ", 2*maxHistory-1) || h.Len() != maxHistory {
		t.Errorf("%d lines, %q", again.Len(), again.At(0))
	}
	mode(0o600)
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != maxHistory {
		t.Errorf("%d lines, %v", strings.Count(string(text), "\n"), err)
	}
	if left, err := filepath.Glob(path + "-*"); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	unwritable := openHistory(filepath.Dir(path)) // a directory
	unwritable.Add("SELECT 1")
	if unwritable.Len() != 1 {
		t.Errorf("%q", unwritable.lines)
	}
}

// TestComplete: words of tables and columns are finished as far as they agree.
func TestComplete(t *testing.T) {
	words := []string{"FROM ", "SELECT ", "mail.labels", "mail.messages", `"my-git".commits`, "subject"}
	for line, want := range map[string]string{
		"sel": "SELECT ", "SELECT sub": "SELECT subject", "SELECT * FROM ma": "SELECT * FROM mail.",
		"SELECT * FROM mail.m": "SELECT * FROM mail.messages", "SELECT count(sub": "SELECT count(subject",
		`SELECT * FROM "m`: `SELECT * FROM "my-git".commits`, "x": "", "": "", "SELECT ": "",
	} {
		got, pos, ok := complete(line, len(line), words)
		if ok != (want != "") || got != want || ok && pos != len(want) {
			t.Errorf("%q: %q %d %v", line, got, pos, ok)
		}
	}
	if got, pos, _ := complete("SELECT sub FROM x", 10, words); got != "SELECT subject FROM x" || pos != 14 {
		t.Errorf("%q %d", got, pos)
	}
}

// TestCompleteHostileNames: connectors choose the names of columns.
func TestCompleteHostileNames(t *testing.T) {
	long := "long" + strings.Repeat("x", 64<<10)
	words := completions([]host.Table{{Name: `mail."a ""b"""`, Columns: []host.QueryColumn{
		{Name: `say "no"`}, {Name: "esc\x1b[31m"}, {Name: "rtl\u202egnp"}, {Name: "nul\x00"}, {Name: "line\nfeed"},
		{Name: "from"}, {Name: "caf\u00e9"}, {Name: "caf\u00e8"}, {Name: long}, {Name: "1st"}, {Name: ""},
	}}})
	for line, want := range map[string]string{
		"sa": `"say ""no"""`, `"sa`: `"say ""no"""`, "es": "", "rt": "", "nu": "", "lin": "", `"f`: `"from"`, "caf": `"caf`,
		"1": `"1st"`, "lo": long, `mail."`: `mail."a ""b"""`,
	} {
		if got, pos, ok := complete(line, len(line), words); ok != (want != "") || got != want || ok && pos != len(want) {
			t.Errorf("%q: %.80q %d %v", line, got, pos, ok)
		}
	}
}

// TestReadStatement: a statement has several lines; of one that the terminal cuts nothing is run.
func TestReadStatement(t *testing.T) {
	long := "SELECT '" + strings.Repeat("\u00e9", 5000) + "';"
	in := strings.Join([]string{"SELECT", "1;", long, "SELECT '" + strings.Repeat("x", 4080) + "';", "quit", ""}, "\r")
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{strings.NewReader(in), io.Discard}, "")
	for _, want := range []struct {
		statement string
		err       error
	}{{"SELECT\n1;", nil}, {"", errLineTooLong}, {"SELECT '" + strings.Repeat("x", 4080) + "';", nil}, {"", io.EOF}} {
		if got, err := readStatement(terminal); got != want.statement || !errors.Is(err, want.err) {
			t.Errorf("%.40q, %v, want %.40q, %v", got, err, want.statement, want.err)
		}
	}
}

func TestCopyLines(t *testing.T) {
	if got := copyLines([]host.Copying{{ConnectionID: "mail", Done: 500, Total: 1000},
		{ConnectionID: "x"}}); len(got) != 2 ||
		got[0] != "copying mail for queries  [###############...............] 500 of 1000 records" ||
		strings.Contains(got[1], "#") {
		t.Errorf("%q", got)
	}
}
