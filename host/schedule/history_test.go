package schedule_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/campaign"
)

// TestHistory: The last 500 are kept, the sums are of all,
// and pages go on where they ended.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.slow = 24 * time.Hour
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{IntervalSeconds: int64p(60)})
		pass(520*time.Minute - 30*time.Second) // 520 runs
		sums, err := s.Statistics(t.Context(), conn)
		w.must(err)
		equal(t, "sums", fmt.Sprint(sums.TotalRuns, sums.Succeeded, sums.Failed, sums.TotalRecords), "520 520 0 3640")
		equal(t, "last run", sums.LastRun.RunID, "run_000000520")
		var all []string
		for before := ""; ; {
			page, next, err := s.History(t.Context(), conn, before, 150)
			w.must(err)
			for _, k := range page {
				all = append(all, k.RunID)
			}
			if before = next; next == "" {
				break
			}
		}
		equal(t, "kept", len(all), 500)
		equal(t, "newest and oldest", all[0]+" "+all[499], "run_000000520 run_000000021")
		if _, _, err := s.History(t.Context(), conn, "../x", 10); code(err) != "invalid_request" {
			t.Errorf("a cursor of nothing: %v", err)
		}
		w.must(s.Forget(t.Context(), conn))
		w.set(func() { equal(t, "documents", len(w.docs), 0) })
	})
}

// What a run left out is in its record, and counted.
func TestPartialCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		partial := true
		w.play = func(schedule.Start) play {
			p := play{result: `,"outcome":"complete"`}
			if partial {
				p.result, partial = `,"outcome":"partial"`, false
			}
			return p
		}
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		pass(49 * time.Hour)
		sums, err := s.Statistics(t.Context(), conn)
		w.must(err)
		equal(t, "sums", sums.Partial, 1)
		page := w.history(s)
		equal(t, "records", page[len(page)-1].Outcome+" "+page[0].Outcome, "partial complete")
	})
}

// TestRecord: The values of the runtime, unchanged; a state that is too
// large as its digest.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		large := strings.Repeat("x", 300<<10)
		w.play = func(schedule.Start) play {
			return play{lasts: 90 * time.Second,
				result: `,"terminal_reason":"connector_reported_failed","failure":{"reason":"connector_reported_failed","message":"Out of ink."},` +
					`"reported_records_emitted":9,"connector_error":{"message":"Out of ink.","code":"ink","retryable":false},"state":{"s":"` + large + `"}`}
		}
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		pass(2 * time.Hour)
		k := w.history(s)[0]
		equal(t, "record", fmt.Sprint(k.Attempt, k.Status, k.ConnectorID, k.ConnectionID, k.RunID, k.TraceID,
			*k.RecordsEmitted, *k.ReportedRecordsEmitted),
			"1failedhttps://example.test/mailmailrun_000000001trc_17 9")
		equal(t, "source", string(k.Source), `{"id":"https://example.test/mail","kind":"connector"}`)
		equal(t, "took", k.CompletedAt.Sub(k.StartedAt), 90*time.Second)
		equal(t, "reasons", k.FailureReason+" "+k.TerminalReason+" "+k.Error,
			"connector_reported_failed connector_reported_failed Out of ink.")
		equal(t, "error", string(k.ConnectorError), `{"message":"Out of ink.","code":"ink","retryable":false}`)
		var digest struct {
			Digest string
			Bytes  int
		}
		w.must(json.Unmarshal(k.State, &digest))
		if !strings.HasPrefix(digest.Digest, "sha256:") || digest.Bytes < 300<<10 {
			t.Errorf("state: %.80s", k.State)
		}
		equal(t, "last error", w.get(s).LastErrorCode, "connector_reported_failed")
	})
}

// TestRetryTable goes through docs/spec/runs.md, "Retries", row by row.
func TestRetryTable(t *testing.T) {
	for i, c := range []struct {
		want   bool
		result string
	}{
		{false, `{"status":"cancelled"}`}, // 1
		{false, `{"status":"succeeded"}`},
		{false, `{"status":"failed","known_gaps":[{"kind":"x","recovery_hint":{"action":"refresh_credentials"}}]}`}, // 2
		{false, `{"status":"failed","known_gaps":[{"kind":"run_failed","recovery_hint":{"action":"manual_action_required","retryable":true}}]}`},
		{false, `{"status":"failed","connector_error":{"message":"HTTP 401 from server"}}`}, // 3
		{false, `{"status":"failed","connector_error":{"message":"x","code":"Session_Expired"}}`},
		{true, `{"status":"failed","connector_error":{"message":"x4011 reauthentic"}}`}, // whole words
		{true, `{"status":"failed","connector_error":{"message":"401","retryable":true}}`},
		{true, `{"status":"failed","connector_error":{"message":"forbidden","recovery_hint":{"action":"retry_by_runtime","retryable":true}}}`},
		// 4
		{false, `{"status":"failed","terminal_reason":"policy_refused","failure":{"reason":"policy_refused","origin":"storage"}}`},
		{true, `{"status":"failed","terminal_reason":"ingest_storage_error","failure":{"reason":"ingest_storage_error","origin":"storage"}}`},
		{true, `{"status":"failed","terminal_reason":"rate_limit_error","failure":{"reason":"rate_limit_error","origin":"transport"}}`},
		{false, `{"status":"failed","connector_error":{"message":"x","code":"http_404"}}`},
		{true, `{"status":"failed","connector_error":{"message":"x","code":"429"}}`},
		{false, `{"status":"failed","terminal_reason":"run_timed_out"}`}, // 5
		{false, `{"status":"failed","terminal_reason":"grant_expired"}`},
		{false, `{"status":"failed","terminal_reason":"memory_limit_exceeded","known_gaps":[{"kind":"run_failed","recovery_hint":{"action":"retry_by_runtime","retryable":true}}]}`},
		{false, `{"status":"failed","terminal_reason":"launch_failed","failure":{"reason":"launch_failed","subtype":"module_invalid"}}`},
		{true, `{"status":"failed","terminal_reason":"launch_failed","failure":{"reason":"launch_failed","subtype":"prepare_timeout"}}`},
		// 6
		{true, `{"status":"failed","connector_error":{"message":"x","retryable":false},"known_gaps":[{"kind":"run_failed","recovery_hint":{"action":"retry_by_runtime","retryable":true}}]}`},
		{false, `{"status":"failed","connector_error":{"message":"x","retryable":false}}`}, // 7
		{true, `{"status":"failed","terminal_reason":"worker_lost"}`},                      // 8
		{true, `{"status":"failed","terminal_reason":"controller_restarted"}`},
		{true, `{"status":"failed"}`},
	} {
		if got := schedule.Retryable(c.result); got != c.want {
			t.Errorf("row %d: %t for %s", i, got, c.result)
		}
	}
}

