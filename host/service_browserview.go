package host

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/dashboard/control"
	"github.com/sluicehost/sluice/host/audit"
	liveview "github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/store"
)

var (
	_ control.Views = (*Service)(nil)
	_ liveview.Conn = control.ViewConn(nil)
)

// Views is where runs with a browser let their owner look (B207).
func (s *Service) Views() *liveview.Views { return s.views }

// MintView implements control.Views. That the owner may look is the caller's
// business, that the run exists too; what was given out is in the audit log before
// it is (A168).
func (s *Service) MintView(ctx context.Context, who control.Principal, owner string, q control.MintView) (control.View, error) {
	mint := liveview.Mint{Run: string(q.RunID), Owner: owner, Mode: q.Mode, InteractionID: q.InteractionID, AssistanceID: q.AssistanceID, Key: q.Key}
	if p := q.Viewport; p != nil {
		if mint.Viewport = liveview.Viewport(p.Width, p.Height, p.DeviceScaleFactor, p.Mobile); mint.Viewport == nil {
			return control.View{}, invalid("viewport", "a width and a height of 240 to 3840", "it is no size of a window")
		}
	}
	m, err := s.views.Mint(mint)
	var refused *liveview.Refusal
	if errors.As(err, &refused) {
		return control.View{}, control.Refuse(refused.Code, "%s", refused.Message)
	}
	if err != nil {
		return control.View{}, err
	}
	if !m.Replayed {
		if err := s.Audit(ctx, who, string(audit.ViewOpened), string(q.RunID), string(audit.Done), nil); err != nil {
			s.views.Revoke(owner, string(q.RunID), m.ViewID)
			return control.View{}, err
		}
	}
	out := control.View{ViewID: m.ViewID, Mode: m.Mode, ExpiresAt: m.ExpiresAt, Replayed: m.Replayed}
	if m.Token != "" {
		out.Token = &m.Token
	}
	return out, nil
}

// RevokeView implements control.Views.
func (s *Service) RevokeView(_ context.Context, _ control.Principal, owner string, run store.RunID, viewID string) error {
	if !s.views.Revoke(owner, string(run), viewID) {
		return notFound("view")
	}
	return nil
}

// ConnectView implements control.Views.
func (s *Service) ConnectView(ctx context.Context, owner string, run store.RunID, c control.ViewConn) {
	s.views.Connect(ctx, owner, string(run), c)
}

// ReachFailed implements control.Views.
func (s *Service) ReachFailed(_ context.Context, owner string, run store.RunID, viewID, reason string, httpStatus int) error {
	if !s.views.Failed(owner, string(run), viewID, reason, httpStatus) {
		return notFound("view")
	}
	return nil
}
