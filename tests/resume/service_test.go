//go:build unix

package resume

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// servesIn makes this binary a service over a store, until its input ends or it is killed.
const servesIn = "SLUICE_TEST_RESUMES_IN"

// sleeps has it be short of memory.
const sleeps = "SLUICE_TEST_SLEEPS"

// exitRemoved is the code of a service that others have removed.
const exitRemoved = 3

// TestMain is also the worker and the service.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	if url := os.Getenv(servesIn); url != "" {
		switch err := serve(url); {
		case errors.Is(err, store.ErrStopped):
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitRemoved)
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A command is a line of the service's input; each is answered by one line. They are done one after the other,
// but that answers and cancellations are given beside the others.
type command struct {
	N       int    // its number, which its line has too
	Install string // a module's file, before what else is asked
	Connect string // a connection, of the module that was installed last
	Config  string
	Host    string // that it is approved

	Start  string          // the run of a connection that has none yet
	Await  store.RunID     // its question, another than Not, or its end
	Not    string          // an interrupt
	Answer store.RunID     // its question
	Value  json.RawMessage // object of fields
	Cancel store.RunID
	Pause  store.RunID
	Look   []store.RunID // all of them
	Until  store.RunID   // its Event is on its timeline
	Event  string

	Code    bool   // of this host
	Admit   string // a host, with its Value
	Drain   string // a host, while it is On
	On      bool
	Holds   bool // how many runs this host has
	Members bool // the hosts
}

// A state is what a command came to.
type state struct {
	N      int
	Err    string
	All    []state // of runs
	Run    store.Run
	Open   *store.Interaction
	Pieces []int // lengths, of its journal
	Events map[string]int
	Host   string // whose Code it is
	Code   string

	Holds   int
	Members []string // by id
}

