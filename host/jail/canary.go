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

// CanaryArg is the argument after the hidden command that makes a worker a
// canary: the program calls [Canary] then, and nothing else.
const CanaryArg = "canary"

const (
	canaryTime   = 10 * time.Second
	canaryMemory = 16 * mebibyte
	// canaries is how many run at once.
	canaries = 2
	// canaryBytes bounds what the host reads from a canary.
	canaryBytes = 64 << 10
)

// Attempt is one try of a canary to get out.
type Attempt struct {
	Name string `json:"name"`
	// Blocked: it failed, as it should; By says how.
	Blocked bool   `json:"blocked"`
	By      string `json:"by"`
	// Expected: a layer that is reported as active must have blocked it.
	Expected bool `json:"expected"`
}

// SelfTest is what canaries found out.
type SelfTest struct {
	Isolation Isolation `json:"isolation"`
	Attempts  []Attempt `json:"attempts"`
}

// Broken are the attempts that got through a layer reported as active. If there
// is one, the host starts no run: isolation_broken.
func (s SelfTest) Broken() []Attempt {
	var broken []Attempt
	for _, a := range s.Attempts {
		if a.Expected && !a.Blocked {
			broken = append(broken, a)
		}
	}
	return broken
}

// canaryOrder is the first line to a canary.
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

// canaryLine is what a canary says: first what holds, then how the attempt went.
type canaryLine struct {
	Isolation Isolation `json:"isolation"`
	Error     string    `json:"error"`
}

// SelfTest starts one canary for each way out of a worker, because most of them
// end in the canary's death, and reports what holds and what got through.
// dataDir is the host's data directory. The error is about canaries that could
// not be started or did not get behind their walls, never about an escape.
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

// canaryResult is one canary's end; err is set if it never tried.
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
		test.Isolation.Level = LevelPartial // what was disproved is not said
	}
	return test, errors.Join(errs...)
}

// stayPut is the canary that only tells what holds.
const stayPut = "none"

// canary runs one canary to its end.
func (l *Launcher) canary(ctx context.Context, name string, aims targets) canaryResult {
	p, err := l.Start(ctx, CanaryArg)
	if err != nil {
		return canaryResult{err: err}
	}
	defer p.Close() // a killed canary is all there is to see
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

// listen hears what a canary has to say until it falls silent.
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

// judge decides about a canary that ended without a word: killed for the system
// call, or become another program.
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
		bytes.Contains(exit.head, []byte("runtime/cgo: pthread_create failed")): // in a build with cgo it is the C library that gives up
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

// canaryReached is the argument of a program that a canary managed to start.
const canaryReached = "reached"

// Canary is the main function of a canary, the command "worker canary";
// args follow these two. It enters, seals, makes the one attempt it is told to
// and says how that went, if it still can. The result is an exit status.
func Canary(args []string) int {
	if len(args) > 0 { // this is the program that an attempt to exec started
		return 9
	}
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
