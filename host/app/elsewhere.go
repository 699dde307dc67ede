package app

import (
	"context"
	"fmt"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// elsewhere returns the refusal that leads to a page of the host that has something.
func elsewhere(at host.Member, path, what string) *host.Refusal {
	where := at.HostID
	if at.Name != "" {
		where += " (" + at.Name + ")"
	}
	if at.URL == "" {
		return host.Refuse("conflict", "%s is at host %s; look at it there", what, where).With("hostId", at.HostID)
	}
	page := at.URL + path
	return host.Refuse("conflict", "%s is at host %s; look at it there: %s", what, where, page).
		With("hostId", at.HostID).With("url", page)
}

func pageOf(id store.RunID) string { return "/ui/runs/" + string(id) }

// awayFrom returns the refusal that leads to another host that performs a run, or did last, nil if none is known
// that may have what of it is missing here.
func (hs *hosts) awayFrom(ctx context.Context, id store.RunID, what string) error {
	at, gone, err := hs.performer(ctx, id)
	if err != nil || at == nil {
		return err
	}
	if gone {
		return host.Refuse("conflict", "%s is at host %s (%s), which is not there; start it again, and look there",
			what, at.HostID, at.Name).With("hostId", at.HostID)
	}
	return elsewhere(*at, pageOf(id), what)
}

// performer returns the other host that performs a run, or did last; nil if that was this one, or one that is not
// known any more. gone says that it is not there.
func (hs *hosts) performer(ctx context.Context, id store.RunID) (at *host.Member, gone bool, err error) {
	if hs == nil || hs.members == nil {
		return nil, false, nil
	}
	away, err := hs.holder(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if away != nil {
		m := memberOf(*away)
		return &m, false, nil
	}
	r, err := hs.Store.Run(ctx, id)
	if err != nil || r.HostID == hs.ID {
		return nil, false, err
	}
	all, err := hs.list(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("list hosts: %w", err)
	}
	lost, err := hs.members.Lost(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("list hosts: %w", err)
	}
	for i, m := range append(all[:len(all):len(all)], lost...) {
		if m.ID == r.HostID {
			one := memberOf(m)
			return &one, i >= len(all), nil
		}
	}
	return nil, false, nil
}
