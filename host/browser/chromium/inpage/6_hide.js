// Elements whose content must not be in a picture, for the time in which it is taken:
// wherever the page moves them, they draw nothing. What the page does to their style
// meanwhile is recorded, so that a picture taken then can be thrown away.
const inlineStyle = (e) => (isHTML(e) ? htmlStyle(e) : svgStyle(e));
const htmlStyle = getter(HTMLElement.prototype, "style");
const svgStyle = getter(SVGElement.prototype, "style");
const styleValue = method(CSSStyleDeclaration.prototype, "getPropertyValue");
const stylePriority = method(CSSStyleDeclaration.prototype, "getPropertyPriority");
const setStyle = method(CSSStyleDeclaration.prototype, "setProperty");
const removeAttribute = method(Element.prototype, "removeAttribute");
const undrawn = [["transition", "none"], ["opacity", "0"]]; // and it keeps the focus
let hiddenNow = [];
const framesOf = () => new Promise((done) => {
  setTimeout(done, 250);
  requestAnimationFrame(() => requestAnimationFrame(done));
});
const hide = async (list) => {
  unhide();
  for (const n of list) {
    const e = nodeOf(n);
    if (!e) continue;
    const style = inlineStyle(e), had = has(e, "style");
    const before = undrawn.map(([k]) => [k, styleValue(style, k), stylePriority(style, k)]);
    const changes = new MutationObserver(() => { entry.touched = true; });
    const entry = { e, style, had, before, changes, touched: false };
    hiddenNow.push(entry);
    for (const [k, v] of undrawn) setStyle(style, k, v, "important");
    changes.observe(e, { attributes: true, attributeFilter: ["style"] });
  }
  await framesOf();
  return hiddenNow.length;
};
// unhide draws them again; false says that the page may have drawn one meanwhile.
const unhide = () => {
  let kept = true;
  for (const h of hiddenNow) {
    if (h.touched || h.changes.takeRecords().length || (isConnected(h.e) && styleOf(h.e).opacity !== "0") || styleOf(h.e).display === "contents") kept = false;
    h.changes.disconnect();
    const [transition, opacity] = h.before;
    setStyle(h.style, ...opacity);
    void styleOf(h.e).opacity; // takes effect at once, before a transition could be begun
    setStyle(h.style, ...transition);
    if (!h.had && has(h.e, "style")) removeAttribute(h.e, "style"); // asked first, or Chromium leaves it empty
  }
  hiddenNow = [];
  return kept;
};
