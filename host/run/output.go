package run

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// Diagnostics is what a connector that exited abnormally left in its log.
type Diagnostics struct {
	StderrTail *StderrTail `json:"stderr_tail"`
}

// A StderrTail is the last 16 KiB of log output, redacted.
type StderrTail struct {
	Object        string `json:"object"`
	Encoding      string `json:"encoding"`
	Text          string `json:"text"`
	BytesObserved int64  `json:"bytes_observed"`
	BytesCaptured int    `json:"bytes_captured"`
	Truncated     bool   `json:"truncated"`
	Redacted      bool   `json:"redacted"`
}

// output is the output of the guest for its owner: log, messages and progress.
type output struct {
	*parts
	diag     diagnostics
	text     messageText
	progress progress
}

func newOutput(all *parts, now time.Time) *output {
	op := &output{parts: all}
	op.diag.init(all.plan.Limits)
	op.progress.init(all.plan.Limits, now)
	return op
}

// diagnostics keeps the end of everything that the guest logged.
type diagnostics struct {
	tail     []byte
	observed int64
	events   int // log events recorded
	rate     int
	budget   int // bytes left for the current second
	second   time.Time
	line     []byte // unfinished line on fd 2 of a stdio connector
}

// maxLogEvents limits the log lines of one run in its timeline.
const maxLogEvents = 2000

func (d *diagnostics) init(l abi.Limits) { d.rate = l.LogBytesPerSecond }

// write adds log output. Output above the rate is counted and dropped.
func (d *diagnostics) write(p []byte, now time.Time) (kept bool) {
	d.observed += int64(len(p))
	if now.Sub(d.second) >= time.Second {
		d.second, d.budget = now, d.rate
	}
	if len(p) > d.budget {
		return false
	}
	d.budget -= len(p)
	const most = abi.LogTailBytes
	if len(p) > most {
		p = p[len(p)-most:]
	}
	if over := len(d.tail) + len(p) - most; over > 0 {
		d.tail = append(d.tail[:0], d.tail[over:]...)
	}
	d.tail = append(d.tail, p...)
	return true
}

// crashReport returns connector_diagnostics.
func (op *output) crashReport() *Diagnostics {
	d := &op.diag
	text := strings.ToValidUTF8(string(d.tail), "")
	shown := redact.Log(op.canary.Text(abi.CleanLines(text)))
	return &Diagnostics{&StderrTail{
		Object: "connector_stderr_tail", Encoding: "utf-8", Text: shown, BytesObserved: d.observed,
		BytesCaptured: len(d.tail), Truncated: d.observed > int64(len(d.tail)), Redacted: shown != text,
	}}
}

// handleLog handles the log call, whose text is added to the tail and to the timeline.
func (op *output) handleLog(level, message string, fields strictjson.Value) {
	if op.diag.write([]byte(level+" "+message+"\n"), time.Now()) {
		op.logEvent(level, message, fields)
	}
}

// handleDiagnostics handles text on a file descriptor, which is added to the tail. What a stdio connector writes to fd
// 2 is its log, and each line is also an event, since it has no log call.
func (op *output) handleDiagnostics(p []byte) {
	d := &op.diag
	if !d.write(p, time.Now()) || op.plan.Transport != "stdio" {
		return
	}
	d.line = append(d.line, p...)
	end := bytes.LastIndexByte(d.line, '\n')
	if end < 0 && len(d.line) < abi.LogTailBytes {
		return
	}
	if end < 0 { // the line is too long; split it
		end = len(d.line)
	}
	text := d.line[:end]
	d.line = bytes.TrimPrefix(d.line[end:], []byte{'\n'})
	op.logLines(text)
}

// endLog handles a last line without a line feed.
func (op *output) endLog() {
	text := op.diag.line
	op.diag.line = nil
	op.logLines(text)
}

// logLines redacts the text before splitting it into lines, since a secret may span several.
func (op *output) logLines(text []byte) {
	for line := range strings.SplitSeq(op.canary.Text(strings.ToValidUTF8(string(text), "")), "\n") {
		if !abi.Blank(line) {
			op.logEvent("info", line, strictjson.Value{})
		}
	}
}

// logEvent records a log line, up to maxLogEvents.
func (op *output) logEvent(level, message string, fields strictjson.Value) {
	if op.diag.events >= maxLogEvents {
		return
	}
	op.diag.events++
	d := data{"level": level, "message": abi.Cut(redact.Log(op.canary.Text(abi.Clean(message))), 500)}
	if fields.Is(strictjson.KindObject) {
		if b := redact.Diagnostics(op.canary.JSON(fields.Raw)); b != nil {
			d["fields"] = b
		}
	}
	e := op.journal.nodeEvent("log.appended", "in_progress", d)
	e.ActorType, e.ActorID = "connector", string(op.plan.Connector.ID)
	op.commits.record(e)
}

// messageText holds back the end of streamed text that the next chunk could complete to a protected value.
type messageText struct {
	held   string
	events int
	open   bool
}

const (
	maxChunk       = 16 * abi.KiB
	maxChunkEvents = 8000
)

// message handles the message call: text that the connector streams to its owner.
func (op *output) message(chunk string, last bool, meta strictjson.Value) {
	t := &op.text
	chunk = op.canary.Text(t.held + chunk)
	t.held = ""
	if keep := op.canary.Longest - 1; keep > 0 && !last {
		cut := max(0, len(chunk)-keep)
		for cut > 0 && cut < len(chunk) && chunk[cut]&0xc0 == 0x80 {
			cut--
		}
		chunk, t.held = chunk[:cut], chunk[cut:]
	}
	chunk = redact.Keyed(abi.CleanLines(chunk))
	t.open = !last
	for first := true; first || len(chunk) > 0; first = false {
		part := chunk
		if len(part) > maxChunk {
			part = strings.ToValidUTF8(chunk[:maxChunk], "")
		}
		chunk = chunk[len(part):]
		if part == "" && !last {
			return
		}
		op.chunk(part, last && chunk == "", meta)
	}
}

