// One look at the page: a walk through everything that is there, in the order in which
// it is shown, and then a closer look at the elements that were asked for.

// A sum of strings, of 64 bits: equal ones mean equal texts. It guards nothing.
const newSum = () => {
  let a = 0x9e3779b9 | 0, b = 0x85ebca6b | 0;
  return {
    add(s) {
      for (let i = 0; i < s.length; i++) {
        const c = s.charCodeAt(i);
        a = Math.imul(a ^ c, 0x01000193);
        b = Math.imul(b ^ c, 0x5bd1e995);
        b ^= b >>> 15;
      }
      a = Math.imul(a ^ 0xffff, 0x01000193);
      b = Math.imul(b ^ 0xfffe, 0x5bd1e995);
    },
    say: () => (a >>> 0).toString(16).padStart(8, "0") + (b >>> 0).toString(16).padStart(8, "0"),
  };
};
const untidy = /[^\S ]|  /;
const salt = String(Math.random()) + String(clock.timeOrigin);

const words = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]*\\.?|at|on|the|utc|gmt|[ce]e?s?t|[ap]\\.?m\\.?|t|z|st|nd|rd|th|um|uhr";
const timeOnly = new RegExp("^(?=.*\\d{1,2}:\\d{2})(?:\\d+|[\\s,.:/+\\-–|]|" + words + ")+$", "i");
const ageOnly = /^(?:just now|now|moments? ago|(?:about |over |almost |less than |~)?(?:an?|one|few|a few|\d+)\s*(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|mo|months?|y|yrs?|years?)\.?\s+ago|in (?:an?|\d+)\s*(?:seconds?|minutes?|hours?|days?))$/i;
const clockLike = (s) => s.length <= 48 && (/\d/.test(s) || /now|ago/i.test(s)) && (timeOnly.test(s) || ageOnly.test(s));

