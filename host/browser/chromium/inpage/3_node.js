// One element as the host hears of it: page.Node, in its JSON.
const pickers = new Set("date datetime-local month week time color".split(" "));
const textTypes = new Set("text search url tel email password number".split(" "));
const listenersOn = new WeakSet(); // elements that hear the pointer or keys, as the host found

// bare says of an element that it has no attributes, for those who know.
const native = (e, tag, bare = false) => {
  if (!isHTML(e)) return tag === "a" && namespaceURI(e) === SVG && (has(e, "href") || has(e, "xlink:href"));
  switch (tag) {
    case "button": case "select": case "textarea": case "option": return true;
    case "summary": return true;
    case "input": return input.type(e) !== "hidden";
    case "a": case "area": return has(e, "href");
    case "audio": case "video": return has(e, "controls");
  }
  return !bare && has(e, "contenteditable") && isContentEditable(e);
};
const controlOf = (e, tag) => (tag === "label" && isHTML(e) ? labelControl(e) : null);
const actionable = (e, tag, role, bare = false) => native(e, tag, bare) || interactive.has(role) || (!bare && has(e, "tabindex")) || controlOf(e, tag) !== null;

const editable = (e, tag) => {
  if (!isHTML(e)) return false;
  if (tag === "textarea") return true;
  if (tag === "input") return textTypes.has(input.type(e));
  return isContentEditable(e);
};
const disabled = (e) => {
  for (let n = e, i = 0; n && i < 200; n = up(n), i++) if (attr(n, "aria-disabled") === "true") return true;
  return matches(e, ":disabled");
};
const bool = (v) => (v === "true" ? true : v === "false" ? false : undefined);
const number = (v) => {
  if (v === null || v === undefined || v === "") return undefined;
  const n = Number(v);
  return Number.isFinite(n) ? n : undefined;
};

const optionsOf = (e, tag, role) => {
  const list = [];
  if (tag === "select" && isHTML(e)) {
    const all = select.options(e);
    for (let i = 0; i < all.length && i < 500; i++) {
      const o = all[i];
      list.push({ id: cut(option.value(o), 512), label: short(option.label(o)), disabled: matches(o, ":disabled") || undefined, selected: option.selected(o) || undefined });
    }
    return list;
  }
  const wanted = role === "listbox" || role === "combobox" ? "[role=option]" : role === "radiogroup" ? "[role=radio],input[type=radio]" : role === "tablist" ? "[role=tab]" : null;
  if (!wanted) return list;
  const box = role === "combobox" ? popupOf(e) : e;
  if (!box) return list;
  const all = queryAll(box, wanted);
  for (let i = 0; i < all.length && i < 500; i++) {
    const o = all[i], t = localName(o), r = roleOf(o, t);
    const on = t === "input" ? input.checked(o) : attr(o, "aria-selected") === "true" || attr(o, "aria-checked") === "true";
    list.push({
      id: cut(attr(o, "data-value") || attr(o, "value") || idOf(o) || "", 512), label: nameOf(o, t, r), disabled: disabled(o) || undefined, selected: on || undefined,
      ref: String(numberOf(o)),
    });
  }
  return list;
};

// popupOf is the list that a combobox shows its options in, while it does.
const popupOf = (e) => {
  const id = (attr(e, "aria-controls") || attr(e, "aria-owns") || "").split(" ")[0];
  const box = id ? byId(e, id) : null;
  return box && shown(box) ? box : null;
};

