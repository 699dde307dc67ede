//go:build linux

package jail_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/jail"
)

// workerExecutable is what the tests start as worker: the test binary itself,
// or, under the race detector, one built as a release is.
var workerExecutable string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if len(os.Args) > 2 && os.Args[2] == jail.CanaryArg {
			os.Exit(jail.Canary(os.Args[3:]))
		}
		os.Exit(workerMain(os.Args[2:]))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	workerExecutable = os.Getenv("JAIL_TEST_WORKER") // set by tests that run tests
	if !raceEnabled || workerExecutable != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "jail")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	workerExecutable = filepath.Join(dir, "jail.test")
	build := exec.Command("go", "test", "-c", "-o", workerExecutable, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build worker: %v\n%s", err, out)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// order is what the host's side of a test tells its worker.
type order struct {
	Config jail.Config
	Dir    bool // a directory comes at DirFD
	Seal   bool
	Do     string // an action of worker_test.go
}

// report is what the worker answers after it entered and, if ordered, sealed.
type report struct {
	Error     string
	Isolation jail.Isolation
	Dir       string
	Arrived   arrival
	Result    []string
}

// arrival is what the worker found before it did anything.
type arrival struct {
	Args []string
	Env  []string
	FDs  []string
}

// worker is a started worker with the host's end of the test protocol.
type worker struct {
	*jail.Process
	replies *json.Decoder
}

func launcher(tb testing.TB, options jail.Options) *jail.Launcher {
	tb.Helper()
	options.Executable = workerExecutable
	l, err := jail.NewLauncher(options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

func start(tb testing.TB, l *jail.Launcher) *worker {
	tb.Helper()
	p, err := l.Start(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	return &worker{Process: p, replies: json.NewDecoder(p.Socket)}
}

// send completes the order and sends it with dir, which may be nil.
func (w *worker) send(tb testing.TB, o order, dir *os.File) {
	tb.Helper()
	limits, promised, writable := o.Config.Limits, o.Config.Promised, o.Config.Writable
	if limits.DataBytes == 0 {
		limits = jail.RunLimits(64<<20, 16<<20, 60e9)
	}
	var err error
	if o.Config, err = w.Config(limits); err != nil {
		tb.Fatal(err)
	}
	o.Config.Promised, o.Config.Writable = promised, writable
	o.Dir = dir != nil
	line, err := json.Marshal(o)
	if err != nil {
		tb.Fatal(err)
	}
	module, err := jail.MemFD("module", []byte("\x00asm"))
	if err != nil {
		tb.Fatal(err)
	}
	defer module.Close()
	files := []*os.File{module}
	if dir != nil {
		files = append(files, dir)
	}
	if err := jail.SendFDs(w.Socket, line, files...); err != nil {
		exit, waited := w.Wait()
		tb.Fatalf("%v; the worker ended first: %+v, %v", err, exit, waited)
	}
}

// reply reads one answer.
func (w *worker) reply(tb testing.TB) report {
	tb.Helper()
	var r report
	if err := w.replies.Decode(&r); err != nil {
		exit, _ := w.Wait()
		tb.Fatalf("worker gave no answer: %v; exit %+v\n%s", err, exit, exit.Stderr)
	}
	return r
}

// run starts a worker, orders it, and expects a report without error.
func run(tb testing.TB, l *jail.Launcher, o order, dir *os.File) (*worker, report) {
	tb.Helper()
	w := start(tb, l)
	w.send(tb, o, dir)
	r := w.reply(tb)
	if r.Error != "" {
		tb.Fatalf("worker: %s", r.Error)
	}
	return w, r
}
