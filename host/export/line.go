package export

import (
	"encoding/json"
	"fmt"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// A Line is a record as the API and exports show it.
type Line struct {
	ConnectionID store.ConnectionID `json:"connectionId"`
	Stream       store.Stream       `json:"stream"`
	Key          json.RawMessage    `json:"key" doc:"A string, or an array of strings for a compound key."`
	Data         json.RawMessage    `json:"data,omitempty"`
	EmittedAt    string             `json:"emittedAt" format:"date-time"`
	IngestedAt   string             `json:"ingestedAt" format:"date-time"`
	Version      uint64             `json:"version"`
	RunID        store.RunID        `json:"runId"`
	Deleted      bool               `json:"deleted,omitempty"`
	DeletedAt    string             `json:"deletedAt,omitempty" format:"date-time"`
}

// LineOf converts a stored record, whose data it shares. A tombstone's deletion time is when it was stored.
func LineOf(connection store.ConnectionID, r store.Record) Line {
	l := Line{
		ConnectionID: connection, Stream: r.Stream, Key: keyJSON(r), Data: r.Data, EmittedAt: store.Time(r.EmittedAt),
		IngestedAt: store.Time(r.IngestedAt), Version: r.Version, RunID: r.RunID, Deleted: r.Deleted,
	}
	if r.Deleted {
		l.Data, l.DeletedAt = nil, l.IngestedAt
	}
	return l
}

// keyJSON returns the key as a string, or as an array of strings for a compound key.
func keyJSON(r store.Record) json.RawMessage {
	if r.Compound {
		return json.RawMessage(r.Key)
	}
	return strictjson.AppendQuote(nil, r.Key)
}

// Only removes the members from a record's data that are not in keep; nil keeps all.
func Only(r store.Record, keep map[string]bool) (store.Record, error) {
	if keep == nil || len(r.Data) == 0 {
		return r, nil
	}
	v, err := parse(r)
	if err != nil {
		return r, err
	}
	kept := json.RawMessage("{")
	for name, m := range v.Members() {
		if !keep[name] {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(strictjson.AppendQuote(kept, name), ':')
		kept = append(kept, m.Raw...)
	}
	r.Data = append(kept, '}')
	return r, nil
}

func parse(r store.Record) (strictjson.Value, error) {
	v, err := strictjson.Parse(r.Data, strictjson.ParseOptions{})
	if err != nil {
		return v, fmt.Errorf("read record %q of %s: %w", abi.Clean(r.Key), r.Stream, err)
	}
	return v, nil
}