const stateOf = (e, tag, role, focus, options, acts, off) => {
  const s = {};
  const html = isHTML(e);
  if (html && tag === "input") {
    const t = input.type(e);
    if (t === "checkbox" || t === "radio") { if (input.indeterminate(e)) s.mixed = true; else s.checked = input.checked(e); }
    else if (t !== "file" && t !== "hidden") {
      s.raw_value = cut(input.value(e), 65536);
      if (t === "range" || t === "number") {
        const v = input.number(e);
        if (Number.isFinite(v)) s.value = v;
        const min = number(attr(e, "min")) ?? (t === "range" ? 0 : undefined), max = number(attr(e, "max")) ?? (t === "range" ? 100 : undefined);
        const step = attr(e, "step") === "any" ? 0 : number(attr(e, "step")) ?? 1;
        if (min !== undefined && max !== undefined) s.value_range = { min, max, step };
      }
      if (textTypes.has(t) || pickers.has(t)) s.text_value = s.raw_value;
    }
  } else if (html && tag === "textarea") s.text_value = s.raw_value = cut(textarea.value(e), 65536);
  else if (html && tag === "select") {
    if (!select.multiple(e)) {
      s.raw_value = cut(select.value(e), 65536);
      const o = select.options(e)[select.index(e)];
      if (o) s.selected = { id: cut(option.value(o), 512), label: short(option.label(o)) };
    }
  } else if (html && (tag === "meter" || tag === "progress")) {
    const v = number(attr(e, "value"));
    if (v !== undefined) s.value = v;
  } else if (html && isContentEditable(e) && has(e, "contenteditable")) s.text_value = cut(innerText(e), 65536);
  if (s.checked === undefined && !s.mixed) {
    if (attr(e, "aria-checked") === "mixed") s.mixed = true;
    const c = bool(attr(e, "aria-checked")) ?? (role === "button" ? bool(attr(e, "aria-pressed")) : undefined);
    if (c !== undefined) s.checked = c;
  }
  if (s.selected === undefined && options.length && tag !== "select") {
    const on = options.filter((o) => o.selected);
    if (on.length === 1) s.selected = { id: on[0].id, label: on[0].label };
  }
  if (s.selected === undefined && role === "combobox" && tag !== "select") { // what it shows is what was chosen
    const label = short(html && tag === "input" ? input.value(e) : html ? innerText(e) : "");
    if (label) s.selected = { id: "", label };
  }
  const chosen = bool(attr(e, "aria-selected")) ?? (has(e, "aria-current") ? attr(e, "aria-current") !== "false" : undefined);
  if (chosen !== undefined) s.chosen = chosen;
  if (s.value === undefined) {
    const v = number(attr(e, "aria-valuenow"));
    if (v !== undefined) {
      s.value = v;
      const min = number(attr(e, "aria-valuemin")) ?? (role === "slider" ? 0 : undefined), max = number(attr(e, "aria-valuemax")) ?? (role === "slider" ? 100 : undefined);
      if (min !== undefined && max !== undefined) s.value_range = { min, max };
      s.raw_value ??= cut(attr(e, "aria-valuetext") ?? attr(e, "aria-valuenow"), 512);
    }
  }
  const expanded = bool(attr(e, "aria-expanded"));
  if (expanded !== undefined) s.expanded = expanded;
  else if (html && tag === "details") s.expanded = detailsOpen(e);
  else if (html && tag === "summary") {
    const d = parentNode(e);
    if (d && nodeType(d) === 1 && is(d, "details")) s.expanded = detailsOpen(d);
  }
  if (acts) {
    s.focused = focus.has(e);
    s.enabled = !off;
  }
  return s;
};

// focused are the elements that have the focus: in each shadow root and frame the
// active one, outermost first.
const focused = () => {
  const all = new Set();
  let e = activeElement(document);
  for (let i = 0; e && i < 50; i++) {
    all.add(e);
    const shadow = shadowRoot(e), doc = inner(e);
    e = shadow ? activeInShadow(shadow) : doc ? activeElement(doc) : null;
  }
  return all;
};

const area = (b) => Math.max(0, b.w) * Math.max(0, b.h);
const meet = (a, b) => {
  const x = Math.max(a.x, b.x), y = Math.max(a.y, b.y);
  return { x, y, w: Math.min(a.x + a.w, b.x + b.w) - x, h: Math.min(a.y + a.h, b.y + b.h) - y };
};

// A look holds what elements of one observation share: offsets of documents, clips of
// ancestors, the focus.
const newLook = () => {
  const places = new Map(), clips = new Map(), focus = focused();
  const view = { x: 0, y: 0, w: window.innerWidth, h: window.innerHeight };
  const place = (e) => {
    const d = ownerDocument(e);
    let o = places.get(d);
    if (!o) places.set(d, (o = offsets(d)));
    return o;
  };
  const boxOf = (r, o) => ({ x: o.x + o.s * r.left, y: o.y + o.s * r.top, w: o.s * r.width, h: o.s * r.height });
  const box = (e) => boxOf(rect(e), place(e));
  // clip is what ancestors let through of something inside of e.
  const clip = (e, depth = 0) => {
    if (!e || nodeType(e) !== 1 || depth > 400) return view;
    let c = clips.get(e);
    if (c) return c;
    const style = styleOf(e);
    const parent = style.position === "fixed" ? framers.get(ownerDocument(e)) || null : up(e);
    c = clip(parent, depth + 1);
    const root = e === documentElement(ownerDocument(e)) || e === documentBody(ownerDocument(e));
    if (isFrame(e) || (!root && (style.overflowX !== "visible" || style.overflowY !== "visible"))) c = meet(c, box(e));
    clips.set(e, c);
    return c;
  };
  const around = (e) => (styleOf(e).position === "fixed" && !framers.has(ownerDocument(e)) ? view : clip(up(e)));
  return { sight: newSight(), focus, view, box, boxOf, place, around };
};

const inherits = (e) => {
  for (let n = up(e), i = 0; n && i < 200; n = up(n), i++) {
    if (nodeType(n) !== 1) continue;
    const tag = localName(n);
    if (tag === "body" || tag === "html") return false;
    if (listenersOn.has(n) || has(n, "onclick")) return true;
  }
  return false;
};
const hears = (e) => listenersOn.has(e) || has(e, "onclick") || has(e, "onmousedown") || has(e, "onpointerdown") || has(e, "onkeydown");

