package dashboard

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// stageEvents bounds the events from which stages are drawn, rateBars is the number of bars of the
// speed.
const (
	stageEvents = 1000
	rateBars    = 60
	maxStages   = 20
)

// A stage is a stream, a wait or a pause of a run, from its first event to its last.
type stage struct {
	Name, Tone string
	From, To   time.Time
	X, W       float64 // in percent of the run
}

// stagesOf returns what a run did when, and its speed over time. cut reports that the run has more
// events than were read.
func (u *runUI) stagesOf(ctx context.Context, r store.Run) (list []stage, speed *plot, cut bool, err error) {
	events, err := u.rows.Events(ctx, r.ID, 0, stageEvents)
	if err != nil || len(events) == 0 {
		return nil, nil, false, err
	}
	end := u.now()
	if r.FinishedAt != nil {
		end = *r.FinishedAt
	}
	if cut = len(events) == stageEvents; cut {
		end = events[len(events)-1].OccurredAt
	}
	list = spans(events, end)
	all := max(end.Sub(r.StartedAt), time.Millisecond)
	for i := range list {
		s := &list[i]
		s.X = round(float64(s.From.Sub(r.StartedAt)) * 100 / float64(all))
		s.W = max(round(float64(s.To.Sub(s.From))*100/float64(all)), .6)
		s.X = min(max(s.X, 0), 100-min(s.W, 100))
	}
	return list, speedOf(events, r.StartedAt, all), cut, nil
}

// spans returns the stages in the order of their beginnings.
func spans(events []store.Event, end time.Time) []stage {
	var list []stage
	open := map[string]int{}
	touch := func(name, tone string, at time.Time) {
		i, ok := open[name]
		if !ok {
			if len(list) == maxStages {
				return
			}
			i, open[name] = len(list), len(list)
			list = append(list, stage{Name: name, Tone: tone, From: at})
		}
		list[i].To = at
	}
	begins := map[string][3]string{
		string(timeline.RunInteractionRequired): {string(timeline.RunInteractionCompleted), "Waits for you", "warn"},
		string(timeline.RunPaused):              {string(timeline.RunResumed), "Paused", "warn"},
	}
	until := map[string]string{} // maps the event that ends a stage to the stage
	for _, e := range events {
		if b, ok := begins[e.Type]; ok {
			delete(open, b[1]) // a new stage of that name
			touch(b[1], b[2], e.OccurredAt)
			until[b[0]] = b[1]
		} else if name, ok := until[e.Type]; ok {
			touch(name, "warn", e.OccurredAt)
			delete(until, e.Type)
		}
		if e.Stream != "" {
			touch(string(e.Stream), "accent", e.OccurredAt)
		}
	}
	for _, name := range until { // still waiting
		touch(name, "warn", end)
	}
	slices.SortStableFunc(list, func(a, b stage) int { return a.From.Compare(b.From) })
	return list
}

// speedOf draws the records stored in each equal part of a run's time.
func speedOf(events []store.Event, from time.Time, all time.Duration) *plot {
	each := all / rateBars
	of := make([]amount, rateBars)
	var total float64
	for _, e := range events {
		if e.Type != string(timeline.RunBatchIngested) {
			continue
		}
		var d struct {
			Flushed float64 `json:"records_flushed"`
		}
		if json.Unmarshal(e.Data, &d) != nil || !finite(d.Flushed) || d.Flushed < 0 {
			continue
		}
		i := min(max(int(e.OccurredAt.Sub(from)/max(each, 1)), 0), rateBars-1)
		of[i].Value += d.Flushed / max(each.Seconds(), 1e-3)
		total += d.Flushed
	}
	if total == 0 {
		return nil
	}
	for i := range of {
		of[i].Tone, of[i].Text = "accent", short(float64(int64(of[i].Value)))+" records a second after "+
			lasted(each*time.Duration(i))
		of[i].Value = float64(int64(of[i].Value))
	}
	p := barsOf("Records stored in a second, over the time of the run", plotWidth, plotHeight, of)
	p.Top, p.First, p.Last = p.Top+" a second", "0 s", lasted(all)
	return &p
}

// memoryOf draws the memory use of a connector over the time of its run, or returns nil if it is
// unknown.
func memoryOf(r store.Run, live *host.LiveRun, now time.Time) *plot {
	var result struct{ Memory *host.Memory }
	end := now
	switch {
	case r.FinishedAt != nil:
		_ = json.Unmarshal(r.Result, &result) // without it there is nothing to draw
		end = *r.FinishedAt
	case live != nil:
		result.Memory = live.Memory
	}
	m, all := result.Memory, end.Sub(r.StartedAt)
	if m == nil || m.EveryMS <= 0 || len(m.Bytes) < 2 || all <= 0 {
		return nil
	}
	top := float64(max(slices.Max(m.Bytes), 1))
	p := plot{Label: "Memory of the connector, at most " + size(top) + ", over the time of the run",
		Width: plotWidth, Height: plotHeight,
		Top: size(top) + " of memory", First: "0 s", Last: lasted(all)}
	path := strings.Builder{}
	path.WriteString("M0 " + number(plotHeight))
	for i, bytes := range m.Bytes { // each value is a step over its interval
		from := time.Duration(i) * time.Duration(m.EveryMS) * time.Millisecond
		until := min(from+time.Duration(m.EveryMS)*time.Millisecond, all)
		if until > from {
			y := number(plotHeight * (1 - float64(bytes)/top))
			path.WriteString("L" + number(float64(from)/float64(all)*plotWidth) + " " + y + "H" +
				number(float64(until)/float64(all)*plotWidth))
		}
	}
	path.WriteString("V" + number(plotHeight) + "Z")
	p.Area = path.String()
	return &p
}

// Verdict sums up the state of the run in one sentence.
func (b runBody) Verdict() string {
	records := int64(0)
	if m := b.Snapshot.Metrics; m != nil {
		records = m.RecordsFlushed
	}
	stored := "It stored " + plural(records, "record")
	if records == 0 {
		stored = "It stored nothing new"
	}
	took := ""
	if b.Row.FinishedAt != nil {
		took = " in " + lasted(b.Row.FinishedAt.Sub(b.Row.StartedAt))
	}
	switch s := b.Snapshot.Status; {
	case len(b.Asks) > 0 && !b.Over():
		return "It waits for you. " + stored + " so far."
	case s == timeline.Completed && b.Snapshot.Sluice.Outcome == timeline.Partial:
		return stored + took + ", and left data out: see what is missing below."
	case s == timeline.Completed:
		return stored + took + ", and has all that there was."
	case s == timeline.Failed:
		return "It failed: " + b.why() + ". What it stored until then stays."
	case s == timeline.Cancelled:
		return "It was cancelled. What it stored until then stays."
	}
	return stored + " so far."
}

// why returns the reason of a failure: the host's words for it, or the error message.
func (b runBody) why() string {
	if e := b.Snapshot.Error; b.Snapshot.Sluice.TerminalReason == "" && e != nil {
		return strings.TrimRight(e.Message, ". ")
	}
	return reasonWord(b.Snapshot.Sluice.TerminalReason)
}

// Mends reports whether another page helps to fix the failure.
func (b runBody) Mends() bool {
	return b.Snapshot.Error != nil && b.Helps.Page != "" && !strings.HasPrefix(b.Helps.Page, "/ui/runs/"+string(b.ID))
}