func (op *output) chunk(part string, last bool, meta strictjson.Value) {
	t := &op.text
	if t.events++; t.events > maxChunkEvents && !last {
		return
	}
	d := data{"chunk": part, "isLast": last}
	if m := messageMeta(op.canary, meta); m != nil {
		d["meta"] = m
	}
	e := op.journal.nodeEvent("output.chunk", "in_progress", d)
	e.ActorType, e.ActorID = "connector", string(op.plan.Connector.ID)
	op.commits.record(e)
}

// messageMeta returns the known members of meta. Others move into providerExtensions.
func messageMeta(c *redact.Canary, meta strictjson.Value) map[string]any {
	if !meta.Is(strictjson.KindObject) || len(meta.Raw) > 4*abi.KiB || c.Armed() && c.Find(meta.Raw) {
		return nil
	}
	out, other := map[string]any{}, map[string]any{}
	for name, v := range meta.Members() {
		value := redact.Value(v, 2)
		switch name {
		case "finishReason", "model", "provider":
			if v.Is(strictjson.KindString) {
				out[name] = value
			}
		case "logprobs", "toolCalls", "usage":
			out[name] = value
		case "providerExtensions":
			if v.Is(strictjson.KindObject) {
				for n, x := range v.Members() {
					other[redact.Gap(n, 64)] = redact.Value(x, 3)
				}
			}
		default:
			other[redact.Gap(name, 64)] = value
		}
	}
	if len(other) > 0 {
		out["providerExtensions"] = other
	}
	return out
}

// progress limits the rate of PROGRESS events with a token bucket. Per stream, the newest message waits for a
// token.
type progress struct {
	rate    float64 // tokens per second
	burst   float64
	tokens  float64
	filled  time.Time
	waiting []waitingProgress // in the order of the first waiting message
}

type waitingProgress struct {
	message   abi.ProgressMessage
	coalesced int // number of messages that it replaced
}

func (p *progress) init(l abi.Limits, now time.Time) {
	p.rate, p.burst = float64(l.ProgressPerSecond), float64(l.ProgressBurst)
	p.tokens, p.filled = p.burst, now
}

// take takes a token, and reports whether there was one.
func (p *progress) take(now time.Time) bool {
	p.tokens = min(p.burst, p.tokens+now.Sub(p.filled).Seconds()*p.rate)
	p.filled = now
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
}

// handleProgress handles PROGRESS. A message that has to wait is not encoded yet, since the next one may replace it.
func (op *output) handleProgress(m *abi.ProgressMessage) {
	if op.canary.LeaksText([]byte(m.Message)) {
		op.outcome.leak("PROGRESS", m.Stream, "/message", nil)
		return
	}
	p := &op.progress
	if len(p.waiting) == 0 && p.take(time.Now()) {
		op.recordProgress(waitingProgress{message: *m})
		return
	}
	i := slices.IndexFunc(p.waiting, func(w waitingProgress) bool { return w.message.Stream == m.Stream })
	if i < 0 {
		p.waiting = append(p.waiting, waitingProgress{message: *m})
		return
	}
	p.waiting[i].message = *m
	p.waiting[i].coalesced++
}

// holdsProgress reports whether messages are waiting.
func (op *output) holdsProgress() bool { return len(op.progress.waiting) > 0 }

// flushProgress records the waiting messages that the rate allows or, with all, every one of them, which keeps
// the order before another event.
func (op *output) flushProgress(now time.Time, all bool) {
	p := &op.progress
	for len(p.waiting) > 0 && (all || p.take(now)) {
		w := p.waiting[0]
		p.waiting = p.waiting[1:]
		op.recordProgress(w)
	}
}

func (op *output) recordProgress(w waitingProgress) {
	m := &w.message
	d := data{"message": redact.Progress(op.canary.Text(m.Message))}
	d.set("stream", m.Stream)
	if m.Count != nil {
		d["count"] = *m.Count
	}
	if m.Total != nil {
		d["total"] = *m.Total
	}
	if w.coalesced > 0 {
		d["coalesced"] = w.coalesced
	}
	e := op.journal.streamEvent("run.progress_reported", "in_progress", m.Stream, d)
	e.ActorType, e.ActorID = "connector", string(op.plan.Connector.ID)
	op.commits.submitNow(&store.Commit{Events: []store.Event{e}}, nil)
}

// endText ends a message that the connector left unfinished.
func (op *output) endText() {
	if op.text.open && op.guest != nil {
		op.message("", true, strictjson.Value{})
	}
}

// logDenial logs, for the owner, that a binding denied a request.
func (op *output) logDenial(reply []byte) {
	v, err := strictjson.Parse(reply, strictjson.ParseOptions{})
	if err != nil {
		return
	}
	if m, ok := v.Member("message"); ok {
		text, _ := m.Text()
		op.handleLog("warn", "denied: "+text, strictjson.Value{})
	}
}

// logDenials logs the denials among the answers of an exchange.
func (op *output) logDenials(answers []byte) {
	for len(answers) > 0 {
		a, rest, err := abi.NextAnswer(answers)
		if err != nil {
			return
		}
		if a.Errno == abi.EDENIED {
			op.logDenial(a.Reply)
		}
		answers = rest
	}
}
