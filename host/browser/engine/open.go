package engine

import (
	"regexp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// profileName is the rule of B180, on the whole string.
var profileName = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

// ProfileName reports whether name may be the name of a profile (B180).
func ProfileName(name string) bool { return profileName.MatchString(name) }

func (p *parser) open() {
	a := OpenArgs{
		Profile: p.text("profile", maxText), Persistent: p.flag("persistent", true), URL: p.text("url", maxURL),
		Viewport: p.viewport(), Trace: p.flag("trace", false), Establish: p.flag("establish", false), Session: p.session(),
	}
	if p.has("profile") && !ProfileName(a.Profile) {
		p.bad.set("profile_name_invalid", "profile name required, must be [A-Za-z0-9_-]+")
	}
	p.r.Open = a
}

// viewport is 1280×720 unless something else is asked for; sides are clamped to
// 240..3840 pixels.
func (p *parser) viewport() page.Viewport {
	v := page.Viewport{Width: 1280, Height: 720, Scale: 1}
	if o, ok := p.object.object("viewport"); ok {
		v.Width, v.Height = o.clamped("width", v.Width, 240, 3840), o.clamped("height", v.Height, 240, 3840)
	}
	return v
}

// session reads the session flow (B186). login_url and message may stand without a
// probe, and then do nothing.
func (p *parser) session() *Session {
	o, ok := p.object.object("session")
	if !ok {
		return nil
	}
	s := &Session{LoginURL: o.text("login_url", maxURL), Message: o.text("message", maxPath)}
	s.Owner = o.millis("timeout_seconds", 600, 10, 3600) * 1000
	probe, ok := o.object("probe")
	if !ok {
		return s
	}
	s.ProbeURL, s.Timeout = probe.text("url", maxURL), probe.millis("timeout_ms", 15_000, 1000, 60_000)
	if !probe.has("expect") {
		probe.wrong("object", "expect")
		return s
	}
	p.leaves = 0
	s.Expect = p.delta(probe, "expect", probe.members["expect"], 1)
	return s
}
