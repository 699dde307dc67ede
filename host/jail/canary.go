package jail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// CanaryArg is the argument of the hidden command that makes a worker a canary: the program
// then only calls [Canary].
const CanaryArg = "canary"

const (
	canaryTime   = 10 * time.Second
	canaryMemory = 16 * mebibyte
	// canaries is the number of concurrent canaries.
	canaries = 2
	// canaryBytes bounds what the host reads from a canary.
	canaryBytes = 64 << 10
)

// Attempt is one attempt of a canary to escape.
type Attempt struct {
	Name string `json:"name"`
	// Blocked means that it failed, as it should; By says how.
	Blocked bool   `json:"blocked"`
	By      string `json:"by"`
	// Expected means that a layer which is reported as active must have blocked it.
	Expected bool `json:"expected"`
}

// SelfTest is the result of all canaries.
type SelfTest struct {
	Isolation Isolation `json:"isolation"`
	Attempts  []Attempt `json:"attempts"`
}

// Broken returns the attempts that passed a layer reported as active. If there is any, the
// host starts no run: isolation_broken.
func (s SelfTest) Broken() []Attempt {
	var broken []Attempt
	for _, a := range s.Attempts {
		if a.Expected && !a.Blocked {
			broken = append(broken, a)
		}
	}
	return broken
}

// canaryOrder is the first line sent to a canary.
type canaryOrder struct {
	Config  Config  `json:"config"`
	Attempt string  `json:"attempt"`
	Targets targets `json:"targets"`
}

// targets are what a canary tries to reach.
type targets struct {
	DataDir  string `json:"data_dir"`
	HostPID  int    `json:"host_pid"`
	Abstract string `json:"abstract"`
	Memory   uint64 `json:"memory"`
}

// canaryLine is a line of a canary: first the isolation, then the result of the attempt.
type canaryLine struct {
	Isolation Isolation `json:"isolation"`
	Error     string    `json:"error"`
}

// SelfTest starts a canary for each attempt, because most attempts kill the canary, and
// reports the isolation and successful escapes. dataDir is the host's data directory. The
// error is about canaries that could not be started or could not enter the jail, never
// about an escape.
func (l *Launcher) SelfTest(ctx context.Context, dataDir string) (SelfTest, error) {
	bait, err := openBait()
	if err != nil {
		return SelfTest{}, fmt.Errorf("self-test: %w", err)
	}
	defer bait.close()
	names := attemptNames()
	results := make([]canaryResult, len(names))
	var group sync.WaitGroup
	slots := make(chan struct{}, canaries)
	for i, name := range names {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			results[i] = l.canary(ctx, name, targets{DataDir: dataDir, Abstract: bait.name})
		})
	}
	group.Wait()
	return collect(names, results)
}

// canaryResult is the result of a canary; err is set if it made no attempt.
type canaryResult struct {
	isolation Isolation
	blocked   bool
	by        string
	err       error
}

func collect(names []string, results []canaryResult) (SelfTest, error) {
	var test SelfTest
	var errs []error
	for i, r := range results {
		if r.err != nil {
			errs = append(errs, fmt.Errorf("canary %s: %w", names[i], r.err))
			continue
		}
		test.Isolation = r.isolation
		if names[i] != stayPut {
			test.Attempts = append(test.Attempts, Attempt{
				Name: names[i], Blocked: r.blocked, By: r.by, Expected: mustBlock(names[i], r.isolation),
			})
		}
	}
	if len(test.Broken()) > 0 && test.Isolation.Level == LevelFull {
		test.Isolation.Level = LevelPartial // do not claim what was disproved
	}
	return test, errors.Join(errs...)
}

// stayPut is the name of the canary that only reports its isolation.
const stayPut = "none"