func options(url string) app.Options {
	o := app.Options{Store: url, CacheDir: os.Getenv("SLUICE_CACHE"), Prespawn: -1,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if os.Getenv(sleeps) != "" {
		o.Journal.FreeMemory = math.MaxInt
	}
	return o
}

// A service is what serve works on.
type service struct {
	*app.Service
	host *app.Host
	last store.Connector
}

func serve(url string) error {
	ctx := host.As(context.Background(), host.Principal{ID: "owner", Transport: "ui"})
	h, err := app.Open(ctx, options(url))
	var busy *store.BusyError
	for late := time.Now().Add(time.Minute); errors.As(err, &busy) && time.Now().Before(late); { // by what was killed
		h, err = app.Open(ctx, options(url))
	}
	if err != nil {
		return err
	}
	s, err := h.Service(ctx, app.ServiceOptions{Grace: time.Millisecond})
	if err != nil {
		return err
	}
	removed, because := s.Removed()
	if removed != nil {
		go func() {
			<-removed
			gone, cancel := context.WithCancel(ctx)
			cancel()
			s.Close(gone)
			fmt.Fprintln(os.Stderr, because(), h.Close())
			os.Exit(exitRemoved)
		}()
	}
	x := &service{Service: s, host: h}
	answers, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	var mu sync.Mutex // guards out
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	do := func(ctx context.Context, c command) {
		st, err := x.do(ctx, c)
		if st.N = c.N; err != nil {
			select {
			case <-removed: // the process is ending
				return
			default:
				st.Err = err.Error()
			}
		}
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(st) // the test may be gone
	}
	for {
		var c command
		err := in.Decode(&c)
		switch {
		case errors.Is(err, io.EOF):
			s.Close(ctx)
			stop()
			work.Wait()
			return h.Close()
		case err != nil:
			return err
		case c.Answer != "", c.Cancel != "":
			work.Go(func() { do(answers, c) })
		default:
			do(ctx, c)
		}
	}
}

func (s *service) do(ctx context.Context, c command) (st state, err error) {
	if c.Install != "" {
		if err := s.install(ctx, c.Install); err != nil || c.Connect == "" {
			return st, err
		}
	}
	switch {
	case c.Connect != "":
		now := time.Now()
		return st, s.host.Store.PutConnection(ctx,
			store.Connection{ID: store.ConnectionID(c.Connect), ConnectorID: s.last.ID, Enabled: true,
				Settings: json.RawMessage(c.Config), Digest: s.last.Digest, Manifest: s.last.Manifest,
				Approved: store.Approved{Hosts: []string{c.Host}}, CreatedAt: now, UpdatedAt: now})
	case c.Start != "":
		runs, err := s.host.Store.Runs(ctx, store.ConnectionID(c.Start), "", 1)
		if err != nil || len(runs) > 0 { // started by a host that ended before it said so
			return state{Run: append(runs, store.Run{})[0]}, err
		}
		st.Run, err = s.StartRun(ctx, host.StartRun{WorkflowID: c.Start})
		return st, err
	case c.Answer != "":
		open, err := s.host.Store.Pending(ctx, c.Answer)
		if err != nil || len(open) == 0 {
			return st, fmt.Errorf("nothing is asked: %w", err)
		}
		a := host.Answer{RunID: c.Answer, InteractionID: open[0].ID, Status: "success", Data: map[string]json.RawMessage{}}
		if err := json.Unmarshal(c.Value, &a.Data); err != nil {
			return st, err
		}
		for {
			err := s.Answer(ctx, a)
			var r *host.Refusal
			// the run is being resumed, on a busy machine
			if !errors.As(err, &r) || r.Code != "unavailable" || ctx.Err() != nil {
				return st, err
			}
			if err := json.Unmarshal(c.Value, &a.Data); err != nil { // the broker wiped it
				return st, err
			}
		}
	case c.Pause != "":
		_, err := s.PauseRun(ctx, c.Pause, "", "")
		return st, err
	case c.Look != nil:
		for _, id := range c.Look {
			one, err := s.look(ctx, id)
			if err != nil {
				return st, err
			}
			st.All = append(st.All, one)
		}
		return st, nil
	case c.Until != "":
		return st, s.until(ctx, c.Until, c.Event)
	case c.Code:
		st.Host = s.host.ID
		st.Code, err = s.AdmissionCode(ctx)
		return st, err
	case c.Admit != "":
		var code string
		if err := json.Unmarshal(c.Value, &code); err != nil {
			return st, err
		}
		return st, s.AdmitHost(ctx, c.Admit, code)
	case c.Drain != "":
		_, err := s.DrainHost(ctx, c.Drain, c.On)
		return st, err
	case c.Holds:
		leases, err := s.host.Store.Leases(ctx)
		for _, l := range leases {
			if l.BootEpoch == s.host.Epoch {
				st.Holds++
			}
		}
		return st, err
	case c.Members:
		all, err := s.Hosts(ctx)
		for _, m := range all {
			st.Members = append(st.Members, m.HostID)
		}
		return st, err
	case c.Cancel != "":
		_, err := s.CancelRun(ctx, c.Cancel, "")
		return st, err
	}
	return s.await(ctx, c.Await, c.Not)
}

func (s *service) install(ctx context.Context, path string) error {
	wasm, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	c, _, err := s.InstallConnector(ctx, host.InstallConnector{Module: wasm})
	if err != nil {
		return err
	}
	all, err := s.host.Store.Connectors(ctx)
	if i := slices.IndexFunc(all, func(x store.Connector) bool { return string(x.ID) == c.ConnectorID }); i >= 0 {
		s.last = all[i]
	}
	return err
}

// await waits until a run asks, or is over.
func (s *service) await(ctx context.Context, id store.RunID, not string) (st state, err error) {
	wake, stop := s.host.Store.Watch(id)
	defer stop()
	for {
		if st, err = s.status(ctx, id); err != nil {
			return st, err
		}
		if st.Run.Status != "active" || st.Open != nil && st.Open.Interrupt != not {
			return s.look(ctx, id)
		}
		select {
		case <-wake:
		case <-time.After(90 * time.Second):
			return st, fmt.Errorf("run %s does not move", id)
		}
	}
}

// status reads the row of a run and its open question.
func (s *service) status(ctx context.Context, id store.RunID) (st state, err error) {
	if st.Run, err = s.host.Store.Run(ctx, id); err != nil {
		return st, err
	}
	open, err := s.host.Store.Pending(ctx, id)
	if len(open) > 0 {
		st.Open = &open[0]
	}
	return st, err
}

// look reads what is stored of a run, with its timeline and the lengths of its journal.
func (s *service) look(ctx context.Context, id store.RunID) (st state, err error) {
	if st, err = s.status(ctx, id); err != nil {
		return st, err
	}
	events, err := s.host.Store.Events(ctx, id, 0, 1000)
	st.Events = map[string]int{}
	for i, e := range events {
		if e.Sequence != uint64(i) {
			return st, fmt.Errorf("event %d of run %s where %d belongs", e.Sequence, id, i)
		}
		st.Events[e.Type]++
	}
	for err == nil {
		var piece []byte
		if piece, err = s.host.Store.Journal(ctx, id, uint64(len(st.Pieces))); err == nil {
			st.Pieces = append(st.Pieces, len(piece))
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return st, err
}

// until waits until an event is on the timeline of a run.
func (s *service) until(ctx context.Context, id store.RunID, event string) error {
	wake, stop := s.host.Store.Watch(id)
	defer stop()
	for {
		events, err := s.host.Store.Events(ctx, id, 0, 1000)
		if err != nil || slices.ContainsFunc(events, func(e store.Event) bool { return e.Type == event }) {
			return err
		}
		<-wake
	}
}

// A process is a service in a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	errs bytes.Buffer
	read chan struct{} // closed when its output has ended

	mu    sync.Mutex
	sent  int
	waits map[int]chan state // of commands, by number; nil once its output has ended
}

func begin(t *testing.T, url string, env ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0]), read: make(chan struct{}), waits: map[int]chan state{}}
	p.cmd.Env = append(append(os.Environ(), servesIn+"="+url), env...)
	p.cmd.Stderr = &p.errs
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(out)
	t.Cleanup(p.kill)
	return p
}