const asked = new WeakSet(); // elements that were there when the host asked what listens
const walk = (budget, asks) => {
  const w = { fresh: false, els: [], ups: [], starts: [], ends: [], flags: [], roles: [], text: "", truncated: false, busy: null, ordinals: [], frames: [], roots: [], said: [] };
  const { els, ups, starts, ends, flags, roles, ordinals } = w;
  const hierarchy = newSum(), texts = newSum(), states = newSum();
  const until = now() + budget;
  let apart = false, ordinal = 0, steps = 0;
  // The text in pieces, its length, and whether it ends in a space: the text itself
  // is put together once.
  const pieces = [];
  let length = 0, spaced = true;

  const say = (n, e) => {
    const raw = data(n);
    if (!raw) return;
    const from = length;
    let s = untidy.test(raw) ? raw.replace(/\s+/g, " ") : raw;
    const bare = s.trim();
    if (bare) {
      if (flags[e] & 16 && !clockLike(bare)) texts.add(bare);
      flags[e] |= 4;
    }
    if (length > 4000000) { w.truncated = true; return; }
    if (apart && !spaced) { pieces.push(" "); length++; spaced = true; }
    if (spaced) s = s.trimStart();
    if (!s) return;
    pieces.push(s);
    length += s.length;
    spaced = s.charCodeAt(s.length - 1) === 32;
    apart = false;
    if (bare) w.said.push({ n, e, from, to: length });
  };
  const stated = (e, tag, role, html, bare) => {
    if (html) {
      switch (tag) {
        case "input": {
          const t = input.type(e);
          if (t === "checkbox" || t === "radio") states.add(input.checked(e) ? "1" : "0");
          else if (t === "password") states.add(salt + input.value(e));
          else states.add(cut(input.value(e), 4096));
          break;
        }
        case "textarea": states.add(cut(textarea.value(e), 65536)); break;
        case "select": {
          const all = select.options(e);
          states.add(String(select.index(e)) + " " + all.length);
          if (select.multiple(e)) for (let i = 0; i < all.length && i < 500; i++) if (option.selected(all[i])) states.add(String(i));
          break;
        }
        case "details": states.add(detailsOpen(e) ? "1" : "0"); break;
      }
      if (tag === "button" || tag === "input" || tag === "select" || tag === "textarea") states.add(has(e, "disabled") ? "d" : "e");
    }
    if (!bare && attributeNames(e).some(isAria) && (role || has(e, "tabindex"))) for (const a of ariaStates) {
      const v = attr(e, a);
      if (v !== null) states.add(a + v);
    }
  };

  const enter = (e, parent, tag, html) => {
    const bare = !hasAttributes(e);
    const i = els.length;
    if (asks) asked.add(e);
    else if (!w.fresh && !asked.has(e)) w.fresh = true;
    const parentFlags = parent >= 0 ? flags[parent] : 1;
    // 1: its subtree is rendered; 2: it is laid out; 4: text of its own; 8: acts; 16: it
    // is not transparent
    let f = 0;
    if (parentFlags & 1) {
      if (opaque(e)) f = 19;
      else if (shown(e)) f = 3;
      else if (styleOf(e).display !== "none") f = 1;
    }
    els.push(e); ups.push(parent); starts.push(length); ends.push(0); flags.push(f); ordinals.push(ordinal);
    const role = bare ? roleOf(e, tag, null) : roleOf(e, tag);
    roles.push(role);
    if (actionable(e, tag, role, bare)) { flags[i] |= 8; ordinal++; }
    if (f & 2) {
      hierarchy.add(tag + " " + role + " " + (bare ? "" : idOf(e)));
      if (!w.busy) {
        if (role === "progressbar" && area2(e)) w.busy = { signal: "progress_indicator", source: "role=progressbar" };
        else if (!bare && attr(e, "aria-busy") === "true") w.busy = { signal: "aria_busy", source: "aria-busy" };
      }
      stated(e, tag, role, html, bare);
    }
    return i;
  };

  // A stack of places to go on from, so that no depth of a page exhausts ours.
  const stack = [];
  const children = (node, parent) => stack.push({ next: firstChild(node), list: null, at: 0, parent, leave: -1 });
  const openDocument = (doc, parent) => {
    w.roots.push(doc);
    children(doc, parent);
  };
  openDocument(document, -1);
  while (stack.length) {
    const top = stack[stack.length - 1];
    let n;
    if (top.list) n = top.list[top.at++];
    else { n = top.next; if (n) top.next = nextSibling(n); }
    if (!n) {
      stack.pop();
      if (top.leave >= 0) {
        ends[top.leave] = length;
        if (top.block) apart = true;
      }
      continue;
    }
    const type = nodeType(n);
    if (type === 3) {
      if (top.parent >= 0 && flags[top.parent] & 2) say(n, top.parent);
      continue;
    }
    if (type !== 1) continue;
    const tag = localName(n);
    if (unseen.has(tag)) continue;
    if ((++steps & 255) === 0 && now() > until) { w.truncated = true; break; }
    const html = isHTML(n);
    const i = enter(n, top.parent, tag, html);
    const block = blocks.has(tag);
    if (block) apart = true;
    const go = { next: null, list: null, at: 0, parent: i, leave: i, block };
    if (html) {
      switch (tag) {
        case "textarea": case "select": case "canvas": case "video": case "audio": case "object":
          stack.push(go);
          continue;
        case "iframe": case "frame": {
          const doc = frameDocument2(n, tag);
          stack.push(go);
          w.frames.push(i);
          if (doc && documentElement(doc)) {
            framers.set(doc, n);
            if (flags[i] & 2) openDocument(doc, i);
          }
          continue;
        }
        case "slot": {
          const list = assignedNodes(n);
          if (list.length) { go.list = list; stack.push(go); continue; }
        }
      }
    }
    const shadow = html && (hosts.has(tag) || tag.includes("-")) ? shadowRoot(n) : null;
    if (shadow) w.roots.push(shadow);
    go.next = firstChild(shadow || n);
    stack.push(go);
  }
  // What was cut off still has an end.
  for (const s of stack) if (s.leave >= 0) ends[s.leave] = length;
  w.text = pieces.join("");
  w.digests = { hierarchy: hierarchy.say(), text: texts.say(), state: states.say() };
  return w;
};
// hosts are the elements that can have a shadow tree, beside those of a page's own.
const hosts = new Set("article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span".split(" "));
const isAria = (name) => name.startsWith("aria-");
const ariaStates = ["aria-checked", "aria-selected", "aria-expanded", "aria-pressed", "aria-disabled", "aria-valuenow", "aria-current", "aria-invalid"];
const area2 = (e) => { const r = rect(e); return r.width > 0 && r.height > 0; };
const frameDocument2 = (e, tag) => (tag === "iframe" ? frameDocument(e) : oldFrameDocument(e));

