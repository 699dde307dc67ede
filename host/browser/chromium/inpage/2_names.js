// Roles and accessible names: the part of HTML-AAM and AccName that pages use.
const roles = new Set(("alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox complementary contentinfo " +
  "definition deletion dialog directory document emphasis feed figure form generic grid gridcell group heading img image insertion link list listbox listitem log main " +
  "marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar radio radiogroup region row " +
  "rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong subscript superscript switch tab table tablist tabpanel term textbox time timer " +
  "toolbar tooltip tree treegrid treeitem").split(" "));
const interactive = new Set(("button link checkbox radio switch tab menuitem menuitemcheckbox menuitemradio option combobox listbox textbox searchbox slider spinbutton " +
  "treeitem scrollbar").split(" "));
const fromContent = new Set(("button cell checkbox columnheader gridcell heading link menuitem menuitemcheckbox menuitemradio option radio row rowheader switch tab tooltip " +
  "treeitem").split(" "));
const landmarks = new Set("banner complementary contentinfo form main navigation region search".split(" "));
const tagRoles = {
  article: "article", aside: "complementary", blockquote: "blockquote", button: "button", caption: "caption", code: "code", datalist: "listbox", dd: "definition",
  del: "deletion", details: "group", dfn: "term", dialog: "dialog", dt: "term", em: "emphasis", fieldset: "group", figure: "figure", h1: "heading", h2: "heading",
  h3: "heading", h4: "heading", h5: "heading", h6: "heading", hr: "separator", ins: "insertion", li: "listitem", main: "main", math: "math", menu: "list", meter: "meter",
  nav: "navigation", ol: "list", optgroup: "group", option: "option", output: "status", p: "paragraph", progress: "progressbar", search: "search", strong: "strong",
  sub: "subscript", summary: "button", sup: "superscript", table: "table", tbody: "rowgroup", textarea: "textbox", tfoot: "rowgroup", th: "columnheader", thead: "rowgroup",
  time: "time", tr: "row", td: "cell", ul: "list", svg: "img",
};
const inputRoles = {
  button: "button", checkbox: "checkbox", color: "", email: "textbox", file: "button", image: "button", number: "spinbutton", password: "textbox", radio: "radio",
  range: "slider", reset: "button", search: "searchbox", submit: "button", tel: "textbox", text: "textbox", url: "textbox",
};

const roleOf = (e, tag, said = attr(e, "role")) => {
  if (said) {
    for (const r of said.toLowerCase().split(/\s+/)) if (roles.has(r)) return r === "image" ? "img" : r;
  }
  if (!isHTML(e)) return tag === "svg" ? "img" : "";
  switch (tag) {
    case "a": case "area": return has(e, "href") ? "link" : "";
    case "input": {
      const r = inputRoles[input.type(e)] ?? "";
      return has(e, "list") && (r === "textbox" || r === "searchbox") ? "combobox" : r;
    }
    case "img": return attr(e, "alt") === "" ? "" : "img";
    case "select": return select.multiple(e) || select.size(e) > 1 ? "listbox" : "combobox";
    case "section": return has(e, "aria-label") || has(e, "aria-labelledby") ? "region" : "";
    case "form": return has(e, "aria-label") || has(e, "aria-labelledby") ? "form" : "";
    case "header": return closest(e, "article,aside,main,nav,section") ? "" : "banner";
    case "footer": return closest(e, "article,aside,main,nav,section") ? "" : "contentinfo";
  }
  return tagRoles[tag] ?? "";
};

const labelsOf = (e, tag) => {
  switch (tag) {
    case "input": return input.labels(e);
    case "textarea": return textarea.labels(e);
    case "select": return select.labels(e);
    case "button": return button.labels(e);
    case "meter": return meterLabels(e);
    case "progress": return progressLabels(e);
    case "output": return outputLabels(e);
  }
  return null;
};

const unseen = new Set("script style template noscript head meta link title base param source track datalist".split(" "));
const blocks = new Set(("address article aside blockquote br button caption dd details dialog div dl dt fieldset figcaption figure footer form frame h1 h2 h3 h4 h5 h6 header hr " +
  "iframe img input legend li main nav ol option p pre search section select summary svg table tbody td textarea tfoot th thead tr ul video canvas").split(" "));

