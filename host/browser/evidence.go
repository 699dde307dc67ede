package browser

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"

	"github.com/sluicehost/sluice/host/browser/page"
)

// checkpointed keeps what the page looked like at a checkpoint, with its phase
// (B192); the page of a session that is just open among them, before anything is done
// to it.
func (s *Session) checkpointed(o *opened, phase string) {
	label := "checkpoint-" + strconv.FormatInt(time.Now().UnixMicro(), 10)
	s.traceNote("checkpoint", map[string]any{"phase": phase, "picture": label})
	s.capture(o, label)
}

// capture keeps a picture of the page and what is on it after an action or a
// checkpoint, beside the run: the reply does not wait for it (B160). What was typed
// is in neither (B40): fields are covered, and elements have no values. Nothing is
// taken while the owner has control, or of a page that does not answer.
func (s *Session) capture(o *opened, label string) {
	t := s.trace.Load()
	if t == nil || s.owner.Load() || !t.busy.CompareAndSwap(false, true) {
		return
	}
	s.work.Go(func() {
		defer t.busy.Store(false)
		ctx, stop := context.WithTimeout(s.life, captureTime)
		defer stop()
		tabs := o.Browser().Tabs()
		if len(tabs) == 0 || o.Fault() != nil || tabs[0].Facts().Dialog != nil {
			return
		}
		if err := t.take(ctx, tabs[0], label); err != nil {
			s.note("evidence of a trace was not taken", err)
		}
	})
}

// take adds the evidence of one moment of a tab. The picture is taken last, with
// every field covered that the look at the page has shown.
func (t *recorder) take(ctx context.Context, tab page.Tab, label string) error {
	id, args := engine.NewIdentity(), &engine.SnapshotArgs{Limit: mostElements}
	q := engine.WantSnapshot(id, args)
	seen, err := tab.Read(ctx, q)
	if err != nil {
		return err
	}
	cover, typed := fields(seen)
	engine.Mask(seen, t.s.seals.hideText)
	snapshot, miss := engine.NewLook(seen, q).Snapshot(id, args)
	picture, err := tab.Screenshot(ctx, page.Shot{Format: "jpeg", Quality: pictureGrade, Cover: append(cover, t.s.seals.filled()...)})
	if err != nil || t.s.owner.Load() {
		return err
	}
	t.archive.Picture(label, picture.Data)
	if miss == nil {
		t.archive.Snapshot(label, without(snapshot.Elements, typed))
	}
	return nil
}

// fields are the fields of a page that take text, and what is in them.
func fields(seen *page.Observation) (refs []page.Ref, typed []string) {
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if !n.Editable {
			continue
		}
		refs = append(refs, n.Ref)
		for _, v := range []*string{n.State.TextValue, n.State.RawValue} {
			if v != nil && len(*v) >= wholeFrom {
				typed = append(typed, strings.Join(strings.Fields(*v), " "))
			}
		}
	}
	return refs, typed
}

// without leaves out labels that say what a field holds, as those of a field's
// surroundings do.
func without(elements []engine.Element, typed []string) []engine.Element {
	for i := range elements {
		e := &elements[i]
		if slices.ContainsFunc(typed, func(v string) bool { return v != "" && strings.Contains(e.Label, v) }) {
			e.Label = ""
		}
	}
	return elements
}
