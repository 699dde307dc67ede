package browser

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/egress"
)

// mark records a checkpoint that the guest sets itself. With done the session counts as
// established.
func (s *Session) mark(r *engine.Request) (any, *engine.Refusal) {
	s.establishment.checkpoint(r.Mark.Phase)
	if o := s.current(); o != nil {
		s.tracing.checkpointed(o, r.Mark.Phase)
	}
	if r.Mark.Done {
		s.establishment.unguard()
		s.establishment.settled(true)
		if o := s.current(); o != nil {
			o.Establish(false)
		}
	}
	return map[string]any{"phase": r.Mark.Phase, "at": time.Now().UnixMilli()}, nil
}

// closeVerb closes a tab, or the surface with the last tab.
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
	// activate another tab first, or closing this one would be a loss
	if all := o.Browser().Tabs(); all[0].ID() == t.ID() {
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
	s.establishment.unguard()
	_, reverted := o.engine.Do(ctx, &engine.Request{Verb: engine.Close})
	o.engine.Close()
	o.Release(context.WithoutCancel(ctx))
	if reverted != nil && reverted.Code == engine.CodeReverted {
		return nil, reverted
	}
	return map[string]any{"closed": "surface", "graceful": o.State() != fleet.Lost}, nil
}

type cookiesReply struct {
	Granted   []granted    `json:"granted"`
	Refused   []notGranted `json:"refused"`
	ExpiresAt *int64       `json:"expires_at"` // expiry of the cookie that expires first
}

type granted struct {
	Host  string `json:"host"`
	Count int    `json:"count"`
}

type notGranted struct {
	Host   string `json:"host"`
	Reason string `json:"reason"` // not_declared, not_in_policy or no_cookies
}

// cookies decides for each host which cookies to put into the run's network jar. The reply contains
// no cookie values.
func (s *Session) cookies(ctx context.Context, o *opened, r *engine.Request) (any, *engine.Refusal) {
	out := cookiesReply{Granted: []granted{}, Refused: []notGranted{}}
	for _, host := range r.Cookies.Hosts {
		reason := s.mayHand(host)
		n := 0
		if reason == "" {
			found, err := o.Browser().Cookies(ctx, []string{host})
			if err != nil {
				return nil, s.pageFault(r.Verb, o, err)
			}
			usable := handed(found, host, r.Cookies.Names, time.Now())
			if s.o.Cookies != nil && len(usable) > 0 {
				n = s.o.Cookies(host, usable)
				out.ends(usable)
			}
			if n == 0 {
				reason = "no_cookies"
			}
		}
		data := map[string]any{"host": abi.Clean(host), "count": n, "granted": reason == ""}
		if reason != "" {
			data["reason"] = reason
			out.Refused = append(out.Refused, notGranted{host, reason})
		} else {
			out.Granted = append(out.Granted, granted{host, n})
		}
		s.back.Event("run.browser_cookie_handoff", "decided", data)
	}
	return out, nil
}

// mayHand returns why a host gets no cookies, or "" if it may.
func (s *Session) mayHand(host string) string {
	canonical, err := egress.CanonicalHost(host)
	if err != nil || !slices.Contains(s.o.Request.CookieHandoff, canonical) {
		return "not_declared"
	}
	if s.o.Policy == nil {
		return "not_in_policy"
	}
	for _, scheme := range []string{"https", "http"} {
		// Any port: cookies belong to a host, and the jar sends them only where requests may go.
		if _, step := s.o.Policy.Match(scheme, canonical, portOf(scheme)); step == "" || step == "port" {
			return ""
		}
	}
	return "not_in_policy"
}

func portOf(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// handed returns the requested cookies that a browser would send to a host. A domain without a
// leading dot is the host only.
func handed(found []*http.Cookie, host string, names []string, now time.Time) (out []*http.Cookie) {
	host = strings.ToLower(host)
	for _, c := range found {
		domain := strings.ToLower(c.Domain)
		under, wide := strings.CutPrefix(domain, ".")
		switch {
		case len(names) > 0 && !slices.Contains(names, c.Name):
		case !c.Expires.IsZero() && !c.Expires.After(now):
		case !wide && domain != "" && domain != host:
		case wide && host != under && !strings.HasSuffix(host, "."+under):
		default:
			one := *c // #nosec G124 -- a cookie that a site set, as it set it
			if !wide {
				one.Domain = ""
			}
			out = append(out, &one)
		}
	}
	return out
}

// ends updates ExpiresAt.
func (r *cookiesReply) ends(of []*http.Cookie) {
	for _, c := range of {
		if c.Expires.IsZero() {
			continue
		}
		if at := c.Expires.UnixMilli(); r.ExpiresAt == nil || at < *r.ExpiresAt {
			r.ExpiresAt = &at
		}
	}
}

// pageFault returns the refusal for a failure of the browser.
func (s *Session) pageFault(verb engine.Verb, o *opened, err error) *engine.Refusal {
	if o.Fault() != nil {
		return lostRefusal(verb, o)
	}
	return s.asRefusal(verb, err)
}
