//go:build unix

package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/npm"
	"github.com/sluicehost/sluice/tests/postgres"
)

// fenced is a block of a document in a language.
type fenced struct{ language, text string }

// blocksOf are the fenced blocks below a heading.
func blocksOf(t *testing.T, path, heading string) (out []fenced) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %s", path, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	parts := strings.Split(text, "\n```")
	for i := 1; i < len(parts); i += 2 {
		language, code, _ := strings.Cut(parts[i], "\n")
		out = append(out, fenced{language, code})
	}
	return out
}

// duck runs statements in DuckDB.
const duck = `import { DuckDBInstance } from "@duckdb/node-api";
const connection = await (await DuckDBInstance.create(":memory:")).connect();
const result = await connection.runAndReadAll(process.argv[2]);
for (const row of result.getRows()) console.log(row.map(String).join(" "));`

// TestData runs what docs/data.md says of other programs, on a repository with three
// commits of Ada and one of Bob, and each has to say so.
func TestData(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	program, err := build.Program()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, "sluice")); err != nil {
		t.Fatal(err)
	}
	if err := build.Connectors(bin, "examples/git"); err != nil {
		t.Fatal(err)
	}
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir, "XDG_DATA_HOME=",
		"SLUICE_STORE=badger:"+filepath.Join(dir, "data"), "SLUICE_CACHE="+cache)
	run(t, dir, env, "git", "init", "-q", "repo")
	for i, who := range []string{"Ada", "Ada", "Bob", "Ada"} {
		run(t, dir, env, "git", "-C", "repo", "-c", "user.name="+who, "-c", "user.email=someone@example.org", "commit", "-q",
			"--allow-empty", "-m", fmt.Sprint("The commit ", i))
	}
	run(t, dir, env, filepath.Join(bin, "sluice"), "run", filepath.Join(bin, "git.wasm"), "--connection", "git",
		"--mount", "repo=repo")
	here := func(b fenced) string {
		switch {
		case b.language == "sh" && strings.Contains(b.text, "psql"):
			return "psql"
		case b.language == "sh" && strings.Contains(b.text, "sqlite3"):
			return "sqlite3"
		}
		return b.language
	}
	blocks := blocksOf(t, "../docs/data.md", "Open it with something else")
	if len(blocks) != 5 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		t.Run(here(b), func(t *testing.T) {
			var cmd *exec.Cmd
			env := env
			switch here(b) {
			case "psql":
				env = append(env, "DATABASE_URL="+postgres.New(t))
				cmd = exec.Command("sh", "-ec", b.text)
			case "sqlite3":
				if _, err := exec.LookPath("sqlite3"); err != nil {
					t.Skip("SKIPPED: no sqlite3: apt install sqlite3")
				}
				cmd = exec.Command("sh", "-ec", b.text)
			case "sh":
				cmd = exec.Command("sh", "-ec", b.text)
			case "python":
				if exec.Command("/usr/bin/python3", "-c", "import pandas").Run() != nil {
					t.Skip("SKIPPED: no pandas: apt install python3-pandas")
				}
				cmd = exec.Command("/usr/bin/python3", "-c", b.text)
			case "sql":
				node, err := exec.LookPath("node")
				if err != nil || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
					t.Skip("SKIPPED: no node for DuckDB: apt install nodejs")
				}
				modules := t.TempDir()
				for _, p := range npm.DuckDB {
					p.Unpack(t, modules)
				}
				script := filepath.Join(modules, "duck.mjs")
				if err := os.WriteFile(script, []byte(duck), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd = exec.Command(node, script, b.text)
			default:
				t.Fatalf("nothing runs %s", b.language)
			}
			var said bytes.Buffer
			cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &said
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, said.String())
			}
			if here(b) == "sh" { // a destination that the next block reads
				return
			}
			rows := strings.Fields(string(out))
			for _, want := range []string{"Ada", "3", "Bob", "1"} {
				found := false
				for _, r := range rows {
					found = found || r == want
				}
				if !found {
					t.Errorf("it does not say %s:\n%s", want, out)
				}
			}
		})
	}
}
