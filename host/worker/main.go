package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
)

// Exit statuses of the process. It is 0 after an Exit message; otherwise it only helps in diagnosing.
const (
	statusDone   = 0
	statusOrphan = 3 // the host is gone
	statusWire   = 4 // the host sent something that this build never sends
)

// Main runs the hidden command: this process becomes a worker, which does what the host sends over descriptor 3. Main
// returns the exit status. It must be called before the program does anything else, in a process that host/jail
// started. args are empty, or make it a canary of the self-test.
func Main(args []string) int {
	if len(args) > 0 && args[0] == jail.CanaryArg {
		return jail.Canary(args[1:])
	}
	if err := prepareSocket(jail.SocketFD); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return statusOrphan
	}
	w := &worker{
		socket: os.NewFile(jail.SocketFD, "host"),
		link:   newLink(jail.SocketFD),
	}
	w.relay = newRelay(w.link, func(err error) { os.Exit(w.lost(err)) })
	if err := w.serve(context.Background()); err != nil {
		return w.lost(err)
	}
	return statusDone
}

// A worker is the state of this process.
type worker struct {
	socket *os.File // referenced, so that its finalizer does not close it
	link   *link
	relay  *relay
	load   abi.Load
	walls  *jail.Inside
	ready  abi.Ready
	peak   peak
}

// lost prints why the process ends without an Exit message and returns its exit status.
func (w *worker) lost(err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	if errors.Is(err, abi.ErrWire) {
		return statusWire
	}
	return statusOrphan
}

// serve does the worker's steps in the only safe order. It returns an error if the host can no longer be told;
// everything else ends in an Exit message.
func (w *worker) serve(ctx context.Context) error {
	if err := w.hello(); err != nil {
		return err
	}
	jail.Prepare() // while there is nothing else to do
	if err := w.receive(); err != nil {
		return err
	}
	exit, err := w.doTask(ctx)
	if err != nil {
		exit = failure(err)
	}
	exit.GuestMemoryBytes = w.peak.bytes
	return w.sendExit(exit)
}

// sendExit sends the Exit message and waits until the host has received it, because the process's resource usage is
// only visible from outside while it lives.
func (w *worker) sendExit(exit abi.Exit) error {
	w.relay.send(abi.CallExit, exit.Append(nil))
	for {
		if h := w.relay.receive(); h.Call == abi.CallExit {
			return nil
		}
	}
}

// hello sends the build id.
func (w *worker) hello() error {
	w.relay.id++
	h := abi.Hello{Build: BuildID(), PID: uint32(os.Getpid())}
	return w.link.send(abi.WireHeader{ID: w.relay.id, Call: abi.CallHello}, h.Append(nil))
}

// receive waits for the load message and its descriptors.
func (w *worker) receive() error {
	n, files, err := jail.ReceiveFDs(w.socket, w.link.space[:])
	if err != nil {
		return err
	}
	w.link.in = w.link.space[:n]
	h, err := w.link.next()
	if err != nil {
		return err
	}
	if h.Call != abi.CallLoad {
		return fmt.Errorf("%w: call %d before load", abi.ErrWire, h.Call)
	}
	payload := make([]byte, h.Length)
	if err := w.link.read(payload); err != nil {
		return err
	}
	if w.load, err = abi.ParseLoad(payload); err != nil {
		return err
	}
	w.link.limits = w.load.Limits
	want := 1
	if w.load.Directory {
		want = 2
	}
	if len(files) != want {
		return fmt.Errorf("%w: %d descriptors, want %d", abi.ErrWire, len(files), want)
	}
	for i, fd := range []int{jail.ModuleFD, jail.DirFD}[:want] {
		if err := jail.Place(files[i], fd); err != nil {
			return err
		}
	}
	return nil
}

// doTask does the task. Errors other than *failed become failures of the engine.
func (w *worker) doTask(ctx context.Context) (abi.Exit, error) {
	module, err := mapModule(jail.ModuleFD)
	if err != nil {
		return abi.Exit{}, stage(abi.StageMemory, err)
	}
	if err := w.enterJail(); err != nil {
		return abi.Exit{}, stage(abi.StageIsolation, err)
	}
	go w.watch()
	switch w.load.Task {
	case abi.TaskCompile:
		return w.compile(ctx, module)
	case abi.TaskRun:
		return w.run(ctx, module)
	}
	return abi.Exit{}, stage(abi.StageEngine, fmt.Errorf("task %d is not one of a worker", w.load.Task))
}

// enterJail builds the inner half of the jail, before anything reads the module.
func (w *worker) enterJail() error {
	began := time.Now()
	var cfg jail.Config
	if err := json.Unmarshal(w.load.Jail, &cfg); err != nil {
		return fmt.Errorf("read configuration of the walls: %w", err)
	}
	dir := jail.NoDir
	if w.load.Directory {
		dir = jail.DirFD
	}
	if w.load.Task == abi.TaskCompile && w.load.Directory {
		if err := makeOutput(fmt.Sprintf("%s/%d", descriptors, dir), cfg.Identity); err != nil {
			return fmt.Errorf("make directory for code: %w", err)
		}
	}
	var err error
	if w.walls, err = jail.Enter(cfg, dir); errors.Is(err, jail.ErrOrphan) {
		os.Exit(w.lost(err))
	}
	w.ready.Enter = time.Since(began)
	return err
}

// watch ends the process when the host is gone, regardless of what the guest is doing. The parent-death signal does the
// same; either is sufficient.
func (w *worker) watch() {
	err := awaitHangup(jail.SocketFD)
	os.Exit(w.lost(errors.Join(errors.New("host is gone"), err)))
}

// BuildID identifies the program. The host refuses a worker of another build.
func BuildID() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	id := info.Main.Path + "@" + info.Main.Version + " " + info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision", "vcs.modified", "CGO_ENABLED", "GOARCH":
			id += " " + s.Value
		}
	}
	return id
}

// A stageError is an error with the stage in which the task failed.
type stageError struct {
	stage string
	err   error
}

func (f *stageError) Error() string { return f.err.Error() }
func (f *stageError) Unwrap() error { return f.err }

func stage(name string, err error) error { return &stageError{stage: name, err: err} }

func failure(err error) abi.Exit {
	name := abi.StageEngine
	var f *stageError
	if errors.As(err, &f) {
		name = f.stage
	}
	return abi.Exit{Kind: abi.ExitFailed, TrapKind: name, Detail: err.Error()}
}
