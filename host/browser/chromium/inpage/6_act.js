// What is done to an element without the pointer.
const focusOn = (e) => {
  if (isHTML(e)) focusOf.call(e, { preventScroll: false });
  else if (namespaceURI(e) === SVG) focusSVG.call(e);
};
// focusTarget is what takes the focus for an element: itself, or the first that can
// inside of it.
const focusNode = (number, all, text) => {
  const e = nodeOf(number);
  if (!e) return "gone";
  const tag = localName(e);
  if (all && !editable(e, tag)) return "kind";
  watch(e);
  focusOn(e);
  if (all) { selectAll(e, tag); typing(e); }
  if (text === "" && all) {
    const doc = ownerDocument(e);
    const had = tag === "input" && isHTML(e) ? input.value(e) : tag === "textarea" && isHTML(e) ? textarea.value(e) : textContent(e);
    if (had) execCommand(doc, "delete");
  }
  return "";
};
// leave takes the focus out of a control, as a person does who goes on to the next one:
// many pages save, check or format what was entered only then. A field that suggests
// keeps it, since its list would close, and so does what is inside of a menu.
const leave = (number) => {
  const e = nodeOf(number);
  if (!e) return "gone";
  const root = getRootNode(e);
  const active = nodeType(root) === 9 ? activeElement(root) : nodeType(root) === 11 ? activeInShadow(root) : null;
  if (!active || !isHTML(active) || active === documentBody(ownerDocument(e))) return "";
  if (!holds(e, active) && !holds(active, e)) return "";
  if (suggests(e, localName(e)) || offered(e)) return "";
  blurOf.call(active);
  return "";
};
const suggests = (e, tag) => {
  for (let n = up(e), i = 0; n && i < 100; n = up(n), i++) {
    if (nodeType(n) === 1 && (lists.has(attr(n, "role") || "") || has(n, "popover"))) return true;
  }
  if (tag === "select" && isHTML(e)) return false;
  const auto = attr(e, "aria-autocomplete");
  const popup = attr(e, "aria-haspopup");
  return roleOf(e, tag) === "combobox" || has(e, "list") || has(e, "aria-expanded") || (auto !== null && auto !== "none") || (popup !== null && popup !== "false");
};
const lists = new Set(["listbox", "menu", "menubar", "tree"]);
// What a page shows beside a field while one types into it: a list, or something that
// lies over the page.
let typedInto = null, shownThen = [], typingSeen = null;
const typing = (e) => {
  if (typingSeen) typingSeen.disconnect();
  typedInto = new WeakRef(e);
  shownThen = [];
  typingSeen = new MutationObserver((records) => noteShown(records));
  typingSeen.observe(ownerDocument(e), { subtree: true, childList: true, attributes: true, attributeFilter: ["style", "class", "hidden", "open"] });
  const mine = typingSeen;
  later(() => mine.disconnect(), 2000);
};
const noteShown = (records) => {
  for (const r of records) {
    if (shownThen.length > 200) return;
    if (r.type === "attributes") shownThen.push(r.target);
    else for (const n of r.addedNodes) if (nodeType(n) === 1) shownThen.push(n);
  }
};
const offered = (e) => {
  if (!typingSeen || typedInto.deref() !== e) return false;
  noteShown(typingSeen.takeRecords());
  typingSeen.disconnect();
  typingSeen = null;
  const list = shownThen;
  shownThen = [];
  return list.some((n) => {
    if (!isConnected(n) || holds(n, e) || holds(e, n) || !shown(n) || !area2(n)) return false;
    if (["ul", "ol", "li"].includes(localName(n)) || lists.has(attr(n, "role") || "") || attr(n, "role") === "option") return true;
    const p = styleOf(n).position;
    return p === "absolute" || p === "fixed";
  });
};

// enter puts a secret into a text control, whole or not at all. Nothing happens
// between the focus and the text, so that nobody else gets it: not a frame that took
// the focus, nor a field that the page moves it to.
const enter = (number, text) => {
  const e = nodeOf(number);
  if (!e) return "gone";
  const tag = localName(e);
  if (!editable(e, tag)) return "kind";
  const field = is(e, "input") ? input : is(e, "textarea") ? textarea : null;
  const most = field ? field.maxLength(e) : -1;
  if (most >= 0 && text.length > most) return "kind";
  watch(e);
  focusOn(e);
  selectAll(e, tag);
  const root = getRootNode(e);
  const active = nodeType(root) === 9 ? activeElement(root) : nodeType(root) === 11 ? activeInShadow(root) : null;
  if (active !== e) return "kind";
  return execCommand(ownerDocument(e), "insertText", false, text) ? "" : "kind";
};
const selectAll = (e, tag) => {
  if (is(e, "input")) return input.select(e);
  if (is(e, "textarea")) return textarea.select(e);
  const s = getSelection(ownerDocument(e));
  if (s) s.selectAllChildren(e);
};

