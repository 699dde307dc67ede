package app_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

// bySelf has the manifest of examples/ask say that it may run by itself.
var bySelf = []string{`"background_safe": false`, `"background_safe": true`}

func hours(n int64) *int64 { n *= 3600; return &n }

// ticked is a service whose history records can be waited for.
func ticked(t *testing.T, h *app.Host) (*app.Service, func() host.Tick) {
	t.Helper()
	ticks := make(chan host.Tick, 16)
	s := openService(t, h, app.ServiceOptions{Ticked: func(k host.Tick) { ticks <- k }})
	return s, func() host.Tick {
		t.Helper()
		select {
		case k := <-ticks:
			return k
		case <-time.After(time.Minute):
			t.Fatal("no history record")
			return host.Tick{}
		}
	}
}

// A schedule starts a real guest by itself, which asks and is answered.
func TestScheduled(t *testing.T) {
	h := serviceHost(t)
	s, next := ticked(t, h)
	connect(t, h, installAs(t, h, askModule(t, bySelf...), nil), "ask", oneCode)
	got, created, err := s.PutSchedule(host.As(t.Context(), owner), "ask",
		host.ScheduleDefinition{IntervalSeconds: hours(1)}, nil)
	if err != nil || !created || got.EffectiveMode != "automatic" || got.Revision != 1 || got.NextDueAt == nil {
		t.Fatalf("%+v %t %v", got, created, err)
	}
	var lease store.Lease
	eventually(t, "a run at once", func() bool {
		leases, err := h.Store.Leases(t.Context())
		if err != nil || len(leases) == 0 {
			return false
		}
		lease = leases[0]
		return true
	})
	q := parked(t, h, lease.RunID)
	rec, err := h.Store.Run(t.Context(), lease.RunID)
	if err != nil || rec.TriggerKind != "scheduled" || rec.Attempt != 1 || rec.Request.By != "scheduler" ||
		rec.Request.Transport != "" {
		t.Errorf("%+v %v", rec, err)
	}
	eventually(t, "the mark of a question", func() bool {
		c, err := s.Connection(t.Context(), "ask")
		return err == nil && c.NeedsAttention && c.Schedule.HumanAttentionNeeded && c.Schedule.ActiveRunID == string(rec.ID)
	})
	err = s.Answer(host.As(t.Context(), owner),
		host.Answer{RunID: rec.ID, InteractionID: q.ID, Status: "success",
			Data: map[string]json.RawMessage{"code": json.RawMessage(`"123456"`)}})
	if err != nil {
		t.Fatal(err)
	}
	k := next()
	if k.Status != "succeeded" || k.RunID != string(rec.ID) || k.Attempt != 1 || k.TriggerKind != "scheduled" ||
		k.ConnectionID != "ask" {
		t.Errorf("%+v", k)
	}
	got, err = s.Schedule(t.Context(), "ask")
	if err != nil || got.HumanAttentionNeeded || got.LastSuccessfulAt == nil || got.ActiveRunID != "" ||
		got.NextDueAt.Sub(*got.LastStartedAt) != time.Hour {
		t.Errorf("%+v %v", got, err)
	}
	page, cursor, err := s.ScheduleHistory(t.Context(), "ask", "", 10)
	if err != nil || cursor != "" || len(page) != 1 || page[0].RunID != string(rec.ID) {
		t.Errorf("%+v %q %v", page, cursor, err)
	}
	sums, err := s.ScheduleStatistics(t.Context(), "ask")
	if err != nil || sums.TotalRuns != 1 || sums.Succeeded != 1 || sums.LastRun == nil ||
		sums.LastRun.RunID != string(rec.ID) {
		t.Errorf("%+v %v", sums, err)
	}
}

