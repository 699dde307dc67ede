// What extract takes, as it stands on the page.
const longText = (s) => (s.length > 65536 ? ((extracted.truncated = true), s.slice(0, 65536)) : s);
let extracted = { truncated: false };

// A table of another kind says so by its role, and so do its rows and cells.
const tables = "table,[role=table],[role=grid],[role=treegrid]";
const cellOf = (e) => {
  const tag = localName(e), role = attr(e, "role");
  if (role === "columnheader" || role === "rowheader" || (tag === "th" && !role)) return "th";
  return role === "cell" || role === "gridcell" || (tag === "td" && !role) || tag === "td" || tag === "th" ? "td" : "";
};
const rowsOf = (table) => {
  const all = queryAll(table, "tr,[role=row]");
  const rows = [];
  for (let i = 0; i < all.length; i++) if (closest(all[i], tables) === table) rows.push(all[i]);
  return rows;
};
// cellsOf are the cells of a row; of one without table elements, also those in wrappers.
const cellsOf = (row) => {
  const list = [];
  if (localName(row) === "tr") {
    for (let c = firstChild(row); c; c = nextSibling(c)) if (nodeType(c) === 1 && cellOf(c)) list.push(c);
    return list;
  }
  const all = queryAll(row, "[role=cell],[role=gridcell],[role=columnheader],[role=rowheader],td,th");
  for (let i = 0; i < all.length && i < 1000; i++) if (closest(all[i], "tr,[role=row]") === row) list.push(all[i]);
  return list;
};
const tableOf = (e, columns) => {
  const grid = [], heads = [];
  const rows = rowsOf(e);
  const span = (c, name) => Math.min(1000, Math.max(1, parseInt(attr(c, name) || attr(c, "aria-" + name) || "1", 10) || 1));
  let bytes = 0;
  for (let y = 0; y < rows.length; y++) {
    if (y >= 5001 || bytes > 900000) { extracted.truncated = true; break; }
    grid[y] ??= [];
    let x = 0, onlyHeads = true, any = false;
    for (const c of cellsOf(rows[y])) {
      any = true;
      if (cellOf(c) === "td") onlyHeads = false;
      while (grid[y][x] !== undefined) x++;
      const text = longText(tidy(shown(c) ? innerText(c) : ""));
      bytes += text.length;
      const w = span(c, "colspan"), h = Math.min(span(c, "rowspan"), rows.length - y);
      for (let dy = 0; dy < h; dy++) for (let dx = 0; dx < w && x + dx < 1000; dx++) (grid[y + dy] ??= [])[x + dx] = text;
      x += w;
    }
    heads[y] = any && onlyHeads;
  }
  let from = 0, names = [];
  while (from < grid.length && heads[from]) from++;
  if (from > 0) {
    const width = Math.max(...grid.slice(0, from).map((r) => r.length));
    for (let x = 0; x < width; x++) names[x] = [...new Set(grid.slice(0, from).map((r) => r[x] ?? "").filter(Boolean))].join(" ");
  }
  let body = grid.slice(from).filter((r) => r.length).map((r) => Array.from(r, (c) => c ?? ""));
  if (columns && columns.length) {
    const wanted = columns.map((c) => names.findIndex((n) => n.toLowerCase() === tidy(c).toLowerCase()));
    body = body.map((r) => wanted.map((i) => (i < 0 ? "" : r[i] ?? "")));
    names = columns;
  }
  return { columns: names, rows: body };
};
const linksOf = (root) => {
  const list = [];
  const all = nodeType(root) === 9 ? queryAllDocument(root, "a[href],area[href]") : queryAll(root, "a[href],area[href]");
  const one = (e) => {
    if (!isHTML(e)) return;
    const href = localName(e) === "a" ? anchorHref(e) : areaHref(e);
    if (/^https?:\/\//i.test(href)) list.push({ text: short(innerText(e)) || nameOf(e, localName(e), "link"), url: cut(href, 2048) });
  };
  if (nodeType(root) === 1 && matches(root, "a[href],area[href]")) one(root);
  for (let i = 0; i < all.length; i++) {
    if (list.length >= 5000) { extracted.truncated = true; break; }
    one(all[i]);
  }
  return list;
};
const jsonldOf = (root) => {
  const values = [];
  let invalid = 0, bytes = 0;
  const wanted = 'script[type="application/ld+json" i]';
  const all = nodeType(root) === 9 ? queryAllDocument(root, wanted) : queryAll(root, wanted);
  const list = [...(nodeType(root) === 1 && matches(root, wanted) ? [root] : []), ...all];
  for (const e of list) {
    const text = textContent(e);
    bytes += text.length;
    if (values.length >= 500 || bytes > 900000) { extracted.truncated = true; break; }
    try { values.push(JSON.parse(text)); } catch { invalid++; }
  }
  return { values, invalid };
};
const textOf = (e) => (nodeType(e) === 9 ? (documentBody(e) ? innerText(documentBody(e)) : "") : isHTML(e) ? innerText(e) : textContent(e));
const valueOf = (e) => {
  if (!isHTML(e)) return null;
  switch (localName(e)) {
    case "input": {
      const t = input.type(e);
      return t === "password" || t === "file" ? null : t === "checkbox" || t === "radio" ? (input.checked(e) ? attr(e, "value") ?? "on" : "") : input.value(e);
    }
    case "textarea": return textarea.value(e);
    case "select": return select.value(e);
  }
  const v = attr(e, "aria-valuenow") ?? attr(e, "value");
  return v ?? (isContentEditable(e) ? innerText(e) : null);
};
const extract = (items) => {
  extracted = { truncated: false };
  const out = items.map((it) => {
    const nodes = it.page ? [document] : it.refs.map(nodeOf);
    if (nodes.length > 5000) { extracted.truncated = true; nodes.length = 5000; }
    return nodes.map((e) => {
      if (!e) return { gone: true };
      switch (it.take) {
        case "text": return { v: longText(textOf(e).trim()) };
        case "attribute": { const v = nodeType(e) === 1 ? attr(e, it.attribute) : null; return { v: v === null ? null : longText(v) }; }
        case "value": { const v = nodeType(e) === 1 ? valueOf(e) : null; return { v: v === null ? null : longText(v) }; }
        case "table": {
          const t = nodeType(e) === 1 ? (matches(e, tables) && rowsOf(e).length ? e : queryAll(e, tables)[0] || closest(e, tables)) : queryAllDocument(e, tables)[0];
          return { v: t && isHTML(t) ? tableOf(t, it.columns) : null };
        }
        case "links": return { v: linksOf(e) };
        case "jsonld": return { v: jsonldOf(e) };
      }
      return { v: null };
    });
  });
  return { out, truncated: extracted.truncated };
};