// choose is the set of entries that a query means, nearest first, at most limit.
const choose = (w, q, limit) => {
  const chosen = new Map(), index = new Map();
  let truncated = false;
  const { els, ups, flags, roles } = w;
  els.forEach((e, i) => index.set(e, i));
  const take = (i) => {
    if (i === undefined || i < 0 || chosen.has(i)) return true;
    if (chosen.size >= limit) { truncated = true; return false; }
    chosen.set(i, null);
    return true;
  };
  const takeUp = (i) => { for (let j = i; j >= 0; j = ups[j]) if (!take(j)) return; };
  const takeControl = (i) => {
    for (let j = i, k = 0; j >= 0 && k < 6; j = ups[j], k++) {
      const c = controlOf(els[j], localName(els[j]));
      if (c) return takeUp(index.get(c));
      const id = idOf(els[j]);
      if (id && labelled.has(id)) for (const l of labelled.get(id)) takeUp(l);
    }
  };
  const takeNext = (i) => { // those that a label may be for
    for (let j = i + 1, n = 0; j < els.length && n < 8; j++) if (flags[j] & 8 && flags[j] & 2) { n++; if (!take(j)) return; }
  };

  let labelled = new Map(); // id -> entries that name it in aria-labelledby
  if (q.selectors.length) els.forEach((e, i) => {
    const by = attr(e, "aria-labelledby");
    if (by) for (const id of by.split(/\s+/).slice(0, 8)) labelled.set(id, [...(labelled.get(id) || []), i]);
  });

  for (const r of q.refs) {
    const e = nodeOf(r);
    if (e) takeUp(index.get(e));
  }
  const matched = q.selectors.map(() => null);
  q.selectors.forEach((s, k) => {
    if (!s.css) return;
    matched[k] = new Set();
    for (const root of w.roots) {
      const all = nodeType(root) === 9 ? queryAllDocument(root, s.css) : queryAllIn(root, s.css);
      for (let j = 0; j < all.length && j <= limit; j++) {
        const i = index.get(all[j]);
        if (i !== undefined) matched[k].add(i);
      }
    }
    for (const i of matched[k]) takeUp(i);
  });

  const lower = w.text.toLowerCase();
  const sameLength = lower.length === w.text.length;
  for (const s of q.selectors) {
    const needles = [...new Set([s.name, s.label, s.text, s.query].filter(Boolean).map((t) => tidy(t).toLowerCase()))].filter(Boolean);
    for (const needle of needles) {
      for (let at = lower.indexOf(needle), n = 0; at >= 0 && n < 200; at = lower.indexOf(needle, at + Math.max(1, needle.length)), n++) {
        const i = sameLength ? deepest(w, at, at + needle.length) : -1;
        if (i < 0) continue;
        takeUp(i); takeControl(i); takeNext(i);
      }
    }
    const inAttributes = attributesOf(s);
    const role = (s.role || "").toLowerCase(), query = tidy(s.query || "").toLowerCase();
    if (!inAttributes.length && !role && !query) continue;
    for (let i = 0; i < els.length; i++) {
      const e = els[i];
      let hit = role !== "" && roles[i] === role;
      if (!hit && query) hit = roles[i] === query || localName(e) === query || (roles[i] !== "" && query.includes(roles[i])) || kind(e, roles[i], flags[i], query);
      for (let k = 0; !hit && k < inAttributes.length; k++) {
        const [name, needle] = inAttributes[k];
        const v = attr(e, name);
        hit = v !== null && v.length < 65536 && tidy(v).toLowerCase().includes(needle);
      }
      if (hit) { takeUp(i); takeControl(i); }
      if (chosen.size >= limit) { truncated = true; break; }
    }
  }
  if (q.all) truncated = takeAll(w, take, chosen, limit) || truncated;
  const list = [...chosen.keys()].sort((a, b) => a - b);
  return { list, matched, index, truncated };
};