// What owners do with a schedule, and what is written down.
func TestSchedulesOfOwners(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	connect(t, h, installAs(t, h, askModule(t, bySelf...), nil), "ask", oneCode)
	code := func(err error) string { c, _ := refusalCode(err); return c }
	if _, err := s.Schedule(t.Context(), "ask"); code(err) != "schedule_not_found" {
		t.Error(err)
	}
	if err := s.DeleteSchedule(host.As(t.Context(), owner), "ask"); code(err) != "schedule_not_found" {
		t.Error(err)
	}
	_, _, err := s.PutSchedule(host.As(t.Context(), owner), "ask", host.ScheduleDefinition{Cron: "0 0 30 2 *"}, nil)
	if c, details := refusalCode(err); c != "schedule_invalid" || details["field"] != "cron" ||
		!strings.Contains(err.Error(), "never fires") {
		t.Error(err)
	}
	if _, _, err := s.PutSchedule(host.As(t.Context(), owner), "nobody", host.ScheduleDefinition{Cron: "@daily"},
		nil); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if _, _, err := s.PutSchedule(host.As(t.Context(), owner), "ask",
		host.ScheduleDefinition{Cron: "@yearly", Timezone: "Asia/Tehran"}, store.Absent()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := s.PauseSchedule(host.As(t.Context(), owner), "ask"); err != nil || got.EffectiveMode != "paused" ||
			got.NextDueAt != nil || got.Revision != 2 {
			t.Errorf("%+v %v", got, err)
		}
	}
	if got, err := s.ResumeSchedule(host.As(t.Context(), owner), "ask"); err != nil || got.EffectiveMode != "automatic" ||
		got.NextDueAt == nil {
		t.Errorf("%+v %v", got, err)
	}
	if all, err := s.Schedules(t.Context()); err != nil || len(all) != 1 || all[0].Cron != "@yearly" {
		t.Errorf("%+v %v", all, err)
	}
	if c, err := s.Connection(t.Context(), "ask"); err != nil || c.Schedule == nil ||
		c.Schedule.Timezone != "Asia/Tehran" {
		t.Errorf("%+v %v", c, err)
	}
	if err := s.DeleteSchedule(host.As(t.Context(), owner), "ask"); err != nil {
		t.Error(err)
	}
	page, _, err := s.AuditEntries(t.Context(), host.AuditQuery{Target: "ask"})
	var did []string
	for _, e := range page {
		did = append(did, e.Action+" "+e.Details["code"])
	}
	want := []string{"schedule.deleted ", "schedule.changed resumed", "schedule.changed paused", "schedule.changed "}
	if err != nil || !slices.Equal(did, want) {
		t.Errorf("%q %v", did, err)
	}
	if failed := s.Ready(t.Context()); slices.Contains(failed, "scheduler") {
		t.Error(failed)
	}
}

// A schedule whose run finds no room says so, and so does the host.
func TestHeldUp(t *testing.T) {
	o := hostOptions(t.TempDir())
	o.Journal.Bytes = 1 // or runs that wait would sleep
	h := hostWith(t, o)
	s := openService(t, h, app.ServiceOptions{Runs: 1, Accepted: 1})
	l := installAs(t, h, askModule(t, bySelf...), nil)
	for _, id := range []store.ConnectionID{"one", "two", "ask"} {
		connect(t, h, l, id, oneCode)
	}
	for _, id := range []string{"one", "two"} { // they wait for their owner: there are twice as many as may run
		var asked store.RunID
		eventually(t, "the place of the one before, which is free soon after it asked", func() bool {
			rec, err := s.StartRun(host.As(t.Context(), owner), host.StartRun{WorkflowID: id})
			if code, _ := refusalCode(err); err != nil && code != "rate_limited" {
				t.Fatal(err)
			}
			asked = rec.ID
			return err == nil
		})
		parked(t, h, asked)
	}
	if _, _, err := s.PutSchedule(host.As(t.Context(), owner), "ask",
		host.ScheduleDefinition{IntervalSeconds: hours(1)}, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a schedule that is held up", func() bool {
		got, err := s.Schedule(t.Context(), "ask")
		if err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(got.HeldUp, "Put off: ")
	})
	if n := s.Info(t.Context()).Runs; n.Idle != 2 || n.Accepted != 2 || n.Limit != 1 || n.AtOnce != 1 {
		t.Errorf("%+v", n)
	}
	if got, err := s.PauseSchedule(host.As(t.Context(), owner), "ask"); err != nil || got.HeldUp != "" {
		t.Errorf("a schedule that is paused is held up: %q, %v", got.HeldUp, err)
	}
}

