// The checks that stand before a dispatch, and the count of what arrives.

// hitAt is the innermost element at a point of a document, through open shadow roots
// and the frames that can be seen from here.
const hitAt = (doc, x, y, depth = 0) => {
  let e = fromPoint(doc, x, y);
  for (let i = 0; e && i < 50; i++) {
    const shadow = shadowRoot(e);
    const deeper = shadow ? fromPointShadow(shadow, x, y) : null;
    if (!deeper || deeper === e) break;
    e = deeper;
  }
  const d = e && depth < 20 ? inner(e) : null;
  if (!d) return e;
  framers.set(d, e);
  const o = offsets(d), here = offsets(doc);
  const px = (here.x + here.s * x - o.x) / o.s, py = (here.y + here.s * y - o.y) / o.s;
  return hitAt(d, px, py, depth + 1) || e;
};
const holds = (e, hit) => {
  for (let n = hit, i = 0; n && i < 1000; n = up(n), i++) if (n === e) return true;
  return false;
};

const sameBox = (a, b) => a.x === b.x && a.y === b.y && a.w === b.w && a.h === b.h;
// nextFrame comes with the next animation frame, or after 100 ms where there are none.
const nextFrame = () => new Promise((done) => {
  later(done, 100);
  frameOfAnimation(() => done());
});

// pointIn is where to act: at fractions of the box if that is in sight, or in the
// middle of what is.
const pointIn = (e, look, box, fx, fy) => {
  const clip = look.around(e);
  const inside = (p) => p.x >= clip.x && p.y >= clip.y && p.x < clip.x + clip.w && p.y < clip.y + clip.h;
  const p = { x: box.x + fx * box.w, y: box.y + fy * box.h };
  if (inside(p)) return p;
  const seen = meet(box, clip);
  if (area(seen) <= 0 || fx !== 0.5 || fy !== 0.5 || seen.w < Math.min(4, box.w) || seen.h < Math.min(4, box.h)) return null;
  return { x: seen.x + seen.w / 2, y: seen.y + seen.h / 2 };
};

const ready = async (number, fx, fy) => {
  const e = nodeOf(number);
  if (!e) return { fault: "detached" };
  let moves = false; // what follows is looked at all the same
  const fault = (fault) => ({ fault: moves ? "unstable" : fault, else: moves ? fault : "", node: describe(e, newLook(), [], spokenText(e)) });
  let look = newLook(), box = look.box(e);
  if (!shown(e) && styleOf(e).display !== "contents") return fault("not_visible");
  if (area(box) <= 0) return fault("zero_size");
  if (disabled(e)) return fault("disabled");
  const before = seenBox.get(e);
  if (!before || now() - before.at < 17 || !sameBox(before, box)) {
    await nextFrame();
    if (!nodeOf(number)) return { fault: "detached" };
    look = newLook();
    const then = look.box(e);
    seenBox.set(e, { at: now(), ...then });
    moves = !sameBox(box, then);
    box = then;
  }
  let point = pointIn(e, look, box, fx, fy);
  if (!point) return fault("outside_viewport");
  let hit = hitAt(document, point.x, point.y);
  if (!hit || !holds(e, hit)) {
    // An element that goes over several lines has no middle of its own.
    const o = look.place(e), rects = getClientRects(e);
    for (let i = 0; rects.length > 1 && i < rects.length && i < 5; i++) {
      const p = pointIn(e, look, look.boxOf(rects[i], o), fx, fy);
      const other = p && hitAt(document, p.x, p.y);
      if (other && holds(e, other)) { point = p; hit = other; break; }
    }
  }
  const node = describe(e, look, [], spokenText(e));
  if (!hit || !holds(e, hit)) {
    const tag = hit ? localName(hit) : "";
    return { fault: moves ? "unstable" : "obscured", else: moves ? "obscured" : "", by: hit ? roleOf(hit, tag) || tag : "", point, node };
  }
  watch(e, node);
  return { fault: moves ? "unstable" : "", point, node, owner: String(numberOf(hit)) };
};
const spokenText = (e) => () => (editable(e, localName(e)) ? "" : spoken(e, null, false));

