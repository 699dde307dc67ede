package engine

import (
	"math"

	"github.com/sluicehost/sluice/host/browser/page"
)

// The interaction modes of adjust, in order.
const (
	modeSemantic   = "semantic"
	modeGesture    = "gesture"
	modeCoordinate = "coordinate"
)

const (
	maxAdjustPresses = 200 // key presses in one attempt
	thumb            = 16  // pixels, where the thumb of a slider cannot be measured
)

// An adjusting is the state of an adjust action.
type adjusting struct {
	modes     []string // modes that may be tried, in order
	at        int
	attempts  int
	tolerance float64
	widened   bool
	native    bool
	pre       float64
	now       float64 // the value as last read
	limits    *page.Range
	node      page.Node
	why       string // why coordinates are used
}

// adjustFits checks that the control has a numeric value and that the wanted value is in its range.
func adjustFits(a *act, n *page.Node) *fault {
	number := n.Tag == "input" && n.Type == "number"
	fixed := n.Tag == "progress" || n.Tag == "meter" || n.Role == "progressbar" || n.Role == "meter"
	if fixed || n.State.Value == nil && !number || n.State.Range == nil && !number {
		return &fault{code: SemanticMismatch, stage: StageResolve}
	}
	if r := n.State.Range; r != nil && (a.req.Adjust.Value < r.Min || a.req.Adjust.Value > r.Max) {
		return a.reject("out_of_range")
	}
	w, again := a.work.(*adjusting)
	if !again {
		w = &adjusting{modes: a.req.Adjust.Modes, tolerance: a.req.Adjust.Tolerance,
			native: n.Tag == "input", pre: math.NaN()}
		if len(w.modes) == 0 {
			w.modes = []string{modeSemantic, modeGesture, modeCoordinate}
		}
		if n.State.Value != nil {
			w.pre = *n.State.Value
		}
		w.now = w.pre
		w.at = -1
		if !w.next() {
			return &fault{code: SemanticMismatch, detail: "no_mode", stage: StageResolve}
		}
		a.work = w
	}
	w.limits, w.node = n.State.Range, *n
	return nil
}

// next moves to the next allowed mode. It reports false if there is none.
func (w *adjusting) next() bool {
	for i := w.at + 1; i < len(w.modes); i++ {
		if w.allowed(w.modes[i]) {
			w.at = i
			return true
		}
	}
	return false
}

// allowed reports whether a mode may be tried. Coordinates are allowed only after a better mode was
// tried and left the value unchanged.
func (w *adjusting) allowed(mode string) bool {
	switch mode {
	case modeSemantic:
		return w.native
	case modeCoordinate:
		return w.attempts > 0 && same64(w.now, w.pre)
	}
	return true
}

// adjustMode returns the mode of the current attempt, "" if the action is no adjust.
func adjustMode(a *act) string {
	if w, ok := a.work.(*adjusting); ok && w.at >= 0 {
		if w.widened {
			return w.modes[w.at] + "+widened"
		}
		return w.modes[w.at]
	}
	return ""
}

// hasMoreModes reports whether another attempt has something new to try.
func hasMoreModes(a *act) bool {
	w, ok := a.work.(*adjusting)
	if !ok || w.attempts >= max(a.req.Adjust.MaxAttempts, 1) {
		return false
	}
	a.measure(w)
	probe := *w
	return a.mayDispatch() && probe.next() || a.req.Adjust.WidenTo != nil && !w.widened
}

// measure stores the value that was read last.
func (a *act) measure(w *adjusting) {
	if n := a.current(); n != nil && n.State.Value != nil {
		w.now = *n.State.Value
	}
}

// nextMode moves to the next mode, or to the wider tolerance that the guest allowed.
func nextMode(a *act) bool {
	w, ok := a.work.(*adjusting)
	if !ok {
		return false
	}
	a.measure(w)
	if a.mayDispatch() && w.next() {
		return true
	}
	if a.req.Adjust.WidenTo == nil || w.widened {
		return false
	}
	w.widened, w.tolerance = true, *a.req.Adjust.WidenTo
	a.declare(adjusted(a.req.Adjust.Value, w.tolerance), OriginDefault)
	return true
}