// delegated reports a document that hears for what is in it.
const delegated = (doc) => [doc, documentBody(doc), documentElement(doc)].some((n) => n && (listenersOn.has(n) || nodeType(n) === 1 && has(n, "onclick")));

const describe = (e, look, wanted, textOf) => {
  const tag = localName(e), html = isHTML(e), role = roleOf(e, tag);
  const b = look.box(e), visible = area(b) > 0 && look.sight.sees(e), style = styleOf(e);
  const acts = actionable(e, tag, role);
  const options = optionsOf(e, tag, role), off = disabled(e);
  const n = { ref: String(numberOf(e)), tag, bounds: b, visible: visible || undefined };
  if (visible) {
    n.in_view = area(meet(b, look.around(e))) * 2 >= area(b) || undefined;
    n.hovered = matches(e, ":is(:hover)") || undefined; // in pages without a doctype :hover alone is for links
  }
  const set = (k, v) => { if (v) n[k] = v; };
  set("id", cut(idOf(e), 512));
  set("test_id", cut(attr(e, "data-testid") || attr(e, "data-test") || attr(e, "data-qa") || "", 512));
  set("name_att", cut(attr(e, "name") || "", 512));
  const classes = classList(e);
  if (classes.length) n.classes = Array.from(classes).slice(0, 20).map((c) => cut(c, 100));
  set("role", role);
  set("name", nameOf(e, tag, role));
  set("aria_label", short(attr(e, "aria-label") || ""));
  set("label", labelOf(e, tag));
  set("placeholder", short(attr(e, "placeholder") || attr(e, "aria-placeholder") || ""));
  set("description", short([attr(e, "title"), attr(e, "aria-description"), referred(e, "aria-describedby")].filter(Boolean).join(" ")));
  set("text", short(textOf(e)));
  for (let c = firstChild(e), i = 0; c && i < 200; c = nextSibling(c), i++) if (nodeType(c) === 3 && data(c).trim()) { n.own_text = true; break; }
  set("native", native(e, tag));
  set("own_hear", hears(e));
  set("listens", n.own_hear || inherits(e));
  set("delegated", !n.listens && delegated(ownerDocument(e)));
  set("cursor", style.cursor === "pointer");
  set("tabbable", has(e, "tabindex") || (html && native(e, tag) && tabIndex(e) >= 0));
  const control = controlOf(e, tag);
  if (control) n.labels = String(numberOf(control));
  set("disabled", off);
  if (role === "listbox") set("multiple", attr(e, "aria-multiselectable") === "true");
  set("popup", has(e, "aria-haspopup") && attr(e, "aria-haspopup") !== "false");
  set("autocomplete", cut(attr(e, "autocomplete") || "", 100));
  if (html) describeHTML(e, tag, n, set);
  n.state = stateOf(e, tag, role, look.focus, options, acts, off);
  if (options.length) n.options = options;
  if (scrollLeft(e) || scrollTop(e)) n.scroll = { x: scrollLeft(e), y: scrollTop(e) };
  for (const name of wanted) {
    const v = attr(e, name);
    if (v !== null) (n.attributes ??= {})[name] = cut(v, 2048);
  }
  return n;
};

const describeHTML = (e, tag, n, set) => {
  set("editable", editable(e, tag));
  switch (tag) {
    case "input": {
      const t = input.type(e);
      n.type = t;
      set("read_only", input.readOnly(e));
      set("secret", t === "password");
      set("multiple", t === "file" && input.multiple(e));
      set("in_form", input.form(e) !== null);
      set("submits", t === "submit" || t === "image");
      if (t === "file") n.files = Array.from(input.files(e) || []).slice(0, 50).map((f) => cut(f.name, 255));
      break;
    }
    case "button":
      n.type = button.type(e);
      set("in_form", button.form(e) !== null);
      set("submits", (button.form(e) !== null && n.type === "submit") || has(e, "formaction"));
      break;
    case "textarea":
      n.multiline = true;
      set("read_only", textarea.readOnly(e));
      set("in_form", textarea.form(e) !== null);
      break;
    case "select":
      set("multiple", select.multiple(e));
      set("in_form", select.form(e) !== null);
      break;
    case "a": case "area": if (has(e, "href")) {
      const href = tag === "a" ? anchorHref(e) : areaHref(e);
      if (/^https?:/i.test(href)) n.url = cut(href, 2048);
      const here = defaultView(ownerDocument(e)).location.href.split("#")[0];
      if (href.includes("#") && href.split("#")[0] === here) n.fragment = true;
      else if (!/^javascript:/i.test(href)) n.leaves = true;
      break;
    }
  }
  if (n.editable && tag !== "input") n.multiline = true;
  if (attr(e, "aria-readonly") === "true") n.read_only = true;
};
