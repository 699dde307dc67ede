package badger_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// The test binary is its own victim: with SLUICE_CHILD set it does what that
// says instead of testing.
func TestMain(m *testing.M) {
	switch os.Getenv("SLUICE_CHILD") {
	case "ingest":
		childIngest(os.Getenv("SLUICE_DIR"), os.Getenv("SLUICE_FAULT"))
	case "fill":
		childFill(os.Getenv("SLUICE_DIR"))
	case "inspect":
		childInspect(os.Getenv("SLUICE_DIR"))
	default:
		os.Exit(m.Run())
	}
}

// What the child writes is a function of the number of the commit, so the
// cursor, which is that number, says what must be stored.
const (
	crashGroups = 40
	crashMost   = 300
)

func crashBatch(n int) *store.Batch {
	b := new(store.Batch)
	b.Reset("s")
	for j := range 1 + n*37%crashMost {
		k := fmt.Appendf(nil, "g%02d-%03d", n%crashGroups, j)
		if (n+j)%11 == 0 {
			b.Append(store.Change{Op: store.Delete, Key: k})
			continue
		}
		b.Append(store.Change{Key: k, Data: fmt.Appendf(nil, `{"n":%d,"pad":"%060d"}`, n/crashGroups/3, j)})
	}
	return b
}

// crashModel is what commits 1 to n leave: key to data, "" for a tombstone.
func crashModel(n int) map[string]string {
	m := map[string]string{}
	for i := 1; i <= n; i++ {
		for _, c := range crashBatch(i).Changes() {
			if _, known := m[string(c.Key)]; known || c.Op == store.Upsert {
				m[string(c.Key)] = string(c.Data)
			}
		}
	}
	return m
}

var crashOptions = badger.WithBulkRoll(badger.WithMemRows(badger.Options{Small: true}, 700), 256<<10)

var crashConnections = []store.ConnectionID{"a", "b"}

