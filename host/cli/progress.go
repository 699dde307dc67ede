package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// progress follows a run's timeline and shows it on a screen: a block redrawn
// at most ten times a second on a terminal, a line per notable event elsewhere.
type progress struct {
	screen *screen
	name   string
	began  time.Time
	done   chan struct{}
	drawer sync.WaitGroup

	mu           sync.Mutex // guards what the drawer reads
	streams      []streamProgress
	phase        string
	mode         string
	message      string
	notice       string // what the owner is asked to do
	stalled      string // what holds the run up, from its snapshot
	printedStall string // the last printed reason for a stall, which is not repeated
	rejected     int64
	logs         []string // the latest lines of the connector's log
}

type streamProgress struct {
	name   string
	stored int64
	note   string
	count  *float64
	total  *float64
}

// redrawEvery is the interval at which the block is redrawn.
const redrawEvery = 100 * time.Millisecond

func newProgress(on *screen, m *abi.Manifest) *progress {
	p := &progress{
		screen: on, name: abi.Clean(m.DisplayName), began: time.Now(), done: make(chan struct{}), phase: "preparing",
	}
	if p.name == "" {
		p.name = m.Name()
	}
	if p.screen.live {
		p.drawer.Go(p.redraw)
	}
	return p
}

// redraw draws until close.
func (p *progress) redraw() {
	t := time.NewTicker(redrawEvery)
	defer t.Stop()
	for {
		p.screen.draw(p.block(time.Now()))
		select {
		case <-t.C:
		case <-p.done:
			return
		}
	}
}

// close ends the drawing and takes the block away. It is called once.
func (p *progress) close() {
	close(p.done)
	p.drawer.Wait()
	p.screen.clear()
}

// cancelling shows that the first interrupt cancels the run.
func (p *progress) cancelling() {
	p.mu.Lock()
	p.phase = "cancelling"
	p.mu.Unlock()
	p.screen.line("Cancelling. Press Ctrl-C again to stop at once.")
}

// setStalled shows what holds the run up; "" means that it goes on.
func (p *progress) setStalled(message string) {
	message = abi.Clean(message)
	p.mu.Lock()
	was := p.stalled
	p.stalled = message
	known := message != "" && message == p.printedStall
	p.printedStall = orWord(message, p.printedStall)
	p.mu.Unlock()
	switch {
	case message == was || known:
	case message == "":
		p.screen.line("The run goes on.")
	default:
		p.screen.line(message)
	}
}

// eventData is the part of events' data that progress looks at.
type eventData struct {
	ScopeStreams []string `json:"scope_streams"`
	Mode         string   `json:"collection_mode"`
	Isolation    struct {
		Level string `json:"level"`
	} `json:"isolation"`
	Accepted int64    `json:"records_accepted"`
	Rejected int64    `json:"records_permanently_rejected"`
	Message  string   `json:"message"`
	Count    *float64 `json:"count"`
	Total    *float64 `json:"total"`
	Reason   string   `json:"reason"`
	Level    string   `json:"level"`
	Failure  string   `json:"failure_message"`
	Action   string   `json:"owner_action"`
}

// event takes one durable event, in order.
func (p *progress) event(e store.Event) {
	var d eventData
	if json.Unmarshal(e.Data, &d) != nil {
		return // an unknown shape is not worth a line
	}
	p.mu.Lock()
	told := e.Type == "run.assistance_requested" && abi.Clean(d.Message) == p.printedStall
	if !told {
		p.update(e, d)
	}
	p.mu.Unlock()
	if told {
		return
	}
	if line := notable(e, d); line != "" && (!p.screen.live || printedEvents[e.Type]) {
		p.screen.line(line)
	}
}

