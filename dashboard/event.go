package dashboard

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// eventPage is how many events a page shows at once.
const eventPage = 100

// An eventRow is a line of the timeline.
type eventRow struct {
	Sequence uint64
	At       time.Time
	Type     string
	Title    string
	Detail   string // text from the connector, or numbers
	Stream   string
	Tone     string
	Fold     string // consecutive lines with the same Fold are collapsed; "" never is
	Records  int64
	Inner    bool // shown with the technical details
	Payload  json.RawMessage
}

// events returns the events before a sequence, newest first; 0 means from the end.
func (u *runUI) events(ctx context.Context, id store.RunID, before uint64) (rows []eventRow, more bool, err error) {
	list, err := u.rows.EventsBefore(ctx, id, before, eventPage)
	if err != nil {
		return nil, false, err
	}
	for _, e := range slices.Backward(list) {
		rows = append(rows, rowOf(e))
	}
	return rows, len(list) > 0 && list[0].Sequence > 0, nil
}

// A title describes an event type to the owner. Types without a title are shown by name.
type title struct {
	text  string
	tone  string
	inner bool
}

var titles = map[timeline.Type]title{
	timeline.RunStarted:              {"The run started", "live", false},
	timeline.RunCompleted:            {"The run is done", "good", false},
	timeline.RunFailed:               {"The run failed", "bad", false},
	timeline.RunCancelled:            {"The run was cancelled", "warn", false},
	timeline.RunPaused:               {"Paused", "warn", false},
	timeline.RunResumed:              {"Goes on", "live", false},
	timeline.RunCancelRequested:      {"Cancel was asked for", "warn", false},
	timeline.RunProgressReported:     {"Progress", "calm", false},
	timeline.RunBatchIngested:        {"Records stored", "good", false},
	timeline.RunStateStaged:          {"Checkpoint noted", "calm", true},
	timeline.RunStateAdvanced:        {"Checkpoint kept", "good", false},
	timeline.RunStateCommitFailed:    {"A checkpoint could not be kept", "bad", false},
	timeline.RunStreamSkipped:        {"Left out", "warn", false},
	timeline.RunDetailGapRecorded:    {"A detail is missing", "warn", false},
	timeline.RunDetailGapRecovered:   {"A missing detail was found", "good", false},
	timeline.RunInteractionRequired:  {"A question was asked", "warn", false},
	timeline.RunInteractionCompleted: {"The question is closed", "good", false},
	timeline.RunAssistanceRequested:  {"Help was asked for", "warn", true},
	timeline.RunAssistanceUpdated:    {"The request changed", "calm", true},
	timeline.RunAssistanceResolved:   {"The request is settled", "good", true},
	timeline.RunAssistanceCancelled:  {"The request was withdrawn", "calm", true},
	timeline.RunAssistanceTimedOut:   {"The request timed out", "warn", true},
	timeline.RunAssistanceEscalated:  {"The request became a question", "warn", true},
	timeline.LogAppended:             {"Log", "calm", false},
	timeline.OutputChunk:             {"Message", "calm", false},
	timeline.CapBreached:             {"A limit was reached", "bad", false},
	timeline.RunSealedValueUsed:      {"A secret was used", "calm", false},
	timeline.ArtifactCreated:         {"A file was left", "good", false},

	timeline.RunBrowserSurfaceRequested: {"A browser is asked for", "calm", true},
	timeline.RunBrowserSurfaceQueued:    {"The browser waits for a free place", "warn", false},
	timeline.RunBrowserSurfaceStarting:  {"The browser starts", "calm", true},
	timeline.RunBrowserSurfaceReady:     {"The browser is open", "live", false},
	timeline.RunBrowserSurfaceProbe:     {"The browser did not answer", "warn", false},
	timeline.RunBrowserSurfaceFailed:    {"The browser failed", "bad", false},
	timeline.RunBrowserSurfaceReleased:  {"The browser is closed", "calm", false},
	timeline.RunBrowserSurfaceLost:      {"The browser was lost while you were asked", "bad", false},
	timeline.RunBrowserAction:           {"An action in the browser", "calm", false},
	timeline.RunBrowserEgressDenied:     {"The browser was kept from a server", "warn", false},
	timeline.RunBrowserCookieHandoff:    {"Cookies were asked for", "calm", false},
	timeline.RunStreamSessionRequested:  {"A live view was asked for", "calm", true},
	timeline.RunStreamSessionOpened:     {"You look at the browser", "live", false},
	timeline.RunStreamSessionResolved:   {"The live view is closed", "calm", false},
	timeline.RunStreamReachFailed:       {"The live view could not be reached", "warn", false},

	timeline.NodeStarted:            {"The step started", "calm", true},
	timeline.NodeCompleted:          {"The step is done", "good", true},
	timeline.NodeFailed:             {"The step failed", "bad", true},
	timeline.NodeSkipped:            {"A step was passed over", "warn", true},
	timeline.NodeRetried:            {"The step is tried again", "calm", true},
	timeline.VersionPinned:          {"The version is fixed", "calm", true},
	timeline.NodeCancelled:          {"The step was cancelled", "warn", true},
	timeline.NodeSuspended:          {"The step waits", "warn", true},
	timeline.NodeResumed:            {"The step goes on", "live", true},
	timeline.InterruptRequested:     {"Interrupt opened", "calm", true},
	timeline.InterruptResolved:      {"Interrupt closed", "calm", true},
	timeline.ApprovalRequested:      {"Approval asked for", "calm", true},
	timeline.ApprovalReceived:       {"Approval decided", "calm", true},
	timeline.ClarificationRequested: {"Clarification asked for", "calm", true},
	timeline.ClarificationResolved:  {"Clarification given", "calm", true},
	timeline.LeaseAcquired:          {"The connection is held", "calm", true},
	timeline.LeaseRenewed:           {"The hold was renewed", "calm", true},
	timeline.LeaseLost:              {"The hold was lost", "bad", true},
}

