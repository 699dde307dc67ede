// Package timeline says what a run's log means: the catalogue of event types,
// an event as a document, the log as a snapshot, its questions and requests for
// assistance, and what an owner is shown of them.
//
// The package is pure: no I/O, no clock, no goroutine. Everything is derived
// from events and the run row, so that API, streams, webhooks and pages agree.
// Members of event data are text that guests had a hand in: they are
// bounded, never interpreted beyond the fields named here, and no bytes in them
// make the package fail.
package timeline

import (
	"cmp"
	"encoding/json"

	"github.com/sluicehost/sluice/store"
)

// SchemaVersion is the version of documents and snapshots.
const SchemaVersion = 1

// A Doc is a RunEventDoc: an event as the API renders it, with exactly these members.
type Doc struct {
	EventID       store.EventID   `json:"eventId"`
	RunID         store.RunID     `json:"runId"`
	NodeID        string          `json:"nodeId,omitempty"`
	Type          Type            `json:"type"`
	Payload       json.RawMessage `json:"payload"` // one object
	Timestamp     string          `json:"timestamp"`
	Sequence      uint64          `json:"sequence"`
	SchemaVersion int             `json:"schemaVersion,omitempty"`
	EngineVersion string          `json:"engineVersion,omitempty"`
	CausationID   store.EventID   `json:"causationId,omitempty"`
}

// Document renders an event. The payload contains no <, >, & or line separators, so it can be
// embedded in a page or a line. Data that is not an object gives an empty payload.
func Document(e store.Event) Doc {
	return Doc{
		EventID: e.ID, RunID: e.RunID, NodeID: e.NodeID, Type: Type(e.Type), Payload: payload(e),
		Timestamp: store.Time(e.OccurredAt), Sequence: e.Sequence, SchemaVersion: SchemaVersion, CausationID: e.CausationID,
	}
}

// payload returns the data with the envelope's members added to events of the run protocol. Where
// both have a member, the data's is kept, since it is more specific: the status of a detail gap is
// not that of its event.
func payload(e store.Event) json.RawMessage {
	m := membersOf(e.Data)
	row, _ := Lookup(Type(e.Type))
	switch {
	case row.Closed:
		m = m.only(row)
	case row.Vocabulary == Openwop:
		delete(m, "source")
	default:
		m["connector_id"], m["connection_id"] = quoted(string(e.ConnectorID)), quoted(string(e.ConnectionID))
		m.fill("status", e.Status)
		m.fill("interaction_id", e.InteractionID)
		m.fill("stream", string(e.Stream))
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// A Chunk is the data of an ai.message.chunk.
type Chunk struct {
	NodeID string          `json:"nodeId"`
	RunID  store.RunID     `json:"runId"`
	Chunk  string          `json:"chunk"`
	IsLast bool            `json:"isLast"`
	Meta   json.RawMessage `json:"meta,omitempty"` // closed by the host
}

// ChunkOf renders an output.chunk for a messages stream.
func ChunkOf(e store.Event) Chunk {
	m := membersOf(e.Data)
	c := Chunk{NodeID: m.text("nodeId"), RunID: e.RunID, Chunk: m.text("chunk"), IsLast: m.yes("isLast")}
	c.NodeID = cmp.Or(c.NodeID, e.NodeID)
	if meta := m.object("meta"); meta != nil {
		c.Meta = m["meta"]
	}
	return c
}
