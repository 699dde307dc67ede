package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// Events calls do with the stored events of a run from a sequence on, in order. It
// does not wait for new ones.
func (c eventClient) Events(ctx context.Context, id store.RunID, from uint64, do func(timeline.Doc) error) error {
	for {
		q := url.Values{}
		if from > 0 {
			q.Set("after", strconv.FormatUint(from-1, 10))
		}
		var got struct {
			Events     []timeline.Doc `json:"events"`
			IsComplete bool           `json:"isComplete"`
		}
		if err := c.get(ctx, at("runs", string(id), "events"), q, &got); err != nil {
			return err
		}
		for _, e := range got.Events {
			if err := do(e); err != nil {
				return err
			}
			from = e.Sequence + 1
		}
		if got.IsComplete || len(got.Events) == 0 {
			return nil
		}
	}
}

// Timeline calls do with the events of a run from a sequence on, in their stored form.
// Only the owner may call it.
func (c eventClient) Timeline(ctx context.Context, id store.RunID, from uint64, do func(store.Event) error) error {
	for {
		var got struct {
			Events []store.Event `json:"events"`
			More   bool          `json:"more"`
		}
		if err := c.get(ctx, at("runs", string(id), "timeline"),
			url.Values{"from": {strconv.FormatUint(from, 10)}}, &got); err != nil {
			return err
		}
		for _, e := range got.Events {
			if err := do(e); err != nil {
				return err
			}
			from = e.Sequence + 1
		}
		if !got.More {
			return nil
		}
	}
}
