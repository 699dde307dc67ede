package browser

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

// mark is a checkpoint of a session that the guest makes itself (B188, B189). With
// done it is made.
func (s *Session) mark(r *engine.Request) (any, *engine.Refusal) {
	s.checkpoint(r.Mark.Phase)
	if o := s.current(); o != nil {
		s.checkpointed(o, r.Mark.Phase)
	}
	if r.Mark.Done {
		s.unguard()
		s.settled(true)
		if o := s.current(); o != nil {
			o.Establish(false)
		}
	}
	return map[string]any{"phase": r.Mark.Phase, "at": time.Now().UnixMilli()}, nil
}

// closeVerb ends a tab, or the surface (B35). The last tab is the surface.
func (s *Session) closeVerb(ctx context.Context, o *opened, r *engine.Request) (any, *engine.Refusal) {
	if r.Tab != "" {
		all := o.Browser().Tabs()
		for _, t := range all {
			if t.ID() == r.Tab && len(all) > 1 {
				return s.closeTab(ctx, o, t)
			}
			if t.ID() == r.Tab {
				return s.closeSurface(ctx, o)
			}
		}
		return nil, refuse(r.Verb, "invalid_request", "tab: there is no such tab")
	}
	return s.closeSurface(ctx, o)
}

func (s *Session) closeTab(ctx context.Context, o *opened, t page.Tab) (any, *engine.Refusal) {
	if all := o.Browser().Tabs(); all[0].ID() == t.ID() { // another one is active first, or its end would be a loss
		if err := o.Browser().Activate(ctx, all[1].ID()); err != nil {
			return nil, s.asRefusal(engine.Close, err)
		}
	}
	if err := t.Close(ctx); err != nil {
		return nil, s.asRefusal(engine.Close, err)
	}
	return map[string]any{"closed": "tab", "graceful": true}, nil
}

func (s *Session) closeSurface(ctx context.Context, o *opened) (any, *engine.Refusal) {
	s.unguard()
	_, reverted := o.engine.Do(ctx, &engine.Request{Verb: engine.Close})
	o.engine.Close()
	o.Release(context.WithoutCancel(ctx))
	if reverted != nil && reverted.Code == engine.CodeReverted {
		return nil, reverted
	}
	return map[string]any{"closed": "surface", "graceful": o.State() != fleet.Lost}, nil
}
