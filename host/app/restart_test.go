package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// servesIn makes this binary a service in a data directory, until it is killed.
const servesIn = "SLUICE_TEST_SERVES_IN"

// serve starts a run of every connection, and of the conformance connector, and
// says which, once all of them ask.
func serve(dir string) int {
	ctx := context.Background()
	h, err := app.Open(ctx, hostOptions(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := h.Service(ctx, app.ServiceOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, w := range []string{"one", "two", "conformance-ask"} {
		rec, err := s.StartRun(host.As(ctx, owner), host.StartRun{WorkflowID: w, Inputs: json.RawMessage(oneCode)})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		wake, _ := h.Store.Watch(rec.ID)
		for {
			open, err := h.Store.Pending(ctx, rec.ID)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			if len(open) > 0 {
				break
			}
			<-wake
		}
		fmt.Println(rec.ID)
	}
	select {}
}

// A run that waits for its owner outlives its host, whether that is killed or stopped: the
// question is the same, what was answered is not asked again, and every record is there once. A
// run that cannot outlive its host ends as it did, and says so.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	asking(t, dir)
	ids := killed(t, dir)
	h, err := app.Open(t.Context(), hostOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	s := openService(t, h, app.ServiceOptions{})
	ended := over(t, h, ids[2])
	failed := timeline(t, h, ids[2], "run.failed")
	if ended.Status != "failed" || len(failed) != 1 || failed[0]["reason"] != "controller_restarted" ||
		failed[0]["open_interaction_id"] == nil {
		t.Errorf("%s: %s %v", ids[2], ended.Status, failed)
	}
	asked := timeline(t, h, ids[2], "run.interaction_required")
	if asked[0]["outlives_host"] != false || asked[0]["host_bound"] == nil {
		t.Errorf("what ends with its host says %v", asked[0])
	}
	var result struct {
		HostBound string `json:"host_bound"`
		Failure   struct{ Message string }
	}
	if err := json.Unmarshal(ended.Result, &result); err != nil {
		t.Fatal(err)
	}
	if why := fmt.Sprint(asked[0]["host_bound"]); result.HostBound != why || ended.HostBound != why ||
		!strings.Contains(result.Failure.Message, why) {
		t.Errorf("its result says %q, %q", result.HostBound, result.Failure.Message)
	}
	late := host.Answer{RunID: ids[2], InteractionID: fmt.Sprint(failed[0]["open_interaction_id"]), Status: "cancelled"}
	if code, details := refusalCode(s.Answer(host.As(t.Context(), owner), late)); code != "no_pending_interaction" ||
		details["outcome"] != "still_open" {
		t.Errorf("answered late: %s %v", code, details)
	}

	for _, id := range ids[:2] {
		asked := timeline(t, h, id, "interrupt.requested")
		if q := parked(t, h, id); q.Journal == 0 || q.HostBound != "" || len(asked) != 1 {
			t.Fatalf("%s: %+v, asked %d times", id, q, len(asked))
		}
	}
	answer(t, s, parked(t, h, ids[0]), "code", `"424242"`)
	second := parkedAgain(t, h, ids[1], answer(t, s, parked(t, h, ids[1]), "answer", `"autumn"`))
	s.Close(t.Context())
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err = app.Open(t.Context(), hostOptions(dir)); err != nil {
		t.Fatal(err)
	}
	if open := parked(t, h, ids[1]); open.Interrupt != second.Interrupt {
		t.Errorf("after the stop: %+v", open)
	}
	if got := timeline(t, h, ids[1], "run.suspended"); len(got) != 1 || got[0]["cause"] != "host_stopped" {
		t.Errorf("suspended: %v", got)
	}
	s = openService(t, h, app.ServiceOptions{})
	answer(t, s, second, "code", `"171717"`)
	for i, id := range ids[:2] {
		if rec := over(t, h, id); rec.Status != "succeeded" {
			t.Fatalf("%s: %s", id, rec.Result)
		}
		if n := len(timeline(t, h, id, "run.started")); n != 1 {
			t.Errorf("started %d times", n)
		}
		if n := len(timeline(t, h, id, "interrupt.requested")); n != i+1 {
			t.Errorf("run %d asked %d times", i, n)
		}
		if n := len(timeline(t, h, id, "run.resumed")); n != i+1 {
			t.Errorf("run %d was resumed %d times", i, n)
		}
		page, err := h.Store.Records(t.Context(),
			store.RecordQuery{Connection: store.ConnectionID([]string{"one", "two"}[i]), Stream: "answers"})
		if err != nil || len(page.Records) != i+1 {
			t.Errorf("run %d: %d records %v", i, len(page.Records), err)
		}
		if _, err := h.Store.Journal(t.Context(), id, 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a journal is left: %v", err)
		}
	}
}

// asking makes the connections of a data directory whose runs ask.
func asking(t *testing.T, dir string) {
	t.Helper()
	h, err := app.Open(t.Context(), hostOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	c := installAs(t, h, askModule(t), nil)
	installAs(t, h, conformanceAsk(t), conformance)
	connect(t, h, c, "one", oneCode)
	connect(t, h, c, "two", twoQuestions)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// An outage is a store that is unavailable to whoever reads journals or takes over a lease, while on.
type outage struct {
	store.Store
	on  atomic.Bool
	met chan struct{} // capacity 1

	leases bool // leases are taken over even then
}

func (o *outage) away() error {
	if !o.on.Load() {
		return nil
	}
	select {
	case o.met <- struct{}{}:
	default:
	}
	return fmt.Errorf("no server listens: %w", store.ErrUnavailable)
}

func (o *outage) Journal(ctx context.Context, id store.RunID, n uint64) ([]byte, error) {
	if err := o.away(); err != nil {
		return nil, err
	}
	return o.Store.Journal(ctx, id, n)
}

func (o *outage) TakeOver(ctx context.Context, l store.Lease, host, boot string,
	ttl time.Duration) (store.Lease, error) {
	if !o.leases {
		if err := o.away(); err != nil {
			return store.Lease{}, err
		}
	}
	return o.Store.TakeOver(ctx, l, host, boot, ttl)
}

// Runs that wait for their owner sleep through an outage of the store, and one that is answered or whose host starts
// during it goes on afterwards.
func TestOutage(t *testing.T) {
	t.Run("before the lease", func(t *testing.T) { testOutage(t, false) })
	t.Run("behind the lease", func(t *testing.T) { testOutage(t, true) })
}

func testOutage(t *testing.T, leases bool) {
	t.Helper()
	dir := t.TempDir()
	asking(t, dir)
	ids := killed(t, dir)
	h, err := app.Open(t.Context(), hostOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	gone := &outage{Store: h.Store, met: make(chan struct{}, 1), leases: leases}
	h.Store = gone
	gone.on.Store(true)
	s := openService(t, h, app.ServiceOptions{})
	<-gone.met // the run is looked for
	gone.on.Store(false)
	second := parkedAgain(t, h, ids[1], answer(t, s, parked(t, h, ids[1]), "answer", `"autumn"`))
	select {
	case <-gone.met:
	default:
	}
	first := parked(t, h, ids[0])
	gone.on.Store(true)
	go func() {
		<-gone.met // it is to be resumed
		gone.on.Store(false)
	}()
	answer(t, s, first, "code", `"424242"`)
	answer(t, s, second, "code", `"171717"`)
	for _, id := range ids[:2] {
		if rec := over(t, h, id); rec.Status != "succeeded" {
			t.Errorf("%s: %s", id, rec.Result)
		}
	}
}

const twoQuestions = `{"ask": [{"kind": "clarification", "message": "Which season?"}, {"kind": "otp", "message": "Code?"}]}`

// answer answers a question, and returns it.
func answer(t *testing.T, s *app.Service, q store.Interaction, field, value string) store.Interaction {
	t.Helper()
	a := host.Answer{RunID: q.RunID, InteractionID: q.ID, Status: "success",
		Data: map[string]json.RawMessage{field: json.RawMessage(value)}}
	if err := s.Answer(host.As(t.Context(), owner), a); err != nil {
		t.Fatal(err)
	}
	return q
}

// parkedAgain waits until a run asks something else.
func parkedAgain(t *testing.T, h *app.Host, id store.RunID, but store.Interaction) store.Interaction {
	t.Helper()
	wake, stop := h.Store.Watch(id)
	defer stop()
	for {
		if q := parked(t, h, id); q.Interrupt != but.Interrupt {
			return q
		}
		waitFor(t, wake, id)
	}
}

// killed runs a service until its runs ask, and kills it.
func killed(t *testing.T, dir string) (ids []store.RunID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), servesIn+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for len(ids) < 3 && lines.Scan() {
		ids = append(ids, store.RunID(strings.TrimSpace(lines.Text())))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait() // killed
	if len(ids) != 3 {
		t.Fatalf("the service started %v", ids)
	}
	return ids
}

// A service that is closed leaves waiting what waits, and the host can be closed after it.
func TestClosed(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	connect(t, h, installAs(t, h, askModule(t), nil), "ask", oneCode)
	rec := startRun(t, s, host.StartRun{WorkflowID: "ask"})
	q := parked(t, h, rec.ID)
	s.Close(t.Context())
	if got := parked(t, h, rec.ID); got.Interrupt != q.Interrupt {
		t.Errorf("the question is %+v", got)
	}
	if got := timeline(t, h, rec.ID, "run.suspended"); len(got) != 1 || got[0]["cause"] != "host_stopped" {
		t.Errorf("%v", got)
	}
	if _, err := s.StartRun(host.As(t.Context(), owner), host.StartRun{WorkflowID: "ask"}); true {
		if code, _ := refusalCode(err); code != "unavailable" {
			t.Error(err)
		}
	}
	a := host.Answer{RunID: rec.ID, InteractionID: q.ID, Status: "cancelled"}
	if code, _ := refusalCode(s.Answer(host.As(t.Context(), owner), a)); code != "unavailable" {
		t.Error(code)
	}
}

// A run that cannot be resumed ends and says why, its connection is free again, and nothing is
// stored twice.
func TestNotResumed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, h *app.Host, q store.Interaction)
		reason string
		text   string
	}{
		"other settings": {func(t *testing.T, h *app.Host, _ store.Interaction) {
			if _, err := h.Store.ChangeConnection(t.Context(), "ask", func(c *store.Connection) error {
				c.Settings = json.RawMessage(`{"ask": [{"kind": "otp", "message": "Another code?"}]}`)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}, "replay_diverged", "what it is started with has changed"},
		"a flipped bit": {func(t *testing.T, h *app.Host, q store.Interaction) { flip(t, h, q, 0) },
			"replay_diverged", "is damaged"},
		"a flipped bit of the mark": {func(t *testing.T, h *app.Host, q store.Interaction) { flip(t, h, q, q.Journal-1) },
			"controller_restarted", "is damaged"},
		"no module": {func(t *testing.T, h *app.Host, _ store.Interaction) {
			if err := h.Store.DeleteConnector(t.Context(), "https://connectors.sluice.dev/ask", false); err != nil {
				t.Fatal(err)
			}
		}, "controller_restarted", "cannot be resumed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h, err := app.Open(t.Context(), hostOptions(dir))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
			s := openService(t, h, app.ServiceOptions{})
			connector := installAs(t, h, askModule(t), nil)
			connect(t, h, connector, "ask", oneCode)
			rec := startRun(t, s, host.StartRun{WorkflowID: "ask"})
			q := parked(t, h, rec.ID)
			s.Close(t.Context())
			c.change(t, h, q)
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			if h, err = app.Open(t.Context(), hostOptions(dir)); err != nil {
				t.Fatal(err)
			}
			s = openService(t, h, app.ServiceOptions{})
			a := host.Answer{RunID: rec.ID, InteractionID: q.ID, Status: "success",
				Data: map[string]json.RawMessage{"code": json.RawMessage(`"424242"`)}}
			if code, _ := refusalCode(s.Answer(host.As(t.Context(), owner), a)); code != "no_pending_interaction" {
				t.Errorf("the answer: %q", code)
			}
			over(t, h, rec.ID)
			failed := timeline(t, h, rec.ID, "run.failed")
			if len(failed) != 1 || failed[0]["reason"] != c.reason ||
				!strings.Contains(fmt.Sprint(failed[0]["failure_message"]), c.text) {
				t.Errorf("%v", failed)
			}
			if all, err := h.Store.Leases(t.Context()); err != nil || len(all) > 0 {
				t.Errorf("leases are left: %v %v", all, err)
			}
			if open, err := h.Store.Pending(t.Context(), ""); err != nil || len(open) > 0 {
				t.Errorf("questions are left: %v %v", open, err)
			}
		})
	}
}

// flip changes a bit of a piece of a run's journal.
func flip(t *testing.T, h *app.Host, q store.Interaction, n uint64) {
	t.Helper()
	piece, err := h.Store.Journal(t.Context(), q.RunID, n)
	if err != nil {
		t.Fatal(err)
	}
	piece[len(piece)/2] ^= 4
	leases, err := h.Store.Leases(t.Context())
	if err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	receipt, err := h.Store.Submit(t.Context(),
		&store.Commit{Lease: leases[0], Journal: []store.JournalPiece{{N: n, Data: piece}}})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run that has waited for long sleeps without a worker, and an answer, a cancel or the end of
// its time wakes it.
func TestAsleep(t *testing.T) {
	o := hostOptions(t.TempDir())
	o.Journal.Awake = time.Millisecond
	h := hostWith(t, o)
	s := openService(t, h, app.ServiceOptions{})
	c := installAs(t, h, askModule(t), nil)
	asleep := func(id store.ConnectionID, settings string) store.Interaction {
		connect(t, h, c, id, settings)
		rec := startRun(t, s, host.StartRun{WorkflowID: string(id)})
		q := parked(t, h, rec.ID)
		eventually(t, "it sleeps",
			func() bool { return len(timeline(t, h, rec.ID, "run.suspended")) == 1 && s.RunStats().Accepted == 0 })
		if _, live := s.LiveRun(rec.ID); live {
			t.Error("it is performed")
		}
		return q
	}
	q := asleep("answered", oneCode)
	answer(t, s, q, "code", `"424242"`)
	if rec := over(t, h, q.RunID); rec.Status != "succeeded" {
		t.Errorf("answered: %s", rec.Result)
	}
	q = asleep("cancelled", oneCode)
	if _, err := s.PauseRun(host.As(t.Context(), owner), q.RunID, "", ""); true {
		if code, _ := refusalCode(err); code != "conflict" {
			t.Errorf("paused: %v", err)
		}
	}
	if status, err := s.CancelRun(host.As(t.Context(), owner), q.RunID, "enough"); err != nil || status != "cancelled" {
		t.Errorf("%s %v", status, err)
	}
	if rec := over(t, h, q.RunID); rec.Status != "cancelled" {
		t.Errorf("cancelled: %s", rec.Result)
	}
	q = asleep("revoked", oneCode)
	granted, err := h.Store.Connection(t.Context(), "revoked")
	if err != nil {
		t.Fatal(err)
	}
	granted.Grant = &store.Grant{AccessMode: "continuous", Status: "revoked"}
	if err := h.Store.PutConnection(t.Context(), granted); err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(host.As(t.Context(), owner),
		host.Answer{RunID: q.RunID, InteractionID: q.ID, Status: "success",
			Data: map[string]json.RawMessage{"code": json.RawMessage(`"424242"`)}}); err == nil {
		t.Error("an answer is taken although the grant is over")
	}
	if rec := over(t, h, q.RunID); !strings.Contains(string(rec.Result), `"terminal_reason":"grant_revoked"`) {
		t.Errorf("revoked: %s", rec.Result)
	}
	q = asleep("late", `{"ask": [{"kind": "otp", "message": "Code?", "timeout_seconds": 2}]}`)
	if rec := over(t, h, q.RunID); rec.Status != "succeeded" {
		t.Errorf("late: %s", rec.Result)
	}
	if got := timeline(t, h, q.RunID, "run.resumed"); len(got) != 1 || got[0]["cause"] != "timeout" {
		t.Errorf("late: %v", got)
	}
}

// A run that waits sleeps for another that finds no place: who has waited for longest goes first.
func TestMakesRoom(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{Accepted: 1})
	c := installAs(t, h, askModule(t), nil)
	var asked []store.Interaction
	for n, id := range []store.ConnectionID{"one", "two", "three"} {
		connect(t, h, c, id, oneCode)
		rec := startRun(t, s, host.StartRun{WorkflowID: string(id)})
		asked = append(asked, parked(t, h, rec.ID))
		eventually(t, "it stands", func() bool { return s.RunStats().Idle == min(n+1, 2) })
	}
	suspended := func(want ...int) {
		t.Helper()
		for i, q := range asked {
			got := timeline(t, h, q.RunID, "run.suspended")
			if len(got) != want[i] || want[i] > 0 && got[0]["cause"] != "room_wanted" {
				t.Errorf("run %d: %v", i, got)
			}
		}
	}
	suspended(1, 0, 0)
	answer(t, s, asked[0], "code", `"424242"`) // it is woken, which takes a place
	over(t, h, asked[0].RunID)
	suspended(1, 1, 0)
	for _, q := range asked[1:] {
		answer(t, s, q, "code", `"424242"`)
	}
	for _, q := range asked {
		if rec := over(t, h, q.RunID); rec.Status != "succeeded" {
			t.Errorf("%s: %s", rec.Status, rec.Result)
		}
	}
}

// While memory is short, whatever waits sleeps.
func TestMemoryShort(t *testing.T) {
	o := hostOptions(t.TempDir())
	o.Journal.Awake, o.Journal.FreeMemory = -1, math.MaxInt
	h := hostWith(t, o)
	s := openService(t, h, app.ServiceOptions{})
	c := installAs(t, h, askModule(t), nil)
	for _, id := range []store.ConnectionID{"one", "two"} {
		connect(t, h, c, id, oneCode)
		startRun(t, s, host.StartRun{WorkflowID: string(id)})
	}
	eventually(t, "both sleep", func() bool {
		open, err := h.Store.Pending(t.Context(), "")
		return err == nil && len(open) == 2 && s.RunStats().Accepted == 0
	})
	open, err := h.Store.Pending(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range open {
		if got := timeline(t, h, q.RunID, "run.suspended"); len(got) != 1 || got[0]["cause"] != "room_wanted" {
			t.Errorf("%v", got)
		}
		answer(t, s, q, "code", `"424242"`)
		if rec := over(t, h, q.RunID); rec.Status != "succeeded" {
			t.Errorf("%s: %s", rec.Status, rec.Result)
		}
	}
}