// A start that is refused is a run of one event, and the schedule moves on in the same commit;
// one that lost a race leaves nothing.
func TestRefusedScheduledStart(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	connect(t, h, installAs(t, h, askModule(t, bySelf...), nil), "ask", oneCode)
	with := func(revision *uint64) func(store.Run) []store.Write {
		return func(r store.Run) []store.Write {
			return []store.Write{{Kind: "test", ID: "mark", Data: json.RawMessage(`"` + string(r.ID) + `"`), If: revision}}
		}
	}
	q := schedule.Start{Connection: "ask", Trigger: "scheduled", Attempt: 1, CatchUp: true, With: with(store.Absent())}
	rec, err := app.Automatic(s).RecordRefused(t.Context(), q,
		&schedule.Refused{Code: "quota_exceeded", Message: "There is no room."})
	if err != nil || rec.Status != "failed" || !rec.Request.CatchUp ||
		!strings.Contains(string(rec.Result), "launch_failed") || !strings.Contains(string(rec.Result), "quota_exceeded") {
		t.Fatalf("%+v %v", rec, err)
	}
	if failed := timeline(t, h, rec.ID, "run.failed"); len(failed) != 1 || failed[0]["failure_code"] != "quota_exceeded" {
		t.Errorf("%v", failed)
	}
	if d, err := h.Store.Document(t.Context(), "test", "mark"); err != nil || string(d.Data) != `"`+string(rec.ID)+`"` {
		t.Errorf("%s %v", d.Data, err)
	}
	var conflict *store.ConflictError
	if _, err := app.Automatic(s).StartScheduled(t.Context(), q); !errors.As(err, &conflict) {
		t.Errorf("a schedule that changed meanwhile: %v", err)
	}
	if runs, err := h.Store.Runs(t.Context(), "ask", "", 10); err != nil || len(runs) != 1 {
		t.Errorf("%d runs %v", len(runs), err)
	}
	if _, err := h.Store.ChangeConnection(t.Context(), "ask", func(c *store.Connection) error {
		c.Grant = &store.Grant{AccessMode: "single_use", Status: "consumed"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var no *schedule.Refused
	if _, err := app.Automatic(s).StartScheduled(t.Context(), q); !errors.As(err, &no) || no.Code != "grant_consumed" {
		t.Errorf("a grant that is consumed: %v", err)
	}
}

// Schedules and their history outlive the host; a deletion of the connection takes its
// schedule along.
func TestSchedulesOutliveTheHost(t *testing.T) {
	dir := t.TempDir()
	open := func() (*app.Host, *app.Service) {
		h, err := app.Open(t.Context(), hostOptions(dir))
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Service(t.Context(), app.ServiceOptions{Grace: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return h, s
	}
	h, s := open()
	connect(t, h, installAs(t, h, askModule(t, bySelf...), nil), "ask", oneCode)
	seven := int64(7200)
	before, _, err := s.PutSchedule(host.As(t.Context(), owner), "ask",
		host.ScheduleDefinition{Cron: "@monthly", JitterSeconds: &seven}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close(t.Context())
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h, s = open()
	defer func() {
		s.Close(t.Context())
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	after, err := s.Schedule(t.Context(), "ask")
	if err != nil || !after.NextDueAt.Equal(*before.NextDueAt) || after.Revision != before.Revision {
		t.Errorf("%+v, was %+v: %v", after, before, err)
	}
	if err := h.Store.Write(t.Context(),
		store.Write{Kind: store.Ticks, ID: "ask/0000000000000001", Data: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteConnection(host.As(t.Context(), owner), "ask", true); err != nil {
		t.Fatal(err)
	}
	if left, err := h.Store.Documents(t.Context(), store.DocumentQuery{Kind: store.Ticks}); err != nil || len(left) != 0 {
		t.Errorf("history that is left: %v %v", left, err)
	}
	if all, err := s.Schedules(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}
