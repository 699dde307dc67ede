package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/webhook"
)

// A sink sends to one server.
type sink struct {
	courier *webhook.Courier
	address string
	secrets []secret
	name    string // of the destination
	marks   destination.Marks
	has     map[destination.StreamID]mark
}

// A mark is the progress of a stream.
type mark struct {
	destination.Holding
	// Begun is when sending the stream started from the beginning. Versions with the same Begun belong to one history.
	Begun time.Time `json:"begun"`
}

// Verbatim implements destination.Verbatim.
func (s *sink) Verbatim() {}

// Holdings implements destination.Sink.
func (s *sink) Holdings(context.Context) (map[destination.StreamID]destination.Holding, error) {
	out := make(map[destination.StreamID]destination.Holding, len(s.has))
	for id, m := range s.has {
		out[id] = m.Holding
	}
	return out, nil
}

// Apply implements destination.Sink, except that a batch may fail halfway. The mark then covers what the server has
// accepted.
func (s *sink) Apply(ctx context.Context, b *destination.Batch) error {
	m := mark{Holding: b.To, Begun: s.courier.Now().UTC()}
	m.Mark = 0
	if b.From != nil {
		m.Begun, m.Mark = s.has[b.ID].Begun, b.From.Mark
	}
	b.To.Table = b.ID.Table()
	m.Table, m.Shape = b.To.Table, &destination.Shape{Flatten: b.To.Shape.Flatten}
	for rows := b.Rows; ; {
		n := fitting(rows)
		to := b.To.Mark
		if n < len(rows) {
			to = rows[n-1].Version
		}
		if n > 0 {
			if err := s.post(ctx, changed(s.name, b.ID, m, to, rows[:n])); err != nil {
				return err
			}
		}
		m.Mark = to
		if err := s.keep(ctx, b.ID, m); err != nil {
			return err
		}
		if rows = rows[n:]; len(rows) == 0 {
			return nil
		}
	}
}

// Clear implements destination.Sink. It tells the server that what it has of a stream is void.
func (s *sink) Clear(ctx context.Context, id destination.StreamID) error {
	m, ok := s.has[id]
	if !ok {
		return nil
	}
	if err := s.post(ctx, cleared(s.name, id, m)); err != nil {
		return err
	}
	if err := s.marks.Mark(ctx, id, nil); err != nil {
		return err
	}
	delete(s.has, id)
	return nil
}

// Describe implements destination.Sink. It does nothing, because a server only gets records.
func (s *sink) Describe(context.Context, []destination.Described) error { return nil }

// Close implements destination.Sink.
func (s *sink) Close() error { return nil }

func (s *sink) keep(ctx context.Context, id destination.StreamID, m mark) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := s.marks.Mark(ctx, id, data); err != nil {
		return fmt.Errorf("keep that it was taken: %w", err)
	}
	s.has = maps.Clone(s.has)
	s.has[id] = m
	return nil
}

// post sends a body. The message id is derived from it, so that the server can recognize repetitions.
func (s *sink) post(ctx context.Context, body []byte) error {
	sum := sha256.Sum256(body)
	err := s.courier.Post(ctx, s.address, texts(s.secrets, s.courier.Now()), "msg_"+hex.EncodeToString(sum[:16]), body)
	var failed *webhook.Failure
	if errors.As(err, &failed) {
		return fmt.Errorf("the server did not take a batch: %s", failed.Words)
	}
	return err
}
