package interaction

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Raw is what only those who may answer see of an open item: the
// connector's own words, which nothing was taken out of.
type Raw struct {
	Message     string
	Schema      json.RawMessage  // nil for none
	Attachments []abi.Attachment // with their targets
	// Fields are the connector's own names, by those that the question shows. Nil
	// for an item that takes no answer.
	Fields map[string]string
	Page   run.Page // that a browser shows meanwhile
}

// AssistanceOpened implements run.Desk. A run has few open at once.
func (d *Desk) AssistanceOpened(id store.RunID, a run.LiveAssistance) {
	a.Schema, a.Attachments = bytes.Clone(a.Schema), slices.Clone(a.Attachments)
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.at(id)
	if s.live == nil {
		s.live = map[string]run.LiveAssistance{}
	}
	s.live[a.ID] = a
}

// AssistanceClosed implements run.Desk. What was live of it is gone.
func (d *Desk) AssistanceClosed(id store.RunID, assistance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.runs[id]; s != nil {
		delete(s.live, assistance)
	}
}

// Raw returns the words of an open question or assistance; store.ErrNotFound
// when there is none of that id.
func (d *Desk) Raw(ctx context.Context, id store.RunID, item string) (Raw, error) {
	if r, ok := d.held(id, item); ok {
		return r, nil
	}
	open, err := d.store.Pending(ctx, id) // it may be on its way here
	if err != nil {
		return Raw{}, fmt.Errorf("list open questions of %s: %w", id, err)
	}
	for _, q := range open {
		if q.ID == item {
			return Raw{Message: abi.CleanLines(q.Message), Schema: q.Schema, Attachments: []abi.Attachment{}}, nil
		}
	}
	return Raw{}, store.ErrNotFound
}

// held is what lies on the desk.
func (d *Desk) held(id store.RunID, item string) (Raw, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	if s == nil {
		return Raw{}, false
	}
	if q := s.asked; q != nil && q.InteractionID == item {
		names := make(map[string]string, len(q.Fields))
		for _, f := range q.Fields {
			names[f.Shown] = f.Name
		}
		return Raw{Message: q.RawMessage, Schema: bytes.Clone(q.RawSchema), Attachments: []abi.Attachment{}, Fields: names, Page: q.Page}, true
	}
	if a, ok := s.live[item]; ok {
		return Raw{Message: a.Message, Schema: bytes.Clone(a.Schema), Attachments: append([]abi.Attachment{}, a.Attachments...)}, true
	}
	return Raw{}, false
}