// TestRetryWait: waits double up to a bound.
func TestRetryWait(t *testing.T) {
	for attempt, want := range []time.Duration{1, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30} {
		equal(t, fmt.Sprint("after attempt ", attempt), schedule.RetryWait(attempt), want*time.Second)
	}
}

// TestTenYearsOfSchedules has a schedule in each zone for ten years in a soak, and for one otherwise; every start is at
// the minute that the clock on the wall says.
func TestTenYearsOfSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		years := 1
		if campaign.Soak() {
			years = 10
		}
		w := newWorld(t)
		began := time.Now()
		until := began.AddDate(years, 0, 0)
		w.slow = 24 * time.Hour
		s, stop := w.start()
		defer func() { stop() }()
		texts := map[store.ConnectionID]string{}
		zoneOf := map[store.ConnectionID]string{}
		for i, name := range sortedZones() {
			id := store.ConnectionID(fmt.Sprintf("c%d", i))
			texts[id], zoneOf[id] = []string{"30 2 * * 0", "0 0 * * 0,5,6", "30 1 * * 0", "*/30 0-3 * 3,10 0"}[i%4], name
			w.set(func() { w.conns[id] = schedule.Connection{} })
			_, _, err := s.Put(t.Context(), id, host.ScheduleDefinition{Cron: texts[id], Timezone: name}, nil)
			w.must(err)
		}
		for range years { // a restart every year
			pass(time.Until(time.Now().AddDate(1, 0, 0)))
			stop()
			_, stop = w.start()
		}
		got := map[store.ConnectionID][]int64{}
		for _, b := range w.begun() {
			if b.At.Before(until) {
				got[b.Connection] = append(got[b.Connection], b.At.Unix()/60)
			}
		}
		compared := 0
		for id, text := range texts {
			zone, err := schedule.LoadZone(zoneOf[id])
			w.must(err)
			o, n := read(t, text), 0
			for _, m := range minutes(began, until, zone) {
				if !o.times[m.day] && m.gap == 0 || !o.fires(m) {
					continue
				}
				if n >= len(got[id]) || got[id][n] != int64(m.at) {
					t.Fatalf("%s in %s: start %d of %d is not at %s", text, zone, n, len(got[id]),
						time.Unix(int64(m.at)*60, 0).In(zone))
				}
				n++
			}
			equal(t, "starts in "+zoneOf[id], len(got[id]), n)
			compared += n
		}
		t.Logf("%d years, %d zones, %d starts", years, len(texts), compared)
	})
}

// TestOldFormat: what a host wrote that named members in snake case opens, ticks and
// goes on counting.
func TestOldFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.must(w.Write(t.Context(),
			store.Write{Kind: store.Schedules, ID: string(conn), Data: json.RawMessage(
				`{"definition":{"interval_seconds":3600,"jitter_seconds":5,"enabled":true,"catch_up":true,"max_retries":1},"revision":4}`)},
			store.Write{Kind: store.Ticks, ID: string(conn) + "/0000000000000001", Data: json.RawMessage(
				`{"tick":{"attempt":1,"status":"succeeded","connector_id":"c","connection_id":"x","run_id":"run_old","started_at":"2026-01-01T00:00:00Z",
				"completed_at":"2026-01-01T00:01:00Z","records_emitted":7,"checkpoint_summary":{"state_streams_staged":1},"trigger_kind":"scheduled"},
				"sums":{"total_runs":41,"succeeded":40,"failed":1,"total_records":300}}`)},
		))
		s, stop := w.start()
		defer stop()
		one := w.get(s)
		equal(t, "terms", one.ScheduleTerms,
			host.ScheduleTerms{IntervalSeconds: 3600, JitterSeconds: 5, Enabled: true, CatchUp: true, MaxRetries: 1})
		page, _, err := s.History(t.Context(), conn, "", 10)
		w.must(err)
		old := page[len(page)-1]
		equal(t, "run", old.RunID+" "+string(old.CheckpointSummary), `run_old {"state_streams_staged":1}`)
		equal(t, "records", *old.RecordsEmitted, int64(7))
		pass(2 * time.Hour)
		sums, err := s.Statistics(t.Context(), conn)
		w.must(err)
		if sums.TotalRuns <= 41 || sums.TotalRecords <= 300 {
			t.Errorf("sums %+v", sums)
		}
	})
}