// attributesOf are the attributes that a selector may be found in, with what is looked
// for in them.
const attributesOf = (s) => {
  const list = [];
  const add = (text, ...names) => {
    const t = text ? tidy(text).toLowerCase() : "";
    if (t) for (const n of names) list.push([n, t]);
  };
  add(s.test_id, "data-testid", "data-test", "data-qa");
  add(s.id, "id", "name");
  add(s.name, "aria-label", "alt", "title", "placeholder", "value");
  add(s.label, "aria-label", "title");
  add(s.text, "aria-label", "value");
  add(s.placeholder, "placeholder", "aria-placeholder");
  add(s.query, "id", "name", "data-testid", "data-test", "data-qa", "aria-label", "alt", "title", "placeholder", "value", "class", "aria-description");
  return list;
};
const adjustables = new Set("slider spinbutton combobox listbox radiogroup tablist switch".split(" "));
const kinds = ["slider", "stepper", "dropdown", "segment", "control", "adjust", "increment", "decrement", "select", "click"];
const kind = (e, role, flags, query) => {
  if (!kinds.some((k) => query.includes(k) || k.includes(query))) return false;
  return adjustables.has(role) || has(e, "aria-valuenow") || (flags & 8) !== 0;
};

// deepest is the innermost entry whose text holds a stretch.
const deepest = (w, from, to) => {
  // Entries start in ascending order: the last that starts at or before from, and its
  // ancestors until one holds the stretch.
  let lo = 0, hi = w.starts.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; if (w.starts[mid] <= from) lo = mid + 1; else hi = mid; }
  let i = lo - 1;
  while (i >= 0 && (w.ends[i] < to || w.starts[i] > from)) i = w.ups[i];
  return i;
};

// takeAll takes what a snapshot shows, what is near the viewport first.
const takeAll = (w, take, chosen, limit) => {
  const { els, flags, roles } = w;
  const height = window.innerHeight, far = [];
  let full = false;
  const places = new Map();
  for (let i = 0; i < els.length && !full; i++) {
    if (!(flags[i] & 2)) continue;
    const role = roles[i];
    if (!(flags[i] & 12) && role !== "heading" && !landmarks.has(role) && !listenersOn.has(els[i])) continue;
    const d = ownerDocument(els[i]);
    let o = places.get(d);
    if (!o) places.set(d, (o = offsets(d)));
    const r = rect(els[i]);
    if (r.width <= 0 || r.height <= 0) continue;
    const y = o.y + o.s * r.top;
    if (y > 2 * height || y + o.s * r.height < -height) { if (far.length < limit) far.push(i); else full = true; continue; }
    if (!take(i)) full = true;
  }
  for (const i of far) if (!take(i)) return true;
  return full;
};

