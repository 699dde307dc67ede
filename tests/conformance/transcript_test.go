package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A transcript is one file of testdata.
type transcript struct {
	path  string
	lines []string
	cases []*scenario
}

// A scenario is one case: a manifest, a connection, and runs that share a store.
type scenario struct {
	name  string
	setup []directive
	runs  []*playedRun
}

// A directive is a line of the form "word rest".
type directive struct{ word, rest string }

// A playedRun is a script and what must come of it.
type playedRun struct {
	with   []directive
	steps  []string
	want   string
	at, to int // lines of the outcome
}

func (s *scenario) all(word string) (out []string) {
	for _, d := range s.setup {
		if d.word == word {
			out = append(out, d.rest)
		}
	}
	return out
}

func (s *scenario) one(word string) (string, bool) {
	if a := s.all(word); len(a) > 0 {
		return a[len(a)-1], true
	}
	return "", false
}

// timed reports whether a case has budgets of time.
func (s *scenario) timed() bool { return len(s.all("budget")) > 0 }

var slept = regexp.MustCompile(`\bsleep (\d+)$`)

// slowed is the case with all budgets and sleeps so many times longer, which ends the same.
func (s *scenario) slowed(times time.Duration) *scenario {
	if times == 1 {
		return s
	}
	out := &scenario{name: s.name, setup: slices.Clone(s.setup)}
	for i, d := range out.setup {
		name, text, _ := strings.Cut(d.rest, "=")
		if length, err := time.ParseDuration(text); d.word == "budget" && err == nil {
			out.setup[i].rest = name + "=" + (length * times).String()
		}
	}
	for _, r := range s.runs {
		slow := *r
		slow.steps = slices.Clone(r.steps)
		for i, step := range slow.steps {
			slow.steps[i] = slept.ReplaceAllStringFunc(step, func(m string) string {
				ms, _ := strconv.Atoi(strings.TrimPrefix(m, "sleep "))
				return fmt.Sprint("sleep ", ms*int(times))
			})
		}
		out.runs = append(out.runs, &slow)
	}
	return out
}

// transports lists where a scenario is played.
func (s *scenario) transports() []string {
	if on, ok := s.one("on"); ok {
		return []string{on}
	}
	return []string{"abi", "stdio"}
}

var setupWords = []string{"stream", "manifest", "connection", "store", "limit", "budget", "on", "show", "brief"}

// readTranscripts reads all of testdata.
func readTranscripts(t *testing.T) []*transcript {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("transcripts: %v %v", paths, err)
	}
	var out []*transcript
	for _, p := range paths {
		f, err := readTranscript(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func readTranscript(path string) (*transcript, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &transcript{path: path, lines: strings.Split(strings.TrimRight(string(src), "\n"), "\n")}
	var c *scenario
	var r *playedRun
	for i := 0; i < len(f.lines); i++ {
		line := f.lines[i]
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case word == "case":
			c, r = &scenario{name: rest}, nil
			f.cases = append(f.cases, c)
		case c == nil:
			return nil, fmt.Errorf("%s:%d: no case yet", path, i+1)
		case word == "run":
			r = &playedRun{}
			c.runs = append(c.runs, r)
		case r == nil && slices.Contains(setupWords, word):
			c.setup = append(c.setup, directive{word, rest})
		case r == nil:
			return nil, fmt.Errorf("%s:%d: unknown directive %s", path, i+1, word)
		case word == "with":
			w, v, _ := strings.Cut(rest, " ")
			r.with = append(r.with, directive{w, v})
		case line == "----":
			r.at = i + 1
			for r.to = r.at; r.to < len(f.lines) && f.lines[r.to] != ""; r.to++ {
			}
			r.want = strings.Join(f.lines[r.at:r.to], "\n")
			i, r = r.to, nil
		default:
			r.steps = append(r.steps, line)
		}
	}
	return f, nil
}

// write puts outcomes into the file, in place of the old ones.
func (f *transcript) write(got map[*playedRun]string) error {
	var b bytes.Buffer
	at := 0
	for _, c := range f.cases {
		for _, r := range c.runs {
			text, ok := got[r]
			if !ok || r.at == 0 {
				continue
			}
			b.WriteString(strings.Join(f.lines[at:r.at], "\n") + "\n" + text + "\n")
			at = r.to
		}
	}
	b.WriteString(strings.Join(f.lines[at:], "\n"))
	return os.WriteFile(f.path, append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), 0o644)
}