// eventText holds the members of payloads that lines show.
type eventText struct {
	Message   string
	Reason    string
	Chunk     string
	Summary   string
	Level     string
	Code      string
	Status    string
	Kind      string
	Stream    string
	Count     *int64
	Total     *int64
	Records   *int64 `json:"record_count"`
	Flushed   *int64 `json:"records_flushed"`
	Attempted *int64 `json:"records_attempted"`
	Terminal  string `json:"terminal_reason"`
	Field     string
	Origin    string
	Error     struct{ Code, Message string }
	Rejected  int64 `json:"records_permanently_rejected"`
	Refused   []struct {
		Key, Code, Field, Expected, Received string
	} `json:"rejections"`
	Outcome string
	Gap     struct {
		Reason, Message string
	} `json:"known_gap"`
}

// maxDetail bounds the detail of a line, in runes.
const maxDetail = 500

func rowOf(e store.Event) eventRow {
	r := eventRow{Sequence: e.Sequence, At: e.RecordedAt, Type: e.Type, Title: e.Type, Tone: "calm",
		Stream: string(e.Stream), Payload: e.Data}
	if t, ok := titles[timeline.Type(e.Type)]; ok {
		r.Title, r.Tone, r.Inner = t.text, t.tone, t.inner
	}
	var d eventText
	_ = json.Unmarshal(e.Data, &d) // the payload is shown in full below in any case
	if d.Level == "error" || d.Level == "warn" {
		r.Tone = map[string]string{"error": "bad", "warn": "warn"}[d.Level]
	}
	if r.Stream == "" {
		r.Stream = d.Stream
	}
	switch {
	case d.Outcome == timeline.Partial:
		r.Title, r.Tone = "The run is done and left data out", "warn"
	case e.Type == string(timeline.RunBatchIngested) && d.Rejected > 0:
		r.Tone = "warn"
	}
	r.Detail = d.words()
	if name, detail, tone, ok := browserLine(e); ok {
		r.Detail = detail
		if name != "" {
			r.Title = name
		}
		if tone != "" {
			r.Tone = tone
		}
	}
	r.fold(e.Type, &d)
	r.Detail = abi.Cut(r.Detail, maxDetail)
	return r
}

// fold sets which consecutive lines are collapsed. A batch that lost records stays separate.
func (r *eventRow) fold(kind string, d *eventText) {
	switch {
	case r.Inner || timeline.Type(kind).Terminal():
	case kind != string(timeline.RunBatchIngested):
		r.Fold = strings.Join([]string{kind, r.Title, r.Tone, r.Stream}, " ")
	case d.Flushed != nil && (d.Attempted == nil || *d.Attempted == *d.Flushed):
		r.Fold, r.Records = kind+" "+r.Stream, *d.Flushed
	}
}

// words returns the detail of a line: the first text that there is, and its numbers.
func (d *eventText) words() string {
	var parts []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			parts = append(parts, s)
		}
	}
	for _, s := range []string{d.Message, d.Chunk, d.Summary, d.Error.Message, d.Gap.Message, reasonWord(d.Gap.Reason),
		reasonWord(d.Reason), reasonWord(d.Terminal), reasonWord(d.Kind)} {
		if add(s); len(parts) > 0 {
			break
		}
	}
	switch {
	case d.Count != nil && d.Total != nil:
		add(count(*d.Count) + " of " + count(*d.Total))
	case d.Count != nil:
		add(count(*d.Count))
	case d.Records != nil:
		add(plural(*d.Records, "record"))
	case d.Flushed != nil:
		add(plural(*d.Flushed, "record"))
	}
	if d.Rejected > 0 {
		add(plural(d.Rejected, "record") + " rejected")
	}
	for _, j := range d.Refused {
		add(strings.Join(strings.Fields(j.Key+": "+j.Field+" "+reasonWord(j.Code)), " "))
	}
	if d.Field != "" && d.Origin != "" {
		add(d.Field + " at " + d.Origin)
	}
	if d.Status != "" && len(parts) < 2 {
		add(statusWord(d.Status))
	}
	return strings.Join(parts, " · ")
}