// through tells whether a point inside of a frame that cannot be seen from here is
// reached through the element that frames it.
const through = (number, x, y) => {
  const e = nodeOf(number);
  if (!e) return { fault: "detached" };
  const look = newLook(), f = frameFacts(e, 0, 0, look);
  const point = { x: f.x + f.s * x, y: f.y + f.s * y };
  const c = f.clip;
  if (point.x < c.x || point.y < c.y || point.x >= c.x + c.w || point.y >= c.y + c.h) return { fault: "outside_viewport", point, x: f.x, y: f.y, s: f.s };
  const hit = hitAt(document, point.x, point.y);
  if (hit !== e) {
    const tag = hit ? localName(hit) : "";
    return { fault: "obscured", by: hit ? roleOf(hit, tag) || tag : "", point, x: f.x, y: f.y, s: f.s };
  }
  return { fault: "", point, x: f.x, y: f.y, s: f.s };
};

// Trusted events that arrived at the element that is watched. The listeners are the
// first of each window, in the capturing phase, so that no page keeps them from us.
const kindsOfInput = "pointerdown pointerup mousedown mouseup click dblclick auxclick contextmenu pointermove mousemove keydown keyup keypress beforeinput input touchstart touchend wheel drop".split(" ");
let watched = null, like = {}, arrived = 0, aimedTill = 0, turned = false;
const trusted = getter2(Event.prototype, "isTrusted");
const path = method(Event.prototype, "composedPath");
const stop = method(Event.prototype, "stopImmediatePropagation"), prevent = method(Event.prototype, "preventDefault"), type = getter(Event.prototype, "type");
const kindsOfClick = "pointerdown mousedown pointerup mouseup click auxclick dblclick contextmenu".split(" ");
function getter2(proto, name) {
  const g = Object.getOwnPropertyDescriptor(proto, name)?.get;
  return g ? (o) => g.call(o) : (o) => o[name]; // isTrusted is an own member that no page can change
}
// successor is what a page that draws anew put in the place of the element that is
// watched: what was hit, or is around that, and is the same by name and nature.
const successor = (first) => {
  for (let n = first, i = 0; n && i < 20; n = up(n), i++) {
    if (nodeType(n) !== 1 || localName(n) !== like.tag) continue;
    const d = describe(n, newLook(), [], spokenText(n));
    if (["role", "name", "submits", "leaves"].every((k) => d[k] === like[k])) return n;
  }
  return null;
};
const meets = (ev) => {
  const first = path(ev)[0];
  if (!first || first.nodeType === undefined) return false;
  let e = watched.deref();
  if (!e || !isConnected(e)) {
    e = successor(first);
    if (e) watched = new WeakRef(e);
  }
  return Boolean(e) && holds(e, first);
};
const count = (ev) => {
  if (watched && trusted(ev) && meets(ev)) arrived++;
};
// A click that is aimed is turned away, whole, when its first press would hit another
// element: one that moved or was covered since it was looked at. What a page
// makes of a press that did arrive is its own affair.
const aimed = (till) => { aimedTill = now() + till; turned = false; };
const guard = (ev) => {
  if (!aimedTill || now() > aimedTill || !trusted(ev)) return;
  if (!turned && type(ev) === "pointerdown") {
    if (meets(ev)) aimedTill = 0;
    else turned = true;
  }
  if (turned) { stop(ev); prevent(ev); }
};
const hearing = new WeakSet();
const hear = (view) => {
  if (!view || hearing.has(view)) return;
  hearing.add(view);
  for (const k of kindsOfClick) listen(view, k, guard, { capture: true });
  for (const k of kindsOfInput) listen(view, k, count, { capture: true, passive: true });
};
// watch counts for an element; one that was described may be drawn anew.
const watch = (e, node = {}) => {
  hear(defaultView(ownerDocument(e)));
  watched = new WeakRef(e);
  like = node;
  arrived = 0;
};
const counted = () => {
  const n = { arrived: watched ? arrived : -1, turned };
  aimedTill = 0;
  turned = false;
  return n;
};
hear(window);
