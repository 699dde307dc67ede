package store

import (
	"encoding/json"
	"time"
)

// EventVersion is the version member of every event.
const EventVersion = "sluice.timeline.v1"

// An Event is one line of a run's timeline. The caller sets everything but
// Sequence, RecordedAt and CausationID, which Submit assigns.
//
// Invariant: Sequence starts at 0 in every run and has no gaps.
type Event struct {
	ID            EventID         `json:"event_id"`
	Type          string          `json:"event_type"`
	Sequence      uint64          `json:"sequence"`
	OccurredAt    time.Time       `json:"occurred_at"`
	RecordedAt    time.Time       `json:"recorded_at"`
	RunID         RunID           `json:"run_id"`
	TraceID       TraceID         `json:"trace_id"`
	ConnectorID   ConnectorID     `json:"connector_id"`
	ConnectionID  ConnectionID    `json:"connection_id"`
	GrantID       GrantID         `json:"grant_id"`
	ActorType     string          `json:"actor_type"` // runtime, owner, connector, controller, scheduler
	ActorID       string          `json:"actor_id"`
	Status        string          `json:"status"`
	Stream        Stream          `json:"stream_id"`
	InteractionID string          `json:"interaction_id"`
	NodeID        string          `json:"node_id"`      // set on node-scoped events
	CausationID   EventID         `json:"causation_id"` // the first event of the same commit, empty on that one
	Data          json.RawMessage `json:"data"`
}

// timeFormat is RFC 3339 UTC with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

// Time formats t as in all timelines and APIs.
func Time(t time.Time) string { return t.UTC().Format(timeFormat) }

// AppendTime appends the result of Time.
func AppendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, timeFormat)
	}
	two := func(n int) { b = append(b, byte('0'+n/10), byte('0'+n%10)) }
	two(year / 100)
	two(year % 100)
	b = append(b, '-')
	two(int(month))
	b = append(b, '-')
	two(day)
	b = append(b, 'T')
	two(hour)
	b = append(b, ':')
	two(minute)
	b = append(b, ':')
	two(second)
	ms := t.Nanosecond() / 1e6
	b = append(b, '.', byte('0'+ms/100))
	two(ms % 100)
	return append(b, 'Z')
}

// MarshalJSON renders the envelope of docs/spec/runs.md, "The timeline".
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(envelope{
		Version: EventVersion, ID: e.ID, Type: e.Type, Sequence: e.Sequence,
		OccurredAt: Time(e.OccurredAt), RecordedAt: Time(e.RecordedAt),
		RunID: e.RunID, TraceID: e.TraceID, ConnectorID: e.ConnectorID, ConnectionID: e.ConnectionID,
		GrantID: orNull(string(e.GrantID)), ActorType: e.ActorType, ActorID: e.ActorID,
		ObjectType: "run", ObjectID: e.RunID, Status: e.Status,
		Stream: orNull(string(e.Stream)), InteractionID: orNull(e.InteractionID),
		NodeID: e.NodeID, CausationID: e.CausationID, Data: e.Data,
	})
}

// An envelope is the written form of an Event. It is read into an Event, where null becomes
// "".
type envelope struct {
	Version       string          `json:"version"`
	ID            EventID         `json:"event_id"`
	Type          string          `json:"event_type"`
	Sequence      uint64          `json:"sequence"`
	OccurredAt    string          `json:"occurred_at"`
	RecordedAt    string          `json:"recorded_at"`
	RunID         RunID           `json:"run_id"`
	TraceID       TraceID         `json:"trace_id"`
	ConnectorID   ConnectorID     `json:"connector_id"`
	ConnectionID  ConnectionID    `json:"connection_id"`
	GrantID       *string         `json:"grant_id"`
	ActorType     string          `json:"actor_type"`
	ActorID       string          `json:"actor_id"`
	ObjectType    string          `json:"object_type"`
	ObjectID      RunID           `json:"object_id"`
	Status        string          `json:"status"`
	Stream        *string         `json:"stream_id"`
	InteractionID *string         `json:"interaction_id"`
	NodeID        string          `json:"node_id,omitempty"`
	CausationID   EventID         `json:"causation_id,omitempty"`
	Data          json.RawMessage `json:"data"`
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
