package dashboard

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// Bounds of what the overview reads: runs per connection drawn as bars, connections with bars, and
// runs summed up for a day.
const (
	barRuns     = 30
	barsFor     = 60
	runsOfToday = 2000
	runsAtOnce  = 200
)

// A resultOf is the part of a finished run's result that pages use.
type resultOf struct {
	Records int64  `json:"records_flushed"`
	Outcome string `json:"outcome"`
	Usage   struct {
		Bytes int64 `json:"bytes_in"`
	} `json:"usage"`
}

func resultOfRun(r store.Run) (out resultOf) {
	_ = json.Unmarshal(r.Result, &out) // a result without counts stored nothing
	return out
}

// today sums up what happened since midnight UTC.
type today struct {
	Runs, Failures int
	Records, Bytes int64
	More           bool // there were more runs than summed up
}

func (u *overviewUI) today(ctx context.Context) (t today, err error) {
	midnight := u.now().UTC().Truncate(24 * time.Hour)
	for before := store.RunID(""); ; {
		rows, err := u.rows.Runs(ctx, "", before, runsAtOnce)
		if err != nil || len(rows) == 0 {
			return t, err
		}
		for _, r := range rows {
			if r.StartedAt.Before(midnight) {
				return t, nil
			}
			if t.Runs == runsOfToday {
				t.More = true
				return t, nil
			}
			before = r.ID
			t.add(r)
		}
	}
}

func (t *today) add(r store.Run) {
	result := resultOfRun(r)
	t.Runs, t.Records, t.Bytes = t.Runs+1, t.Records+result.Records, t.Bytes+result.Usage.Bytes
	if timeline.RowStatus(r) == timeline.Failed {
		t.Failures++
	}
}

// lastRuns draws the newest runs of a connection, oldest first: the duration as height, the outcome
// as colour, with a link to each run.
func (u *overviewUI) lastRuns(ctx context.Context, id store.ConnectionID) (plot, error) {
	rows, err := u.rows.Runs(ctx, id, "", barRuns)
	of := make([]amount, barRuns)
	for i, r := range rows {
		of[barRuns-1-i] = amountOf(r)
	}
	return barsOf("The last runs of "+string(id), 6*barRuns, 28, of), err
}

// amountOf returns a run as a bar. A running one is low and does not change until it ends.
func amountOf(r store.Run) amount {
	word := string(timeline.RowStatus(r))
	if resultOfRun(r).Outcome == timeline.Partial && timeline.RowStatus(r) == timeline.Completed {
		word = leftOut
	}
	a := amount{Tone: tone(word), Text: statusWord(word) + ", " + stamp(r.StartedAt), Link: "/ui/runs/" + string(r.ID)}
	if r.FinishedAt != nil {
		took := max(r.FinishedAt.Sub(r.StartedAt), 0)
		a.Value, a.Text = took.Seconds(), a.Text+", "+lasted(took)
	}
	return a
}

// nextDay draws when schedules are due within 24 hours.
func (b *overviewBody) nextDay(now time.Time) {
	p := plot{Label: "When connections run next, within 24 hours", Width: plotWidth, Height: 24,
		First: "now", Last: "in 24 h"}
	for _, s := range b.Next {
		if d := s.NextDueAt.Sub(now); d < 24*time.Hour {
			x := max(d.Hours(), 0) / 24 * (plotWidth - 8)
			p.Bars = append(p.Bars, bar{X: round(x), W: 8, H: 24, Tone: "accent",
				Text: s.ConnectionID + ", " + stamp(*s.NextDueAt)})
		}
	}
	if len(p.Bars) > 0 {
		b.Day = &p
	}
}

// longest returns the duration of the longest run; share, below, returns a run's part of it in
// percent.
func longest(runs []timeline.Snapshot) time.Duration {
	var most time.Duration
	for _, r := range runs {
		most = max(most, moment(r.CompletedAt).Sub(moment(r.StartedAt)))
	}
	return most
}

func share(from, to string, most time.Duration) float64 {
	d := moment(to).Sub(moment(from))
	if most <= 0 || d < 0 {
		return 0
	}
	return max(round(float64(d)*100/float64(most)), 1)
}