// childIngest writes until it is killed, and prints every commit that was
// acknowledged. fault is "point,n": the n-th time the point is reached, it
// kills itself.
func childIngest(dir, fault string) {
	opts := crashOptions
	if point, count, ok := strings.Cut(fault, ","); ok {
		left, _ := strconv.Atoi(count)
		var hits atomic.Int64
		opts.Fault = func(at string) error {
			if at == point && hits.Add(1) == int64(left) {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		}
	}
	s, err := badger.Open(dir, opts)
	exitOn(err)
	if s.Damage() != nil {
		exitOn(s.Damage())
	}
	ctx := context.Background()
	leases, err := s.Leases(ctx)
	exitOn(err)
	for _, l := range leases {
		r, err := s.Submit(ctx, &store.Commit{Lease: l, End: true, Events: []store.Event{{Type: "run.failed", RunID: l.RunID}}})
		exitOn(err)
		_, err = r.Result()
		exitOn(err)
	}
	for _, c := range crashConnections {
		go func() { exitOn(childRun(ctx, s, c)) }()
	}
	select {}
}

func childRun(ctx context.Context, s *badger.Store, c store.ConnectionID) error {
	states, err := s.States(ctx, c, "")
	if err != nil {
		return err
	}
	n := 0
	if len(states) > 0 {
		n, _ = strconv.Atoi(string(states[0].Cursor))
	}
	type pending struct {
		n int
		r *store.Receipt
	}
	queue := make(chan pending, 8)
	go func() {
		for p := range queue {
			_, err := p.r.Result()
			exitOn(err)
			fmt.Printf("%s %d\n", c, p.n)
		}
	}()
	for {
		l, err := s.Acquire(ctx, store.Run{ID: store.RunID(fmt.Sprintf("run_%s%025d", c, time.Now().UnixNano())), ConnectionID: c}, "h", "b", time.Hour)
		if err != nil {
			return err
		}
		for range 50 {
			n++
			r, err := s.Submit(ctx, &store.Commit{
				Lease: l, Batches: []*store.Batch{crashBatch(n)},
				Advance: []store.State{{Stream: "s", Cursor: []byte(strconv.Itoa(n)), RunID: l.RunID}},
				Events:  []store.Event{{Type: "run.batch_ingested", RunID: l.RunID}, {Type: "run.state_advanced", RunID: l.RunID}},
			})
			if err != nil {
				return err
			}
			queue <- pending{n, r}
		}
		r, err := s.Submit(ctx, &store.Commit{Lease: l, End: true, Events: []store.Event{{Type: "run.completed", RunID: l.RunID}}})
		if err == nil {
			_, err = r.Result()
		}
		if err != nil {
			return err
		}
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// crash starts a child, ends it (or lets the fault end it), and returns the
// last commit it acknowledged per connection.
func crash(t *testing.T, dir, fault string, after time.Duration) map[store.ConnectionID]int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLUICE_CHILD=ingest", "SLUICE_DIR="+dir, "SLUICE_FAULT="+fault)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acked := map[store.ConnectionID]int{}
	killed := make(chan struct{})
	lines := bufio.NewScanner(out)
	var timer *time.Timer
	for lines.Scan() {
		if timer == nil { // it is open: the clock starts
			timer = time.AfterFunc(after, func() {
				cmd.Process.Kill()
				close(killed)
			})
		}
		var c string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &c, &n); err != nil {
			break // cut by the kill
		}
		acked[store.ConnectionID(c)] = n
	}
	io.Copy(io.Discard, out)
	err = cmd.Wait()
	if state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !state.Signaled() || state.Signal() != syscall.SIGKILL {
		t.Fatalf("child ended by itself: %v\n%s", err, complaint.String())
	}
	return acked
}

// survived opens the store of a killed child and checks all of §11.1.
func survived(t *testing.T, dir string, acked map[store.ConnectionID]int) {
	t.Helper()
	s, err := badger.Open(dir, crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if s.Damage() != nil {
		t.Fatal(s.Damage())
	}
	if !s.Unclean() {
		t.Error("no unclean marker after a kill (S126)")
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range crashConnections {
		states, err := s.States(t.Context(), c, "")
		if err != nil {
			t.Fatal(err)
		}
		cursor := 0
		if len(states) > 0 {
			cursor, _ = strconv.Atoi(string(states[0].Cursor))
		}
		if cursor < acked[c] {
			t.Fatalf("connection %s: commit %d was acknowledged, the store ends at %d", c, acked[c], cursor)
		}
		w := &writer{t: t, s: s, model: crashModel(cursor)}
		w.compare(c)
		checkRuns(t, s, c)
	}
}

// checkRuns: at most one terminal event a run, and it is the last (invariant 4).
func checkRuns(t *testing.T, s *badger.Store, c store.ConnectionID) {
	t.Helper()
	runs, err := s.Runs(t.Context(), c, "", 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		events, err := s.Events(t.Context(), r.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			if e.Type == "run.completed" && i != len(events)-1 {
				t.Fatalf("run %s goes on after its end", r.ID)
			}
		}
	}
}

func crashCycles() int {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_CRASH_CYCLES")); err == nil {
		return n
	}
	return 6
}

// S114–S121, R77, R92: nothing that was acknowledged is lost and nothing is
// torn when the process is killed at any moment. SLUICE_CRASH_CYCLES sets how
// often.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	for i := range crashCycles() {
		after := time.Duration(20+rand.IntN(400)) * time.Millisecond
		acked := crash(t, dir, "", after)
		t.Logf("cycle %d: killed after %v, acknowledged %v", i, after, acked)
		survived(t, dir, acked)
	}
}

// S152: the same at every fault point, each at several hits.
func TestKillAtFaultPoints(t *testing.T) {
	dir := t.TempDir()
	for _, point := range []string{
		badger.FaultBeforeDB, badger.FaultAfterDB, badger.FaultAfterWitness, badger.FaultBeforeAck,
		badger.FaultTerminalBefore, badger.FaultTerminalAfter,
	} {
		hit := 20 + rand.IntN(20)
		if strings.HasPrefix(point, "terminal") {
			hit = 3
		}
		acked := crash(t, dir, fmt.Sprint(point, ",", hit), time.Minute)
		survived(t, dir, acked)
	}
}