// spoken is the text of a subtree as a name takes it, at most 512 characters out of
// 400 nodes. skip is left out of it (a control in its own label).
const spoken = (root, skip, hiddenToo) => {
  let out = "", left = 400;
  const visit = (n, depth) => {
    if (left-- <= 0 || out.length > 600 || depth > 60 || n === skip) return;
    const type = nodeType(n);
    if (type === 3) { out += data(n); return; }
    if (type !== 1) return;
    const tag = localName(n);
    if (unseen.has(tag)) return;
    if (n !== root) {
      if (attr(n, "aria-hidden") === "true" || (!hiddenToo && !shown(n) && styleOf(n).display !== "contents")) return;
      const own = attr(n, "aria-label");
      if (own && own.trim()) { out += " " + own + " "; return; }
      switch (isHTML(n) ? tag : "") {
        case "img": case "area": out += " " + (attr(n, "alt") || "") + " "; return;
        case "textarea": out += " " + textarea.value(n) + " "; return;
        case "select": {
          const o = select.options(n)[select.index(n)];
          if (o) out += " " + option.label(o) + " ";
          return;
        }
        case "input": {
          const t = input.type(n);
          if (t !== "password" && t !== "hidden" && t !== "checkbox" && t !== "radio" && t !== "file") out += " " + (t === "image" ? attr(n, "alt") || "" : input.value(n)) + " ";
          return;
        }
      }
    }
    const apart = blocks.has(tag);
    if (apart) out += " ";
    const shadow = shadowRoot(n);
    const slotted = tag === "slot" && isHTML(n) ? assignedNodes(n) : null;
    if (slotted && slotted.length) for (const c of slotted) visit(c, depth + 1);
    else for (let c = firstChild(shadow || n); c; c = nextSibling(c)) visit(c, depth + 1);
    if (apart) out += " ";
  };
  visit(root, 0);
  return short(out);
};

const referred = (e, attribute) => {
  const ids = attr(e, attribute);
  if (!ids) return "";
  const parts = [];
  for (const id of ids.trim().split(/\s+/).slice(0, 8)) {
    const r = byId(e, id);
    if (!r) continue;
    const own = attr(r, "aria-label");
    parts.push(own && own.trim() ? own : spoken(r, null, true));
  }
  return short(parts.join(" "));
};

const labelOf = (e, tag) => {
  const parts = [];
  const by = referred(e, "aria-labelledby");
  if (by) parts.push(by);
  const labels = isHTML(e) ? labelsOf(e, tag) : null;
  if (labels) for (let i = 0; i < labels.length && i < 4; i++) {
    const s = spoken(labels[i], e, false);
    if (s && !parts.includes(s)) parts.push(s);
  }
  return short(parts.join(" "));
};

const firstOf = (e, tag) => {
  for (let c = firstChild(e), i = 0; c && i < 50; c = nextSibling(c), i++) if (nodeType(c) === 1 && localName(c) === tag) return c;
  return null;
};

const nativeName = (e, tag) => {
  switch (tag) {
    case "input": {
      const t = input.type(e);
      if (t === "submit" || t === "button" || t === "reset") return attr(e, "value") ?? (t === "submit" ? "Submit" : t === "reset" ? "Reset" : "");
      if (t === "image") return attr(e, "alt") || attr(e, "value") || "";
      return "";
    }
    case "img": case "area": return attr(e, "alt") || "";
    case "fieldset": { const l = firstOf(e, "legend"); return l ? spoken(l, null, false) : ""; }
    case "table": { const l = firstOf(e, "caption"); return l ? spoken(l, null, false) : ""; }
    case "figure": { const l = firstOf(e, "figcaption"); return l ? spoken(l, null, false) : ""; }
    case "svg": { const l = firstOf(e, "title"); return l ? textContent(l) : ""; }
  }
  return "";
};

const nameOf = (e, tag, role) => {
  const by = referred(e, "aria-labelledby");
  if (by) return by;
  const said = attr(e, "aria-label");
  if (said && said.trim()) return short(said);
  const native = tidy(nativeName(e, tag));
  if (native) return cut(native, 512);
  const labels = isHTML(e) ? labelsOf(e, tag) : null;
  if (labels && labels.length) {
    const s = labelOf(e, tag);
    if (s) return s;
  }
  if (fromContent.has(role) || tag === "summary" || (tag === "option" && isHTML(e))) {
    const s = spoken(e, null, false);
    if (s) return s;
  }
  const title = attr(e, "title");
  if (title && title.trim()) return short(title);
  const placeholder = attr(e, "placeholder") || attr(e, "aria-placeholder");
  return placeholder && (tag === "input" || tag === "textarea" || role === "textbox") ? short(placeholder) : "";
};
