// What a person can see. An element can be laid out and still be nowhere to be seen:
// transparent, cut off by what is around it, cut away by its own shape, or put where no
// scrolling leads. Such elements can be worked, as boxes that a page draws over are, but
// they prove nothing.

// A room is the part of a document's viewport in which something may be seen, by its
// edges; what can be scrolled to is without end.
const nowhere = { l: 0, t: 0, r: 0, b: 0 };
const within = (a, b) => ({ l: Math.max(a.l, b.l), t: Math.max(a.t, b.t), r: Math.min(a.r, b.r), b: Math.min(a.b, b.b) });
const edges = (r) => ({ l: r.left, t: r.top, r: r.right, b: r.bottom });
const sizes = (text, size) => {
  const v = parseFloat(text);
  return text.endsWith("%") ? (v / 100) * size : v;
};

// shape is what clip-path and clip leave of a box; null is all of it.
const shape = (e, style) => {
  const path = style.clipPath, r = edges(rect(e)), w = r.r - r.l, h = r.b - r.t;
  let m;
  if (style.clip !== "auto" && (style.position === "absolute" || style.position === "fixed") && (m = /^rect\((.*)\)$/.exec(style.clip))) {
    const [t, right, b, l] = m[1].split(/[ ,]+/);
    const at = (v, or) => (v === "auto" ? or : parseFloat(v));
    return { l: r.l + at(l, 0), t: r.t + at(t, 0), r: r.l + at(right, w), b: r.t + at(b, h) };
  }
  if (!path || path === "none") return null;
  if ((m = /^inset\(([^)]*)\)/.exec(path))) {
    const p = m[1].split(" round ")[0].trim().split(/\s+/);
    const t = sizes(p[0], h), right = sizes(p[1] ?? p[0], w), b = sizes(p[2] ?? p[0], h), l = sizes(p[3] ?? p[1] ?? p[0], w);
    return [t, right, b, l].every(Number.isFinite) ? { l: r.l + l, t: r.t + t, r: r.r - right, b: r.b - b } : null;
  }
  if (/^(?:circle|ellipse)\(0(?:px|%)?[ )]/.test(path) || /^ellipse\(\S+ 0(?:px|%)?[ )]/.test(path)) return nowhere;
  if ((m = /^polygon\((?:nonzero, |evenodd, )?([^)]*)\)/.exec(path))) {
    const points = m[1].split(",").map((p) => p.trim().split(/\s+/));
    const xs = points.map((p) => sizes(p[0], w)), ys = points.map((p) => sizes(p[1] ?? "", h));
    if (![...xs, ...ys].every(Number.isFinite)) return null;
    return { l: r.l + Math.min(...xs), t: r.t + Math.min(...ys), r: r.l + Math.max(...xs), b: r.t + Math.max(...ys) };
  }
  return null;
};

const newSight = () => {
  const rooms = new Map(), sights = new Map();
  // whole is what can be scrolled to in a document.
  const whole = (doc) => {
    const s = scrollingElement(doc) || documentElement(doc), view = defaultView(doc);
    if (!s || !view) return nowhere;
    const root = documentElement(doc), body = documentBody(doc);
    const rtl = styleOf(root).direction === "rtl";
    const width = Math.max(scrollWidth(s), view.innerWidth), height = Math.max(scrollHeight(s), view.innerHeight);
    const x = -scrollLeft(s), y = -scrollTop(s);
    const room = rtl ? { l: x + view.innerWidth - width, t: y, r: x + view.innerWidth, b: y + height } : { l: x, t: y, r: x + width, b: y + height };
    const cuts = (e) => e && ["hidden", "clip"].includes(styleOf(e).overflowX);
    return cuts(root) || cuts(body) ? within(room, { l: 0, t: room.t, r: view.innerWidth, b: room.b }) : room;
  };
  const holder = (style) => style.transform !== "none" || style.perspective !== "none" || style.filter !== "none" || style.willChange.includes("transform") || style.contain.includes("paint") || style.contain === "strict" || style.contain === "content";
  // around is the room that e is in: that of what its place depends on.
  const around = (e, style, depth) => {
    const fixed = style.position === "fixed", loose = style.position === "absolute";
    let n = up(e);
    for (let i = 0; n && i < 400 && (fixed || loose) && ownerDocument(n) === ownerDocument(e); i++, n = up(n)) {
      const s = styleOf(n);
      if (holder(s) || (loose && s.position !== "static")) break;
    }
    if (n && nodeType(n) === 1 && ownerDocument(n) === ownerDocument(e)) return room(n, depth + 1);
    const view = defaultView(ownerDocument(e));
    return fixed && view ? { l: 0, t: 0, r: view.innerWidth, b: view.innerHeight } : whole(ownerDocument(e));
  };
  // room is what e leaves of its room to what is in it.
  const room = (e, depth = 0) => {
    if (depth > 400) return whole(ownerDocument(e));
    const known = rooms.get(e);
    if (known) return known;
    const style = styleOf(e);
    let r = around(e, style, depth);
    const cut = shape(e, style);
    if (cut) r = within(r, cut);
    if (/opacity\(0(?:%|\.0*)?\)/.test(style.filter)) r = nowhere;
    const root = e === documentElement(ownerDocument(e)) || e === documentBody(ownerDocument(e));
    if (!root && style.display !== "contents" && style.display !== "inline" && (style.overflowX !== "visible" || style.overflowY !== "visible")) {
      const own = within(r, edges(rect(e)));
      const scrolls = (v) => v === "auto" || v === "scroll";
      if (own.r - own.l <= 0 || own.b - own.t <= 0) r = nowhere;
      else r = {
        l: scrolls(style.overflowX) ? -Infinity : own.l, r: scrolls(style.overflowX) ? Infinity : own.r,
        t: scrolls(style.overflowY) ? -Infinity : own.t, b: scrolls(style.overflowY) ? Infinity : own.b,
      };
    }
    rooms.set(e, r);
    return r;
  };
  // fits reports whether anything of a box is in a room that a person could see.
  const fits = (box, r) => {
    const s = within(box, r), w = box.r - box.l, h = box.b - box.t;
    return w > 0 && h > 0 && s.r - s.l >= Math.min(w, 2) && s.b - s.t >= Math.min(h, 2);
  };
  // framed reports whether the document of an element can be seen where it is framed.
  const framed = (e) => {
    const f = framers.get(ownerDocument(e));
    return !f || sees(f);
  };
  // sees reports whether an element can be seen: where it is, and in its shape.
  const sees = (e) => {
    const known = sights.get(e);
    if (known !== undefined) return known;
    const style = styleOf(e);
    let r = around(e, style, 0);
    const cut = shape(e, style);
    if (cut) r = within(r, cut);
    const seen = opaque(e) && !/opacity\(0(?:%|\.0*)?\)/.test(style.filter) && fits(edges(rect(e)), r) && framed(e);
    sights.set(e, seen);
    return seen;
  };
  // reads reports whether a text in an element can be seen.
  const reads = (text, e) => {
    if (!opaque(e) || !framed(e)) return false;
    const range = newRange(ownerDocument(e));
    selectNode(range, text);
    return fits(edges(rangeRect(range)), room(e));
  };
  return { sees, reads };
};
const newRange = method(Document.prototype, "createRange");
const selectNode = method(Range.prototype, "selectNode");
const rangeRect = method(Range.prototype, "getBoundingClientRect");