// adjustAgain makes another attempt on the control that was resolved.
func adjustAgain(a *act) *fault {
	w, _ := a.work.(*adjusting)
	if !a.move(Resolved) {
		return a.broken()
	}
	if w.widened {
		a.move(Pending)
		return a.proof.verify()
	}
	t := try{act: a}
	f, err := t.reach()
	if err != nil {
		return rawFault(err, StageResolve)
	}
	if f != nil {
		return a.pass()
	}
	if f := a.dispatch(); f != nil || a.refused != nil {
		return f
	}
	return a.proof.verify()
}

// adjusted returns the delta for a value within a tolerance.
func adjusted(want, tolerance float64) *Predicate {
	return &Predicate{Kind: "value", Number: &want, Tolerance: tolerance}
}

func adjustSend(a *act) (page.Delivery, error) {
	w, _ := a.work.(*adjusting)
	w.attempts++
	switch w.modes[w.at] {
	case modeSemantic:
		d, err := a.tab.Set(a.ctx, a.node(), page.Setting{Number: &a.req.Adjust.Value})
		d.Trusted = -1
		return d, err
	case modeGesture:
		return adjustByGesture(a, w)
	}
	w.why = "no native setter and no keys"
	if w.native {
		w.why = "setter and keys left the value as it was"
	}
	a.count("coordinate_fallback_total")
	return adjustByPoint(a, w)
}

// adjustByGesture presses keys until the value is reached, and drags where keys have no effect.
func adjustByGesture(a *act, w *adjusting) (page.Delivery, error) {
	g := keys{act: a, w: w, all: page.Delivery{Trusted: -1}}
	worked, err := g.turn()
	if err != nil || worked {
		return g.all, err
	}
	return g.all, g.slide()
}

// adjustByPoint clicks where the value lies on the track and corrects the rest with keys.
func adjustByPoint(a *act, w *adjusting) (page.Delivery, error) {
	at := w.point(a.req.Adjust.Value)
	d, err := a.tab.Click(a.ctx, page.Click{At: at, Button: "left", Count: 1})
	if err != nil {
		return d, err
	}
	g := keys{act: a, w: w, all: page.Delivery{Sent: true, Trusted: -1}}
	if v, err := g.read(); err != nil || math.Abs(v-a.req.Adjust.Value) <= w.tolerance {
		return g.all, err
	}
	_, err = g.turn()
	return g.all, err
}

// keys operates a control with its keys.
type keys struct {
	*act
	w    *adjusting
	all  page.Delivery
	used int
}

// pairs are keys that lower and raise a value. Up and down come first, since the writing direction
// does not swap them.
var pairs = [][2]string{{"ArrowDown", "ArrowUp"}, {"ArrowLeft", "ArrowRight"}}

// turn presses keys towards the value. It reports false if no key changed anything.
func (k *keys) turn() (worked bool, err error) {
	for _, pair := range pairs {
		worked, err = k.with(pair)
		if worked || err != nil {
			return worked, err
		}
	}
	return false, nil
}

func (k *keys) with(pair [2]string) (worked bool, err error) {
	target, now := k.req.Adjust.Value, k.w.now
	step := 0.0
	for k.used < maxAdjustPresses && math.Abs(now-target) > k.w.tolerance {
		n := 1
		if step > 0 {
			n = int(math.Round(math.Abs(target-now) / step))
		}
		if n == 0 {
			return worked, nil // the nearest step is reached
		}
		next, err := k.press(pair, target > now, now, min(n, maxAdjustPresses-k.used))
		if err != nil {
			return worked, err
		}
		if same64(next, now) {
			return worked, nil
		}
		if step == 0 {
			step = math.Abs(next - now)
		} else if math.Abs(next-target) >= math.Abs(now-target) {
			return true, nil // no closer
		}
		now, worked = next, true
	}
	return worked, nil
}

// press presses one key of a pair n times, the raising one for up, and returns the value that it
// led to.
func (k *keys) press(pair [2]string, up bool, now float64, n int) (float64, error) {
	key := pair[0]
	if up {
		key = pair[1]
	}
	d, err := k.tab.Press(k.ctx, k.node(), key, n)
	k.used += n
	k.all.Sent = k.all.Sent || d.Sent
	if err != nil {
		return now, err
	}
	return k.read()
}

// read returns the current value. If it cannot be read, the previous one is kept.
func (k *keys) read() (float64, error) {
	l, err := k.look(nil, nil, k.node())
	if err != nil || l == nil {
		return k.w.now, err
	}
	k.after = l
	if n := l.Node(k.node()); n != nil && n.State.Value != nil {
		k.w.now, k.w.node = *n.State.Value, *n
	}
	return k.w.now, nil
}

