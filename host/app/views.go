package app

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	liveview "github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/store"
)

// views implements host.Views.
type views struct {
	views  *liveview.Views
	system *system
	hosts  *hosts
}

var (
	_ host.Views    = (*views)(nil)
	_ liveview.Conn = host.ViewConn(nil)
)

// Views returns the live views of this host's browsers.
func (vs *views) Views() *liveview.Views { return vs.views }

// MintView implements host.Views. The caller checks that the owner may look and that the run exists. The view is
// recorded in the audit log before it is returned.
func (vs *views) MintView(ctx context.Context, owner string, q host.MintView) (host.View, error) {
	mint := liveview.Mint{Run: string(q.RunID), Owner: owner, Mode: q.Mode, InteractionID: q.InteractionID,
		AssistanceID: q.AssistanceID, Key: q.Key}
	if p := q.Viewport; p != nil {
		if mint.Viewport = liveview.Viewport(p.Width, p.Height, p.DeviceScaleFactor, p.Mobile); mint.Viewport == nil {
			return host.View{}, invalid("viewport", "a width and a height of 240 to 3840", "it is no size of a window")
		}
	}
	away, err := vs.hosts.holder(ctx, q.RunID)
	if err != nil {
		return host.View{}, err
	}
	if away != nil {
		return host.View{}, elsewhere(memberOf(*away), pageOf(q.RunID), "the browser of this run")
	}
	m, err := vs.views.Mint(mint)
	var refused *liveview.Refusal
	if errors.As(err, &refused) {
		return host.View{}, host.Refuse(refused.Code, "%s", refused.Message)
	}
	if err != nil {
		return host.View{}, err
	}
	if !m.Replayed {
		if err := vs.system.Audit(ctx, string(audit.ViewOpened), string(q.RunID), string(audit.Done), nil); err != nil {
			vs.views.Revoke(owner, string(q.RunID), m.ViewID)
			return host.View{}, err
		}
	}
	out := host.View{ViewID: m.ViewID, Mode: m.Mode, ExpiresAt: m.ExpiresAt, Replayed: m.Replayed}
	if m.Token != "" {
		out.Token = &m.Token
	}
	return out, nil
}

// RevokeView implements host.Views.
func (vs *views) RevokeView(_ context.Context, owner string, run store.RunID, viewID string) error {
	if !vs.views.Revoke(owner, string(run), viewID) {
		return notFound("view")
	}
	return nil
}

// ConnectView implements host.Views.
func (vs *views) ConnectView(ctx context.Context, owner string, run store.RunID, c host.ViewConn) {
	if away, err := vs.hosts.holder(ctx, run); err == nil && away != nil {
		c.Close(liveview.CloseElsewhere, liveview.ReasonElsewhere)
		return
	}
	vs.views.Connect(ctx, owner, string(run), c)
}

// ReachFailed implements host.Views.
func (vs *views) ReachFailed(_ context.Context, owner string, run store.RunID, viewID, reason string,
	httpStatus int) error {
	if !vs.views.Failed(owner, string(run), viewID, reason, httpStatus) {
		return notFound("view")
	}
	return nil
}
