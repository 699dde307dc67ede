//go:build unix

package badger_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
	"github.com/sluicehost/sluice/tests/campaign"
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
	if os.Getenv("SLUICE_UNSYNCED") != "" {
		opts = badger.WithoutSync(opts)
	}
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
		r, err := s.Submit(ctx, &store.Commit{Lease: l, End: true,
			Events: []store.Event{{Type: "run.failed", RunID: l.RunID}}})
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
		id := store.RunID(fmt.Sprintf("run_%s%025d", c, time.Now().UnixNano()))
		l, err := s.Acquire(ctx, store.Run{ID: id, ConnectionID: c}, "h", "b", time.Hour,
			store.Write{Kind: store.Schedules, ID: string(c), Data: []byte(strconv.Quote(string(id)))},
			store.Write{Kind: store.Replies, ID: string(id), Data: []byte(`1`), ExpiresAt: time.Unix(1, 0)})
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
		r, err := s.Submit(ctx, &store.Commit{Lease: l, End: true,
			Events: []store.Event{{Type: "run.completed", RunID: l.RunID}}})
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

// A victim is a child that ingests until it is killed.
type victim struct {
	cmd       *exec.Cmd
	complaint strings.Builder
	open      chan struct{} // closed when the first commit was acknowledged, or none can be
	over      chan struct{} // closed when no acknowledgement can come any more
	acked     map[store.ConnectionID]int
}

func ingesting(t *testing.T, dir string, env ...string) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command(os.Args[0]), open: make(chan struct{}), over: make(chan struct{}),
		acked: map[store.ConnectionID]int{}}
	v.cmd.Env = append(append(os.Environ(), "SLUICE_CHILD=ingest", "SLUICE_DIR="+dir), env...)
	v.cmd.Stderr = &v.complaint
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go v.listen(out)
	return v
}

func (v *victim) listen(out io.Reader) {
	defer close(v.over)
	began := sync.OnceFunc(func() { close(v.open) })
	defer began()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var c string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &c, &n); err != nil {
			break // cut by the kill
		}
		v.acked[store.ConnectionID(c)] = n
		began()
	}
	io.Copy(io.Discard, out)
}

// kill kills it, unless it does that itself, and returns the last commit that it
// acknowledged for each connection.
func (v *victim) kill(t *testing.T, itself bool) map[store.ConnectionID]int {
	t.Helper()
	if !itself {
		_ = v.cmd.Process.Kill() // one that ended shows below
	}
	<-v.over
	err := v.cmd.Wait()
	if state, ok := v.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !state.Signaled() ||
		state.Signal() != syscall.SIGKILL {
		t.Fatalf("child ended by itself: %v\n%s", err, v.complaint.String())
	}
	return v.acked
}

// survived opens the store that a killed child left and checks all that a crash must not break.
func survived(t *testing.T, c *campaign.Campaign, dir string, acked map[store.ConnectionID]int) {
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
		t.Error("no unclean marker after a kill")
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range crashConnections {
		states, err := s.States(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		cursor := 0
		if len(states) > 0 {
			cursor, _ = strconv.Atoi(string(states[0].Cursor))
		}
		if cursor < acked[id] {
			c.Lost(acked[id]-cursor, "connection %s: commit %d was acknowledged, the store ends at %d", id, acked[id], cursor)
		}
		model := crashModel(cursor)
		c.Checked(len(model))
		w := &writer{t: t, s: s, model: model}
		w.compare(id)
		checkRuns(t, s, id)
	}
	if err := s.Settle(t.Context()); err != nil { // what had expired is swept
		t.Fatal(err)
	}
	if n := s.KeptDocuments(); n > len(crashConnections) {
		t.Fatalf("%d documents are left", n)
	}
	c.Cycle()
	if t.Failed() {
		t.FailNow()
	}
}

// checkRuns: at most one terminal event a run, and it is the last.
func checkRuns(t *testing.T, s *badger.Store, c store.ConnectionID) {
	t.Helper()
	runs, err := s.Runs(t.Context(), c, "", 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) > 0 { // the document that was written with the start is that of the newest run
		d, err := s.Document(t.Context(), store.Schedules, string(c))
		if err != nil || string(d.Data) != strconv.Quote(string(runs[0].ID)) {
			t.Fatalf("document of run %s says %s, %v", runs[0].ID, d.Data, err)
		}
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

// Nothing that was acknowledged is lost and nothing is
// torn when the process is killed at any moment.
func TestKill(t *testing.T) {
	c := campaign.New(t, "kill -9, the store")
	dir := t.TempDir()
	for range c.Length(6, 1) {
		v := ingesting(t, dir)
		<-v.open
		<-time.After(time.Duration(c.IntN(400)) * time.Millisecond)
		survived(t, c, dir, v.kill(t, false))
	}
}

// The same at every fault point, each at several hits.
func TestKillAtFaultPoints(t *testing.T) {
	c := campaign.New(t, "kill -9, the store's fault points")
	dir := t.TempDir()
	points := []string{
		badger.FaultBeforeDB, badger.FaultAfterDB, badger.FaultAfterWitness, badger.FaultBeforeAck,
		badger.FaultTerminalBefore, badger.FaultTerminalAfter,
	}
	for i := range c.Length(len(points), 1) {
		point := points[i%len(points)]
		hit := 20 + c.IntN(20)
		if strings.HasPrefix(point, "terminal") {
			hit = 3
		}
		v := ingesting(t, dir, fmt.Sprint("SLUICE_FAULT=", point, ",", hit))
		survived(t, c, dir, v.kill(t, true))
	}
}