// listen hands what commands came to to those who wait for it.
func (p *process) listen(out io.Reader) {
	defer close(p.read)
	for in := json.NewDecoder(out); ; {
		var st state
		err := in.Decode(&st)
		p.mu.Lock()
		c, waits := p.waits[st.N], p.waits
		delete(p.waits, st.N)
		if err != nil {
			p.waits = nil
		}
		p.mu.Unlock()
		if err != nil {
			for _, c := range waits {
				close(c)
			}
			return
		}
		c <- st
	}
}

// send sends a command. The channel has what it came to, or is closed when the process ended before.
func (p *process) send(c command) <-chan state {
	p.t.Helper()
	came := make(chan state, 1)
	p.mu.Lock()
	p.sent++
	c.N = p.sent
	if p.waits == nil {
		close(came)
	} else {
		p.waits[c.N] = came
	}
	p.mu.Unlock()
	_ = json.NewEncoder(p.in).Encode(c) // fails where it has ended, which closes the channel
	return came
}

// try is what a command came to. It reports false if the process ended before.
func (p *process) try(c command) (st state, ok bool) {
	came := p.send(c)
	defer p.hurry()()
	st, ok = <-came
	return st, ok
}

// hurry has the process say where it is and end, unless the returned function is called soon.
func (p *process) hurry() func() bool {
	return time.AfterFunc(3*time.Minute, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) }).Stop
}

// do is what a command came to.
func (p *process) do(c command) state {
	p.t.Helper()
	st, ok := p.try(c)
	if !ok {
		p.t.Fatalf("%+v: it ended\n%s", c, p.errs.String())
	}
	return st
}

// must is do, which succeeds.
func (p *process) must(c command) state {
	p.t.Helper()
	st := p.do(c)
	if st.Err != "" {
		p.t.Fatalf("%+v: %s\n%s", c, st.Err, p.errs.String())
	}
	return st
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.read
	_ = p.cmd.Wait()
}

// wait waits until the service has ended by itself. It returns its exit code and what it said.
func (p *process) wait() (code int, said string) {
	defer p.hurry()()
	<-p.read
	_ = p.cmd.Wait() // fails for another code than 0
	return p.cmd.ProcessState.ExitCode(), p.errs.String()
}

// stop has the service end by itself.
func (p *process) stop() {
	p.t.Helper()
	p.in.Close()
	if code, said := p.wait(); code != 0 {
		p.t.Fatalf("stop: %d\n%s", code, said)
	}
}

// resumable is a connector of this package whose manifest says that its runs go on.
func resumable(t *testing.T, name string) (file string) {
	t.Helper()
	return embedded(t, name, func(m string) string {
		m = strings.Replace(m, `"sluice": {`, `"sluice": {"resumable": true,`, 1)
		return strings.Replace(m, `"connector_id": "`, `"connector_id": "resumable-`, 1)
	})
}

// connector builds a guest of this package.
func connector(t *testing.T, name string) (file string) {
	t.Helper()
	return embedded(t, name, func(m string) string { return m })
}

func embedded(t *testing.T, name string, change func(manifest string) string) (file string) {
	t.Helper()
	file = t.TempDir() + "/" + name + ".wasm"
	var wasm []byte
	var err error
	if slices.Contains(guests["C"], name) {
		out, failed := exec.CommandContext(t.Context(), clang(t), "--target=wasm32-wasi", "-O2", "-Wall", "-Wextra",
			"-Werror", "-o", file, name+"/"+name+".c").CombinedOutput()
		if failed != nil {
			t.Fatalf("%v\n%s", failed, out)
		}
		wasm, err = os.ReadFile(file)
	} else {
		wasm, err = build.Guest("tests/resume/" + name)
	}
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(name + "/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if wasm, err = sandbox.EmbedManifest(wasm, []byte(change(string(manifest)))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// hasClang reports whether there is what clang needs.
func hasClang() bool {
	_, err := exec.LookPath("clang")
	_, linker := exec.LookPath("wasm-ld")
	return err == nil && linker == nil
}

// clang is the compiler of C, or skips the test; .ci/needs has what it needs.
func clang(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("clang")
	if err == nil {
		_, err = exec.LookPath("wasm-ld")
	}
	if err != nil {
		t.Skipf("SKIPPED: %v; apt-get install clang lld wasi-libc libclang-rt-dev-wasm32", err)
	}
	return path
}
