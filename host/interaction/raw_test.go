package interaction_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// The connector's own words are there while an item is open, and
// erased with it.
func TestRaw(t *testing.T) {
	st := newMemory(runID)
	d := interaction.New(st)
	link := abi.Attachment{Kind: "url", URL: "https://bank.example/approve?t=1"}
	schema := json.RawMessage(`{"a":1}`)
	d.AssistanceOpened(runID,
		run.LiveAssistance{ID: "asst", Message: "Approve", Schema: schema, Attachments: []abi.Attachment{link}})
	schema[1] = 'X' // the run's memory is its own
	got, err := d.Raw(t.Context(), runID, "asst")
	if err != nil || got.Message != "Approve" || string(got.Schema) != `{"a":1}` || len(got.Attachments) != 1 ||
		got.Attachments[0] != link || got.Fields != nil {
		t.Errorf("%+v %v", got, err)
	}
	d.AssistanceClosed(runID, "asst")
	if got, err := d.Raw(t.Context(), runID, "asst"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("closed, and shown: %+v %v", got, err)
	}

	st.commit(runID, store.Interaction{ID: "login", RunID: runID, Message: "Code?"})
	if got, err := d.Raw(t.Context(), runID, "login"); err != nil || got.Message != "Code?" {
		t.Errorf("on its way to the broker: %+v %v", got, err)
	}
	q := otp(runID, "login")
	q.Page = run.Page{Title: "Sign in", Host: "bank.example"}
	a := ask(t, d, st, q)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if got, err := d.Raw(t.Context(), runID, "login"); err == nil && got.Page != nil &&
			*got.Page == (host.OpenPage{Title: "Sign in", URLHost: "bank.example"}) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%+v %v", got, err)
		}
	}
	go func() { a.take() }()
	if err := d.Answer(t.Context(),
		host.Answer{RunID: runID, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)}); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Raw(t.Context(), runID, "login"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("answered, and shown: %+v %v", got, err)
	}

	d.AssistanceOpened(runID, run.LiveAssistance{ID: "asst_2"})
	d.Forget(runID)
	if got, err := d.Raw(t.Context(), runID, "asst_2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the run is over, and shown: %+v %v", got, err)
	}
}

// The timeline tells what became of a question once its run is over.
func TestLookup(t *testing.T) {
	st := newMemory(runID)
	required := func(id string) store.Event {
		return store.Event{Type: "run.interaction_required", InteractionID: id}
	}
	resolved := func(id, status, by string) store.Event {
		return store.Event{Type: "interrupt.resolved", InteractionID: id,
			Data: json.RawMessage(`{"status":"` + status + `","resolvedBy":"` + by + `"}`)}
	}
	for range 1200 { // more than a page
		st.append(runID, store.Event{Type: "run.batch_ingested"})
	}
	st.append(runID, required("a"), resolved("a", "success", "key:k"), required("b"), resolved("b", "cancelled", "owner"),
		required("c"), resolved("c", "timeout", "host"), required("d"), resolved("d", "cancelled", "host"), required("e"))
	st.end(runID)
	d := interaction.New(st)
	for id, want := range map[string]interaction.Outcome{
		"a": interaction.Answered, "b": interaction.Answered, "c": interaction.Closed, "d": interaction.Closed,
		"e": interaction.StillOpen, "f": interaction.NeverAsked,
	} {
		err := d.Answer(t.Context(), host.Answer{RunID: runID, InteractionID: id, Status: "cancelled"})
		if code(err) != "no_pending_interaction" || detail(err, "outcome") != string(want) {
			t.Errorf("%s: %v with %v, want %s", id, err, detail(err, "outcome"), want)
		}
	}
}

// Thousands of questions may be open: one costs the broker less than a kilobyte,
// goroutine and question aside.
func TestManyQuestions(t *testing.T) {
	const many = 5000
	st := newMemory()
	d := interaction.New(st)
	questions := make([]run.Question, many)
	for i := range questions {
		id := store.RunID("run_" + strconv.Itoa(i))
		st.runs[id] = store.Run{ID: id, Status: "active"}
		questions[i] = otp(id, "login")
	}
	before := heap()
	askers := make([]*asker, many)
	for i, q := range questions {
		askers[i] = ask(t, d, st, q)
	}
	for d.Waiting() < many {
		runtime.Gosched()
	}
	perQuestion := int64(heap()-before) / many
	t.Logf("%d bytes for an open question with the test's own books", perQuestion)
	if perQuestion > 4<<10 {
		t.Errorf("an open question costs %d bytes", perQuestion)
	}
	for i := range askers {
		go askers[i].take()
		id := store.RunID("run_" + strconv.Itoa(i))
		if err := d.Answer(t.Context(),
			host.Answer{RunID: id, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)}); err != nil {
			t.Fatal(err)
		}
	}
	if d.Waiting() != 0 {
		t.Errorf("%d questions are left", d.Waiting())
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
