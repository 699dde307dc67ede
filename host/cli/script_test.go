package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehost/sluice/tests/build"
)

// TestScripts runs testdata/script. Modules are built once, compiled code is
// shared by all scripts.
func TestScripts(t *testing.T) {
	testscript.Run(t, scripts(t, "testdata/script", "host/cli/testdata/fixture", "host/cli/testdata/sealed",
		"host/cli/testdata/bearer", "host/cli/testdata/filer",
		"examples/git", "examples/stdio", "examples/feed", "examples/ical", "examples/ask"))
}

// scripts are the scripts in a directory, and the modules that they need.
func scripts(t *testing.T, dir string, connectors ...string) testscript.Params {
	modules := t.TempDir()
	if err := build.Connectors(modules, connectors...); err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	web, auth := server(t), newAuthority(t)
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	toolchain := goEnvironment(t)
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Values[heldKey{}] = &held{}
			e.Vars = append(e.Vars, toolchain...)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("SLUICE_CACHE", cache)
			e.Setenv("SLUICE_STORE", "")
			e.Setenv("MODULES", modules)
			e.Setenv("CHECKOUT", checkout)
			e.Setenv("SERVER", web.URL)
			e.Setenv("AUTH", auth.tokens.URL)
			e.Setenv("API", auth.api.URL)
			e.Setenv("PATH", os.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": exitCode, "hold": hold, "interrupt": interrupt, "ended": ended, "members": members,
			"lines": lines, "expand": expand, "serve": serve, "up": up, "down": down, "answers": answers, "blocks": blocks,
			"same": same, "consent": consent, "auth": auth.command, "unseen": auth.unseen, "traced": traced, "holds": holds,
			"spoil": spoil, "combine": combine,
		},
	}
}