// point returns the position of a value on the track.
func (w *adjusting) point(value float64) page.Point {
	b, part := w.node.Bounds, 0.5
	if r := w.limits; r != nil && r.Max > r.Min {
		part = (value - r.Min) / (r.Max - r.Min)
	}
	if b.H > b.W {
		along := b.H - thumb/2 - (b.H-thumb)*part
		return page.Point{X: b.X + b.W/2, Y: b.Y + min(max(along, 1), b.H-1)}
	}
	along := thumb/2 + (b.W-thumb)*part
	return page.Point{X: b.X + min(max(along, 1), b.W-1), Y: b.Y + b.H/2}
}

// grip returns the point where a drag begins: the middle of a thumb, or the current value's place
// on a track.
func (w *adjusting) grip() page.Point {
	if w.isThumb() || math.IsNaN(w.now) {
		return w.node.Bounds.Center()
	}
	return w.point(w.now)
}

// isThumb reports whether the element is only the thumb; its track is then another element.
func (w *adjusting) isThumb() bool { return max(w.node.Bounds.W, w.node.Bounds.H) <= maxThumb }

const (
	maxThumb = 48 // pixels
	probe    = 24 // pixels, of the first drag of a thumb, which shows how much a pixel changes
	maxDrags = 8
	maxSlide = 10_000 // pixels, of one drag
)

// slide drags the control to the value. Each drag shows how far the next one has to go.
func (k *keys) slide() error {
	w, target := k.w, k.req.Adjust.Value
	upright, perUnit := w.node.Bounds.H > w.node.Bounds.W, 0.0
	if !w.isThumb() && w.limits != nil && w.limits.Max > w.limits.Min {
		perUnit = (max(w.node.Bounds.W, w.node.Bounds.H) - thumb) / (w.limits.Max - w.limits.Min)
	}
	for n := 0; n < maxDrags && !(math.Abs(w.now-target) <= w.tolerance); n++ {
		by := (target - w.now) * perUnit
		if perUnit == 0 || math.IsNaN(by) {
			by = math.Copysign(probe, target-w.now)
		}
		by = min(max(by, -maxSlide), maxSlide) // the page decides how much a pixel changes
		was := w.now
		if err := k.drag(by, upright); err != nil {
			return err
		}
		switch moved := w.now - was; {
		case moved != 0 && !math.IsNaN(moved):
			perUnit = by / moved
		case perUnit == 0 && !upright:
			upright = true // it is vertical
		default:
			return nil
		}
	}
	return nil
}

// drag drags the control by a number of pixels, to the right or upwards, and reads the resulting
// value.
func (k *keys) drag(by float64, upright bool) error {
	from := k.w.grip()
	at := func(part float64) page.Point {
		if upright {
			return page.Point{X: from.X, Y: from.Y - by*part}
		}
		return page.Point{X: from.X + by*part, Y: from.Y}
	}
	d, err := k.tab.Drag(k.ctx, []page.Point{from, at(0.5), at(1)})
	k.all.Sent = k.all.Sent || d.Sent
	if err != nil {
		return err
	}
	_, err = k.read()
	return err
}

func same64(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func adjustTell(a *act) {
	w, ok := a.work.(*adjusting)
	if !ok || w.at < 0 {
		return
	}
	actual := map[string]any{"property": "value", "value": nil}
	within := false
	if n := a.current(); n != nil && n.State.Value != nil {
		actual["value"] = *n.State.Value
		if n.State.RawValue != nil {
			actual["raw_value"] = *n.State.RawValue
		}
		within = math.Abs(*n.State.Value-a.req.Adjust.Value) <= w.tolerance
	}
	a.details["pre_state"] = map[string]any{"value": finiteNumber(w.pre)}
	a.details["target_state"] = map[string]any{"property": "value", "target_value": a.req.Adjust.Value,
		"tolerance": w.tolerance}
	a.details["actual_state"], a.details["within_tolerance"] = actual, within
	a.details["converged"], a.details["attempts"] = a.res.Success, w.attempts
	a.details["adjustment_mode"], a.details["degraded"] = w.modes[w.at], w.modes[w.at] == modeCoordinate && w.attempts > 0
	if w.why != "" {
		a.details["degraded_reason"] = w.why
	}
	if w.limits != nil {
		a.details["value_range"] = map[string]any{"min": w.limits.Min, "max": w.limits.Max}
		a.details["step"] = w.limits.Step
	}
}

func finiteNumber(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}