const changed = (e, ...types) => {
  for (const t of types) dispatch(e, new Event(t, { bubbles: true, composed: true }));
};
const setControl = (number, s) => {
  const e = nodeOf(number);
  if (!e) return "gone";
  if (!isHTML(e)) return "kind";
  const tag = localName(e);
  watch(e);
  switch (tag) {
    case "input": {
      const t = input.type(e);
      if (t === "checkbox" || t === "radio") {
        if (s.check === undefined || (t === "radio" && !s.check)) return "kind";
        focusOn(e);
        input.setChecked(e, s.check);
      } else if (t === "file" || t === "hidden") return "kind";
      else if (s.number === undefined && s.text === undefined) return "kind";
      else {
        focusOn(e);
        input.setValue(e, s.number !== undefined ? String(s.number) : s.text);
      }
      changed(e, "input", "change");
      return "";
    }
    case "textarea":
      if (s.text === undefined) return "kind";
      focusOn(e);
      textarea.setValue(e, s.text);
      changed(e, "input", "change");
      return "";
    case "select": {
      const all = select.options(e);
      if (select.multiple(e) !== (s.indices !== undefined)) return "kind";
      if (s.indices) {
        for (const i of s.indices) if (i < 0 || i >= all.length) return "gone"; else if (matches(all[i], ":disabled")) return "kind";
        for (let i = 0; i < all.length; i++) option.choose(all[i], s.indices.includes(i));
        changed(e, "input", "change");
        return "";
      }
      let index = -1;
      if (s.index !== undefined) index = s.index;
      else if (s.option !== undefined) for (let i = 0; i < all.length; i++) if (option.value(all[i]) === s.option) { index = i; break; }
      if (index < 0 || index >= all.length) return "gone";
      if (matches(all[index], ":disabled")) return "kind";
      focusOn(e);
      select.setIndex(e, index);
      changed(e, "input", "change");
      return "";
    }
  }
  return "kind";
};

const scrollable = (e) => {
  const style = styleOf(e);
  const can = (v) => v === "auto" || v === "scroll" || v === "overlay";
  return (can(style.overflowY) && scrollHeight(e) > clientHeight(e)) || (can(style.overflowX) && scrollWidth(e) > clientWidth(e)) || is(e, "textarea");
};
const scroll = (number, dx, dy) => {
  let e = number ? nodeOf(number) : scrollingElement(document) || documentElement(document);
  if (!e) return { fault: "gone" };
  for (let n = e; number && n; n = up(n)) if (nodeType(n) === 1 && scrollable(n)) { e = n; break; }
  const page = e === scrollingElement(ownerDocument(e));
  const view = defaultView(ownerDocument(e));
  const w = page ? view.innerWidth : clientWidth(e), h = page ? view.innerHeight : clientHeight(e);
  const x = scrollLeft(e), y = scrollTop(e);
  scrollBy(e, { left: dx * w, top: dy * h, behavior: "instant" });
  return { fault: "", x: scrollLeft(e) - x, y: scrollTop(e) - y };
};
const show = (number, to, fx, fy) => {
  const e = nodeOf(number);
  if (!e) return "gone";
  scrollIntoView(e, { block: to, inline: "nearest", behavior: "instant" });
  if (fx !== 0.5 || fy !== 0.5) showPoint(e, fx, fy);
  return "";
};
// showPoint scrolls what holds an element until a point of it is in sight, which the
// middle of a large one says nothing about.
const showPoint = (e, fx, fy) => {
  const doc = ownerDocument(e), all = scrollingElement(doc), view = defaultView(doc);
  for (let n = up(e), i = 0; n && i < 200; n = up(n), i++) {
    if (nodeType(n) !== 1 || ownerDocument(n) !== doc || n !== all && !scrollable(n)) continue;
    const box = rect(e), x = box.left + fx * box.width, y = box.top + fy * box.height;
    const v = n === all ? { left: 0, top: 0, width: view.innerWidth, height: view.innerHeight } : rect(n);
    const off = (at, from, size) => (at > from + size * 0.1 && at < from + size * 0.9 ? 0 : at - from - size / 2);
    scrollBy(n, { left: off(x, v.left, v.width), top: off(y, v.top, v.height), behavior: "instant" });
  }
};
const boxesOf = (list) => {
  const look = newLook();
  return list.map((n) => {
    const e = nodeOf(n);
    return e ? look.box(e) : null;
  });
};
const secrets = () => {
  const look = newLook(), list = [];
  const visit = (root) => {
    const all = nodeType(root) === 9 ? queryAllDocument(root, "*") : queryAllIn(root, "*");
    for (let i = 0; i < all.length && i < 20000; i++) {
      const e = all[i];
      if (is(e, "input") && input.type(e) === "password") list.push(look.box(e));
      const shadow = shadowRoot(e), doc = inner(e);
      if (shadow) visit(shadow);
      if (doc) { framers.set(doc, e); visit(doc); }
    }
  };
  visit(document);
  return list.filter((b) => area(b) > 0).slice(0, 100);
};
const selection = () => {
  let doc = document;
  for (let i = 0; i < 20; i++) {
    const a = activeElement(doc), d = a ? inner(a) : null;
    if (!d) {
      if (a && is(a, "input") && input.type(a) === "password") return "";
      break;
    }
    doc = d;
  }
  return cut(String(getSelection(doc) || ""), 65536);
};
// controlAt is the number of the control at a point that the browser would open a
// pop-up of its own for, or 0.
const controlAt = (x, y) => {
  const e = hitAt(document, x, y);
  if (!e) return null;
  for (let n = e, i = 0; n && i < 5; n = up(n), i++) {
    if (nodeType(n) !== 1) continue;
    const tag = localName(n);
    if ((tag === "select" && isHTML(n) && !select.multiple(n) && select.size(n) <= 1) ||
      (tag === "input" && isHTML(n) && /^(date|time|datetime-local|month|week|color)$/.test(input.type(n)))) {
      return disabled(n) ? null : describe(n, newLook(), [], () => "");
    }
  }
  return null;
};
const frameAt = (x, y) => {
  const e = hitAt(document, x, y);
  return e && isFrame(e) && inner(e) === null ? { n: numberOf(e), ...frameFacts(e, 0, 0, newLook()) } : null;
};
const mark = (...list) => {
  for (const e of list) if (e && (nodeType(e) === 1 || nodeType(e) === 9)) listenersOn.add(e);
};
const nameFrame = (e) => ({ n: numberOf(e), open: inner(e) !== null });
