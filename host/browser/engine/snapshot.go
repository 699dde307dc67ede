package engine

import (
	"cmp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxConsole lines are looked at for a hint (B62); snapshots ask for their own number.
const maxConsole = 200

// snapshot shows the page. A part that cannot be captured says so, and the others
// are there all the same (B110).
func (v *verb) snapshot() (any, *Refusal) {
	args := &v.req.Snapshot
	q := WantSnapshot(v.opt.Identity, args)
	o, err := v.reads(q)
	if err != nil {
		return nil, v.unread(err)
	}
	reply, miss := NewLook(o, q).Snapshot(v.opt.Identity, args)
	if miss != nil {
		v.tracer.add(stageResolve, stepFailure, meta{"code": miss.Code})
		v.record(nil)
		return nil, &Refusal{Code: "invalid_request", Message: "within: no such element", Verb: v.req.Verb}
	}
	for _, part := range args.Include {
		switch part {
		case "screenshot":
			v.picture(reply)
		case "console":
			reply.Console = append(reply.Console, v.tab.Console(args.LogLines)...)
		case "diagnostics":
			v.diagnostics(reply)
		}
	}
	if !reply.Shrink(0) {
		return nil, v.unread(page.ErrTooLarge)
	}
	v.tracer.add(stageVerify, stepSuccess, meta{"revision": reply.Revision, "elements": len(reply.Elements)})
	v.succeeded = true
	v.record(nil)
	return reply, nil
}

func (v *verb) picture(reply *SnapshotReply) {
	got, refused := v.shoot(page.Shot{Format: "jpeg", Quality: 70})
	if refused != nil {
		reply.ScreenshotError = refused.Code
		return
	}
	reply.Screenshot = got
}

// diagnostics are of the action that is named, behind the gate of B62.
func (v *verb) diagnostics(reply *SnapshotReply) {
	p := v.past(v.req.Snapshot.ActionID)
	switch {
	case p == nil || v.req.Snapshot.ActionID == "":
		reply.DiagnosticsError = "unknown_action"
	case p.act.res.ActionType == LocalState:
		reply.Diagnostics = withheld("local_state")
	case !p.act.res.Verification.Ambiguous:
		reply.Diagnostics = withheld("not_ambiguous")
	default:
		reply.Diagnostics = v.inspect(v.tab, p.mark, p.act.res.ActionType)
	}
}

// screenshot takes a picture of the page, or of an element.
func (v *verb) screenshot() (any, *Refusal) {
	s := page.Shot{Format: v.req.Screenshot.Format, Quality: v.req.Screenshot.Quality, Full: v.req.Screenshot.Full}
	if v.req.Target != nil {
		q := v.want([]*Target{v.req.Target}, nil)
		o, err := v.reads(q)
		if err != nil {
			return nil, v.unread(err)
		}
		l := NewLook(o, q)
		found, miss := l.Resolve(v.opt.Identity, v.req.Target, ResolveOptions{})
		if miss != nil {
			v.tracer.add(stageResolve, stepFailure, meta{"code": miss.Code})
			v.record(nil)
			return nil, &Refusal{Code: "invalid_request", Message: "target: no such element", Verb: v.req.Verb}
		}
		s.Clip = &found.Node.Bounds
	}
	got, refused := v.shoot(s)
	if refused != nil {
		return nil, refused
	}
	v.tracer.add(stageVerify, stepSuccess, nil)
	v.succeeded = true
	v.record(nil)
	return got, nil
}

// shoot takes a picture without what is sealed (B33).
func (v *verb) shoot(s page.Shot) (any, *Refusal) {
	if v.opt.Keep == nil {
		return nil, &Refusal{Code: "capability_denied", Message: "pictures are not granted", Verb: v.req.Verb}
	}
	if err := v.gate(); err != nil {
		return nil, v.unread(err)
	}
	s.Cover = v.covered()
	s.Quality = cmp.Or(max(s.Quality, 0), 70)
	p, err := v.tab.Screenshot(v.ctx, s)
	if err != nil {
		return nil, v.unread(err)
	}
	return v.opt.Keep(p)
}