// update updates what the block shows.
func (p *progress) update(e store.Event, d eventData) {
	switch e.Type {
	case "run.started":
		p.phase, p.mode = "collecting", d.Mode
		for _, s := range d.ScopeStreams {
			p.stream(s)
		}
	case "run.batch_ingested":
		p.stream(string(e.Stream)).stored += d.Accepted
		p.rejected += d.Rejected
	case "run.progress_reported":
		p.message = abi.Clean(d.Message)
		if e.Stream != "" {
			s := p.stream(string(e.Stream))
			s.count, s.total = d.Count, d.Total
		}
	case "run.state_staged":
		p.stream(string(e.Stream)).note = "checkpoint"
	case "run.stream_skipped":
		p.stream(string(e.Stream)).note = "skipped: " + abi.Clean(d.Reason)
	case "log.appended":
		p.logs = append(p.logs[max(0, len(p.logs)-logTail+1):], abi.Clean(d.Level+" "+d.Message))
	case "run.interaction_required":
		p.phase = "waiting for you"
	case "run.interaction_completed":
		p.phase = "collecting"
	case "run.assistance_requested":
		if e.InteractionID == "" {
			p.notice = abi.Clean(d.Message)
		}
		if d.Action == abi.ActionNone { // the host's own, which the snapshot repeats
			p.printedStall = p.notice
		}
	case "run.assistance_resolved", "run.assistance_cancelled", "run.assistance_timed_out":
		p.notice = ""
	case "run.state_advanced":
		p.phase = "finishing"
		p.stream(string(e.Stream)).note = "committed"
	}
}

// stream finds a stream's line, or adds one.
func (p *progress) stream(name string) *streamProgress {
	name = abi.Clean(name)
	i := slices.IndexFunc(p.streams, func(s streamProgress) bool { return s.name == name })
	if i < 0 {
		p.streams = append(p.streams, streamProgress{name: name})
		i = len(p.streams) - 1
	}
	return &p.streams[i]
}

// maxBlockStreams bounds the height of the block.
const maxBlockStreams = 12

// block renders the state of the run.
func (p *progress) block(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := fmt.Sprintf("%s  %s  %s", p.name, p.phase, clock(now.Sub(p.began)))
	if p.mode != "" {
		head += "  " + p.mode
	}
	lines := []string{head}
	width := 0
	for _, s := range p.streams {
		width = max(width, len(s.name))
	}
	for i, s := range p.streams {
		if i == maxBlockStreams {
			lines = append(lines, fmt.Sprintf("  and %d more streams", len(p.streams)-i))
			break
		}
		lines = append(lines, "  "+s.line(min(width, 40)))
	}
	if p.rejected > 0 {
		lines = append(lines, fmt.Sprintf("  %s rejected", recordCount(p.rejected)))
	}
	if p.message != "" {
		lines = append(lines, "  "+p.message)
	}
	for _, notice := range slices.Compact([]string{p.stalled, p.notice}) {
		if notice != "" {
			lines = append(lines, "  ! "+notice)
		}
	}
	return lines
}

func (s streamProgress) line(width int) string {
	line := fmt.Sprintf("%-*s  %9s", width, s.name, count(s.stored))
	if s.total != nil && *s.total > 0 && s.count != nil {
		line += fmt.Sprintf("  %3.0f%%", min(100, max(0, 100**s.count / *s.total)))
	}
	if s.note != "" {
		line += "  " + s.note
	}
	return line
}

// printedEvents has the events that leave a line on a terminal too.
var printedEvents = map[string]bool{"run.stream_skipped": true, "run.assistance_requested": true}

// notable renders an event that is worth a line, or nothing.
func notable(e store.Event, d eventData) string {
	stream, message := abi.Clean(string(e.Stream)), abi.Clean(d.Message)
	switch e.Type {
	case "run.started":
		return fmt.Sprintf("run %s started: %s, isolation %s", e.RunID, d.Mode, d.Isolation.Level)
	case "run.progress_reported":
		if stream != "" {
			return stream + ": " + message
		}
		return message
	case "run.stream_skipped":
		return fmt.Sprintf("skipped %s: %s", stream, join(" — ", abi.Clean(d.Reason), message))
	case "run.interaction_required":
		return "waiting for an answer: " + message
	case "run.assistance_requested":
		switch {
		case e.InteractionID != "":
			return ""
		case d.Action == abi.ActionNone: // there is nothing to help with
			return message
		}
		return "the connector asks for help: " + message
	case "log.appended":
		if d.Level == "warn" || d.Level == "error" {
			return d.Level + ": " + message
		}
	}
	return ""
}