// legible is the text of an entry that a person can read.
const legible = (w, i, look) => {
  const from = w.starts[i], to = Math.min(w.ends[i], from + 4096), { said } = w;
  let lo = 0, hi = said.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; if (said[mid].to <= from) lo = mid + 1; else hi = mid; }
  let at = from, text = "";
  for (let k = lo; k < said.length && said[k].from < to; k++) {
    const s = said[k];
    s.read ??= look.sight.reads(s.n, w.els[s.e]);
    if (s.read) continue;
    text += w.text.slice(at, Math.max(at, s.from)) + " ";
    at = Math.min(s.to, to);
  }
  return text + w.text.slice(at, to);
};

const read = (q) => {
  const at = clock.timeOrigin + now();
  const w = walk(q.budget, q.asked);
  let chosen;
  try {
    chosen = choose(w, q, q.limit);
  } catch (err) {
    if (err instanceof DOMException && err.name === "SyntaxError") return { error: "selector" };
    throw err;
  }
  const { list, matched } = chosen;
  const look = newLook(), until = now() + q.budget;
  const place = new Map(); // entry -> number of its node
  const nodes = [];
  const atWork = new Map();
  let truncated = w.truncated || chosen.truncated;
  for (const i of list) {
    if ((nodes.length & 31) === 31 && now() > until) { truncated = true; break; }
    const n = describe(w.els[i], look, q.attributes, () => legible(w, i, look));
    place.set(i, n.ref);
    for (let p = w.ups[i]; p >= 0; p = w.ups[p]) if (place.has(p)) { n.up = place.get(p); break; }
    n.order = i;
    n.ordinal = w.ordinals[i];
    const on = matched.flatMap((m, k) => (m && m.has(i) ? [k] : []));
    if (on.length) n.matches = on;
    if (q.again && w.ends[i] - w.starts[i] <= maxWatchedText) {
      const { waves, changed } = wave(w.els[i]);
      n.waves = waves || undefined;
      n.changed = changed || undefined;
      n.working = working(w.els[i], atWork) || undefined;
    }
    const f = framers.get(ownerDocument(w.els[i]));
    if (f) n.frame = String(numberOf(f));
    nodes.push(n);
    const b = n.bounds;
    seenBox.set(w.els[i], { at: now(), x: b.x, y: b.y, w: b.w, h: b.h });
  }
  const s = scrollingElement(document);
  return {
    at, url: location.href, digests: w.digests, title: short(documentTitle(document)), loading: w.busy || (readyState(document) !== "complete" ? { signal: "document_loading", source: readyState(document) } : null),
    viewport: { width: window.innerWidth, height: window.innerHeight, scale: window.devicePixelRatio },
    scroll: { x: s ? scrollLeft(s) : 0, y: s ? scrollTop(s) : 0 },
    count: w.els.length, ordinals: w.ordinals.length ? w.ordinals[w.ordinals.length - 1] + (w.flags[w.flags.length - 1] & 8 ? 1 : 0) : 0,
    frames: w.frames.map((i) => frameFacts(w.els[i], i, w.ordinals[i], look)), nodes, truncated, fresh: w.fresh && !w.truncated,
    shadows: q.asked ? w.roots.filter((r) => nodeType(r) === 11 && ownerDocument(r) === document).slice(0, 64).map(numberOf) : [],
  };
};
const seenBox = new WeakMap(); // element -> its box at the last look

const frameFacts = (e, order, ordinal, look) => {
  const b = look.box(e), o = look.place(e), style = styleOf(e);
  const k = offsetWidth(e) > 0 ? rect(e).width / offsetWidth(e) : 1;
  const left = parseFloat(style.paddingLeft) || 0, top = parseFloat(style.paddingTop) || 0;
  return {
    n: numberOf(e), open: inner(e) !== null, order, ordinal, name: cut(attr(e, "name") || "", 255), id: cut(idOf(e) || "", 255), box: b, visible: look.sight.sees(e),
    x: b.x + o.s * k * (clientLeft(e) + left), y: b.y + o.s * k * (clientTop(e) + top), s: o.s * k, clip: meet(b, look.around(e)),
  };
};
