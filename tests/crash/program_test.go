package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// patience is how long a command may take that should take a second.
const patience = 3 * time.Minute

// A program is the command line on one data directory.
type program struct {
	t     *testing.T
	data  string
	filed bool // records hold files
}

// command prepares one process.
func (p program) command(args ...string) *exec.Cmd {
	cmd := exec.Command(built.sluice, args...)
	cmd.Dir = built.dir // here, pages is the source and not the installed connector
	cmd.Env = append(os.Environ(), "SLUICE_STORE=badger:"+p.data, "SLUICE_CACHE="+built.cache, "NO_COLOR=1")
	return cmd
}

// An outcome is what a command printed and how it ended.
type outcome struct {
	code      int
	out, errs string
}

// do runs one command to its end.
func (p program) do(args ...string) outcome {
	p.t.Helper()
	return p.finish(p.command(args...))
}

func (p program) finish(cmd *exec.Cmd) outcome {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	_ = cmd.Wait() // the exit code says it
	if !late.Stop() {
		p.t.Fatalf("%v did not end within %v\n%s", cmd.Args[1:], patience, errs.String())
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// lines runs a command that must succeed and decodes what it prints, one value
// a line.
func lines[T any](p program, args ...string) []T {
	p.t.Helper()
	o := p.do(append(args, "--json")...)
	if o.code != 0 {
		p.t.Fatalf("%v ended with code %d\n%s%s", args, o.code, o.out, o.errs)
	}
	return decode[T](p.t, o.out)
}

func decode[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, v)
	}
	return all
}

// one is lines for a command that prints one value.
func one[T any](p program, args ...string) T {
	p.t.Helper()
	all := lines[T](p, args...)
	if len(all) != 1 {
		p.t.Fatalf("%v printed %d values", args, len(all))
	}
	return all[0]
}

// An event is the part of a timeline event that these tests check. raw is all of it.
type event struct {
	Type     string `json:"type"`
	Sequence int    `json:"sequence"`
	RunID    string `json:"runId"`
	Data     struct {
		Stream   string `json:"stream"`
		Accepted int    `json:"records_accepted"`
		Cursor   cursor `json:"cursor"`
		Message  string `json:"message"`
		Count    int    `json:"count"`
		Reason   string `json:"reason"`
		Failure  string `json:"failure_message"`
	} `json:"payload"`
	raw map[string]any
}

type cursor struct {
	Page int `json:"page"`
}

// UnmarshalJSON reads a document, as events prints it, or an envelope, as
// --timeline announces it, which becomes its document.
func (e *event) UnmarshalJSON(b []byte) error {
	if bytes.Contains(b, []byte(`"event_type"`)) {
		var announced store.Event
		if err := json.Unmarshal(b, &announced); err != nil {
			return err
		}
		var err error
		if b, err = json.Marshal(timeline.Document(announced)); err != nil {
			return err
		}
	}
	type plain event
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	return json.Unmarshal(b, &e.raw)
}

// A live is a run whose events are read while it lasts.
type live struct {
	p      program
	cmd    *exec.Cmd
	errs   bytes.Buffer
	out    bytes.Buffer
	events chan event // closed with the last process that could write one
	seen   []event    // taken from events
}

// start starts a run whose timeline comes through a pipe, so that what the program
// wrote survives it.
func (p program) start(cmd *exec.Cmd) *live {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	l := &live{p: p, cmd: cmd, events: make(chan event, 10_000)}
	cmd.Args = append(cmd.Args, "--timeline", "/dev/fd/3")
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{w}, &l.out, &l.errs
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	w.Close()
	go func() {
		defer close(l.events)
		defer r.Close()
		for in := bufio.NewReaderSize(r, 1<<20); ; {
			line, err := in.ReadBytes('\n')
			var e event
			if err != nil || json.Unmarshal(line, &e) != nil { // the end, or cut by the kill
				return
			}
			l.events <- e
		}
	}()
	return l
}

// run is the command that collects all pages up to until.
func (p program) run(until int, args ...string) *exec.Cmd {
	return p.command(append([]string{"run", built.pages, "--json", "--no-interactive", "--config",
		fmt.Sprintf(`{"until":%d,"files":%v}`, until, p.filed)}, args...)...)
}

// await reads events until there are n, or no more can come.
func (l *live) await(n int) {
	for len(l.seen) < n {
		e, ok := <-l.events
		if !ok {
			return
		}
		l.seen = append(l.seen, e)
	}
}

// rest waits until no more events can come and returns all of them.
func (l *live) rest() []event {
	for e := range l.events {
		l.seen = append(l.seen, e)
	}
	return l.seen
}

// quiet waits until no event has come for d, and reports false when none can
// come any more.
func (l *live) quiet(d time.Duration) bool {
	for {
		select {
		case e, ok := <-l.events:
			if !ok {
				return false
			}
			l.seen = append(l.seen, e)
		case <-time.After(d):
			return true
		}
	}
}