// goEnvironment is what the toolchain needs under another home.
func goEnvironment(t *testing.T) []string {
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	var vars map[string]string
	if err := json.Unmarshal(out, &vars); err != nil {
		t.Fatal(err)
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// exitCode is "code N COMMAND…": the command must end with N.
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	want := number(ts, args[0])
	err := ts.Exec(args[1], args[2:]...)
	if got := codeOf(ts, err); got != want {
		ts.Fatalf("%s ended with code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

func codeOf(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// combine is "combine CONNECTION": sluice export with any two values of its flags together. Each
// either writes something or says why it does not, and leaves nothing.
func combine(ts *testscript.TestScript, _ bool, args []string) {
	flags := [][]string{
		{"out.jsonl", "out.csv", "out.parquet", "out.sqlite", "out/", "-", "out.txt"},
		{"", "--format=jsonl", "--format=csv", "--format=parquet", "--format=sqlite"},
		{"", "--order=-version", "--order=key", "--order=-time"},
		{"", "--deleted"}, {"", "--find=a"}, {"", "--since-mark=mark"}, {"", "--files"}, {"", "--stream=rows"},
	}
	seen := map[[4]int]bool{}
	for i, column := range flags {
		for a := range column {
			for j := i + 1; j < len(flags); j++ {
				for b := range flags[j] {
					if seen[[4]int{i, a, j, b}] {
						continue
					}
					pick := make([]int, len(flags)) // others take turns
					for k := range pick {
						pick[k] = len(seen) % len(flags[k])
					}
					pick[i], pick[j] = a, b
					for k := range pick {
						for l := k + 1; l < len(pick); l++ {
							seen[[4]int{k, pick[k], l, pick[l]}] = true
						}
					}
					exported(ts, args[0], flags, pick)
				}
			}
		}
	}
}

func exported(ts *testscript.TestScript, connection string, flags [][]string, pick []int) {
	has := func(k int) string { return flags[k][pick[k]] }
	command := []string{"export", connection, "--to", has(0)}
	for k := range flags[1:] {
		if text := has(k + 1); text != "" {
			command = append(command, text)
		}
	}
	as := strings.TrimPrefix(filepath.Ext(has(0)), ".")
	if has(0) == "out/" || has(0) == "-" {
		if as = "jsonl"; has(1) != "" {
			as = strings.TrimPrefix(has(1), "--format=")
		}
	}
	want := ""
	switch {
	case has(1) == "--format=sqlite":
		want = "want jsonl, csv or parquet"
	case has(1) != "" && has(1) != "--format="+as:
		want = "says another by its name"
	case has(5) != "" && has(2) != "":
		want = "--since-mark exports by version"
	case has(2) != "" && (as == "sqlite" || as == "parquet"):
		want = "tables have no order"
	case has(0) == "-" && has(6) != "":
		want = "--files: want"
	case as == "txt":
		want = "must end in .jsonl"
	}
	if err := ts.Exec("sluice", command...); codeOf(ts, err) != map[bool]int{true: 0, false: 2}[want == ""] {
		ts.Fatalf("%q: %v, want %q", command, err, want)
	}
	if said := ts.ReadFile("stderr"); !strings.Contains(said, want) {
		ts.Fatalf("%q says %q, want %q", command, said, want)
	}
	left, err := filepath.Glob(ts.MkAbs("out*"))
	ts.Check(err)
	if wrote := len(left) > 0 || has(0) == "-" && want == ""; wrote != (want == "") {
		ts.Fatalf("%q, which is to say %q, left %q", command, want, left)
	}
	for _, path := range append(left, ts.MkAbs("mark"), ts.MkAbs("_files")) {
		ts.Check(os.RemoveAll(path))
	}
}

// holds is "holds DIR PATTERN": a file of the directory has it; with ! none has.
func holds(ts *testscript.TestScript, not bool, args []string) {
	names, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*"))
	ts.Check(err)
	found := ""
	for _, name := range names {
		if regexp.MustCompile(args[1]).MatchString(ts.ReadFile(name)) {
			found = name
		}
	}
	if len(names) == 0 || (found != "") == not {
		ts.Fatalf("%q in the %d files of %s: found in %q", args[1], len(names), args[0], found)
	}
}

// A held process goes on while the script does.
type held struct {
	cmd    *exec.Cmd
	stderr *bufio.Reader
	web    *httptest.Server // see serve
	outer  *held            // the process that is held again when this one has ended, nil for none
}

// heldKey finds the held process among the values of a script.
type heldKey struct{}

// hold is "hold WORD COMMAND…": it starts the command and returns once its
// standard error has a line with the word.
func hold(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(lookPath(ts, args[1]), args[2:]...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "XDG_DATA_HOME", "SLUICE_CACHE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	pipe, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	h := ts.Value(heldKey{}).(*held)
	outer := *h
	h.cmd, h.stderr, h.outer = cmd, bufio.NewReader(pipe), &outer
	ts.Defer(func() { cmd.Process.Kill() })
	for {
		line, err := h.stderr.ReadString('\n')
		if strings.Contains(line, args[0]) {
			break
		}
		if err != nil {
			ts.Fatalf("%s ended before it said %q", args[1], args[0])
		}
	}
}

// up is "up ARG…": sluice serve on a free port, held once it answers. $URL and
// $ADDRESS become its own.
func up(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(lookPath(ts, "sluice"),
		append([]string{"serve", "--quiet", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "XDG_DATA_HOME", "SLUICE_CACHE", "SLUICE_STORE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	h := ts.Value(heldKey{}).(*held)
	h.cmd, h.stderr = cmd, bufio.NewReader(stderr)
	ts.Defer(func() { cmd.Process.Kill() })
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadString('\n')
		if at, _, ok := strings.Cut(strings.TrimSpace(line), "/ui/login#"); ok && strings.HasPrefix(at, "http://127.0.0.1:") {
			ts.Setenv("URL", at)
			ts.Setenv("ADDRESS", strings.TrimPrefix(at, "http://"))
		}
		if strings.Contains(line, "Ctrl-C stops") {
			return
		}
		if err != nil {
			said, _ := io.ReadAll(h.stderr)
			ts.Fatalf("serve ended: %s", said)
		}
	}
}

// blocks is "blocks FILE": the shell blocks of a document are run as one script.
func blocks(ts *testscript.TestScript, _ bool, args []string) {
	var script strings.Builder
	inside := false
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		switch {
		case strings.HasPrefix(line, "```sh"):
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			script.WriteString(line)
		}
	}
	if script.Len() == 0 {
		ts.Fatalf("%s has no shell blocks", args[0])
	}
	ts.Check(ts.Exec("sh", "-euc", script.String()))
}

// down is "down": the held process is killed.
func down(ts *testscript.TestScript, _ bool, _ []string) {
	h := ts.Value(heldKey{}).(*held)
	ts.Check(h.cmd.Process.Kill())
	_ = h.cmd.Wait() // it was killed
}

// answers is "answers CODE PATH": a GET of $URL and the path must be answered so.
func answers(ts *testscript.TestScript, _ bool, args []string) {
	res, err := http.Get(ts.Getenv("URL") + args[1])
	ts.Check(err)
	defer res.Body.Close()
	if res.StatusCode != number(ts, args[0]) {
		ts.Fatalf("%s: %s", args[1], res.Status)
	}
}

func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, name); isFile(path) {
			return path
		}
	}
	ts.Fatalf("%s is not on the path", name)
	return ""
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

// interrupt is "interrupt N": Ctrl-C for the held process, which must end with
// code N.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	h := ts.Value(heldKey{}).(*held)
	ts.Check(h.cmd.Process.Signal(syscall.SIGINT))
	ended(ts, false, args)
}

// ended is "ended N": the held process ends, with code N.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	h := ts.Value(heldKey{}).(*held)
	rest, err := io.ReadAll(h.stderr)
	ts.Check(err)
	ts.Logf("%s", rest)
	if got, want := codeOf(ts, h.cmd.Wait()), number(ts, args[0]); got != want {
		ts.Fatalf("held process ended with code %d, want %d", got, want)
	}
	if h.outer != nil {
		h.cmd, h.stderr, h.outer = h.outer.cmd, h.outer.stderr, h.outer.outer
	}
}

// members is "members FILE NAME…": the JSON object in FILE has exactly these
// members; those with a ? may be missing.
func members(ts *testscript.TestScript, _ bool, args []string) {
	var object map[string]json.RawMessage
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &object))
	for _, want := range args[1:] {
		name, optional := strings.CutSuffix(want, "?")
		if _, ok := object[name]; !ok && !optional {
			ts.Fatalf("%s has no member %s", args[0], name)
		}
		delete(object, name)
	}
	if len(object) > 0 {
		ts.Fatalf("%s has other members: %s", args[0], strings.Join(slices.Sorted(maps.Keys(object)), ", "))
	}
}

// lines is "lines N FILE": the file has N lines.
func lines(ts *testscript.TestScript, _ bool, args []string) {
	if got, want := strings.Count(ts.ReadFile(args[1]), "\n"), number(ts, args[0]); got != want {
		ts.Fatalf("%s has %d lines, want %d", args[1], got, want)
	}
}

// expand is "expand FILE...": $SERVER, $AUTH and $API in the files become the
// test's servers.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), func(v string) string {
			if v == "SERVER" || v == "AUTH" || v == "API" {
				return ts.Getenv(v)
			}
			return "$" + v
		})
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// serve is "serve": $SERVER becomes a server of this script alone, which "!
// serve" stops.
func serve(ts *testscript.TestScript, stop bool, _ []string) {
	h := ts.Value(heldKey{}).(*held)
	if stop {
		h.web.Close()
		return
	}
	h.web = httptest.NewServer(handler())
	ts.Defer(h.web.Close)
	ts.Setenv("SERVER", h.web.URL)
}