// canary runs one canary to its end.
func (l *Launcher) canary(ctx context.Context, name string, aims targets) canaryResult {
	p, err := l.Start(ctx, CanaryArg)
	if err != nil {
		return canaryResult{err: err}
	}
	defer p.Close() // it may be killed at any time
	config, err := p.Config(RunLimits(canaryMemory, 0, canaryTime))
	if err != nil {
		return canaryResult{err: err}
	}
	order := canaryOrder{Config: config, Attempt: name, Targets: aims}
	order.Targets.HostPID, order.Targets.Memory = order.Config.Identity.Parent, order.Config.Limits.DataBytes
	if err := p.Socket.SetDeadline(time.Now().Add(canaryTime)); err != nil {
		return canaryResult{err: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() }) // the read below fails
	defer stop()
	if err := json.NewEncoder(p.Socket).Encode(order); err != nil {
		return canaryResult{err: err}
	}
	return p.listen()
}

// listen reads the lines of a canary to the end.
func (p *Process) listen() canaryResult {
	lines := json.NewDecoder(io.LimitReader(p.Socket, canaryBytes))
	var first, second canaryLine
	if err := lines.Decode(&first); err != nil {
		return canaryResult{err: fmt.Errorf("not behind its walls: %w; %s", err, p.finalDiagnostics())}
	}
	if first.Error != "" {
		return canaryResult{err: errors.New(first.Error)}
	}
	result := canaryResult{isolation: first.Isolation}
	err := lines.Decode(&second)
	switch {
	case err == nil:
		result.blocked, result.by = second.Error != "", second.Error
	case errors.Is(err, io.EOF):
		result.blocked, result.by = p.judge()
	default:
		result.err = err
	}
	return result
}

// judge classifies a canary that ended without a result: killed for the system call, or
// replaced by another program.
func (p *Process) judge() (blocked bool, by string) {
	exit, err := p.Wait()
	switch {
	case err != nil:
		return false, err.Error()
	case exit.Killed:
		return false, "killed by the host"
	case exit.Signal != 0 && exit.Signal == signalViolation:
		return true, "killed for the system call"
	case exit.Signal == 0 && bytes.Contains(exit.head, []byte("failed to create new OS thread")),
		// in a build with cgo it is the C library that gives up
		bytes.Contains(exit.head, []byte("runtime/cgo: pthread_create failed")):
		return true, "no thread could be made"
	}
	return false, fmt.Sprintf("ended with status %d, signal %d", exit.Code, exit.Signal)
}

// finalDiagnostics waits for a canary that hung up and returns the end of its diagnostics.
func (p *Process) finalDiagnostics() string {
	if err := p.Kill(); err != nil {
		return err.Error()
	}
	exit, _ := p.Wait() // the diagnostics are there even if the status is not
	return fmt.Sprintf("status %d, signal %d, %q", exit.Code, exit.Signal, exit.Stderr)
}

// canaryReached is the argument of a program that a canary succeeded in starting.
const canaryReached = "reached"

// Canary is the main function of a canary, the command "worker canary"; args are the
// arguments after these. It enters the jail, seals it, makes one attempt and reports the
// result, if it still can. It returns an exit status.
func Canary(args []string) int {
	if len(args) > 0 { // this is the program that an attempt to exec started
		return 9
	}
	Prepare() // while it has few threads: Enter would do it with all of them
	socket := os.NewFile(SocketFD, "host")
	var order canaryOrder
	if err := json.NewDecoder(socket).Decode(&order); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	out := json.NewEncoder(socket)
	isolation, err := wallIn(order.Config)
	first := canaryLine{Isolation: isolation}
	if err != nil {
		first.Error = err.Error()
	}
	if err := out.Encode(first); err != nil || first.Error != "" {
		return 3
	}
	second := canaryLine{Isolation: isolation}
	if err := attempt(order.Attempt, order.Targets); err != nil {
		second.Error = err.Error()
	}
	if err := out.Encode(second); err != nil {
		return 4
	}
	return 0
}

func wallIn(cfg Config) (Isolation, error) {
	in, err := Enter(cfg, NoDir)
	if err != nil {
		return none(), err
	}
	return in.Seal()
}
