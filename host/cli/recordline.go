package cli

import (
	"encoding/json"

	"github.com/sluicehost/sluice/store"
)

// A recordLine is the Record of run-api.md A212.
type recordLine struct {
	ConnectionID store.ConnectionID `json:"connectionId"`
	Stream       store.Stream       `json:"stream"`
	Key          json.RawMessage    `json:"key"`
	Data         json.RawMessage    `json:"data,omitempty"`
	EmittedAt    string             `json:"emittedAt"`
	IngestedAt   string             `json:"ingestedAt"`
	Version      uint64             `json:"version"`
	RunID        store.RunID        `json:"runId"`
	Deleted      bool               `json:"deleted,omitempty"`
	DeletedAt    string             `json:"deletedAt,omitempty"`
}

// lineOf renders a stored record. A tombstone was deleted when it was stored.
func lineOf(connection store.ConnectionID, r store.Record) recordLine {
	l := recordLine{
		ConnectionID: connection, Stream: r.Stream, Key: keyJSON(r), Data: r.Data, EmittedAt: store.Time(r.EmittedAt),
		IngestedAt: store.Time(r.IngestedAt), Version: r.Version, RunID: r.RunID, Deleted: r.Deleted,
	}
	if r.Deleted {
		l.Data, l.DeletedAt = nil, l.IngestedAt
	}
	return l
}

// keyJSON is a string, or an array of strings for a compound key.
func keyJSON(r store.Record) json.RawMessage {
	if r.Compound {
		return json.RawMessage(r.Key)
	}
	return quoted(r.Key)
}