// same is "same FILE FILE MEMBER…": the records of the files are the same but
// for these members.
func same(ts *testscript.TestScript, _ bool, args []string) {
	read := func(name string) (out []string) {
		for line := range strings.Lines(ts.ReadFile(name)) {
			var r map[string]json.RawMessage
			ts.Check(json.Unmarshal([]byte(line), &r))
			for _, name := range args[2:] {
				delete(r, name)
			}
			b, err := json.Marshal(r)
			ts.Check(err)
			out = append(out, string(b))
		}
		return out
	}
	a, b := read(args[0]), read(args[1])
	if len(a) == 0 || !slices.Equal(a, b) {
		ts.Fatalf("%s and %s are not the same records:\n%s\n\n%s", args[0], args[1], strings.Join(a, "\n"),
			strings.Join(b, "\n"))
	}
}

// server answers as handler says.
func server(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler())
	t.Cleanup(s.Close)
	return s
}

// handler answers with feeds, with what it was sent as X-Key, and that it is busy.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("testdata/feeds")))
	mux.HandleFunc("/api/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if key := r.Header.Get("X-Key"); key == "correct horse" {
			_, _ = io.WriteString(w, "welcome, "+key+"!")
			return
		}
		http.Error(w, "who are you?", http.StatusUnauthorized)
	})
	mux.HandleFunc("/busy.xml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	return mux
}
