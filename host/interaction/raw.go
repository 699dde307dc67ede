package interaction

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

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
func (d *Desk) Raw(ctx context.Context, id store.RunID, item string) (host.RawAssistance, error) {
	if r, ok := d.held(id, item); ok {
		return r, nil
	}
	open, err := d.store.Pending(ctx, id) // it may be on its way here
	if err != nil {
		return host.RawAssistance{}, fmt.Errorf("list open questions of %s: %w", id, err)
	}
	for _, q := range open {
		if q.ID == item {
			return host.RawAssistance{Message: abi.CleanLines(q.Message), Schema: q.Schema, Attachments: []host.LiveAttachment{}}, nil
		}
	}
	return host.RawAssistance{}, store.ErrNotFound
}

// held is what lies on the desk.
func (d *Desk) held(id store.RunID, item string) (host.RawAssistance, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	if s == nil {
		return host.RawAssistance{}, false
	}
	if q := s.asked; q != nil && q.InteractionID == item {
		names := make(map[string]string, len(q.Fields))
		for _, f := range q.Fields {
			names[f.Shown] = f.Name
		}
		return host.RawAssistance{Message: q.RawMessage, Schema: bytes.Clone(q.RawSchema), Attachments: []host.LiveAttachment{}, Fields: names, Page: pageOf(q.Page)}, true
	}
	if a, ok := s.live[item]; ok {
		return host.RawAssistance{Message: a.Message, Schema: bytes.Clone(a.Schema), Attachments: attachments(a.Attachments)}, true
	}
	return host.RawAssistance{}, false
}

func pageOf(p run.Page) *host.OpenPage {
	if p.Host == "" {
		return nil
	}
	return &host.OpenPage{Title: p.Title, URLHost: p.Host}
}

// attachments are those of an item, with their targets.
func attachments(in []abi.Attachment) []host.LiveAttachment {
	out := make([]host.LiveAttachment, 0, len(in))
	for _, a := range in {
		out = append(out, host.LiveAttachment(a))
	}
	return out
}
