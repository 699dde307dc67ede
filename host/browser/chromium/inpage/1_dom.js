// What the rest uses of the platform. A page cannot reach this world's objects, but
// its forms and its document answer to names it chose (<input name="parentNode">), so
// nothing here reads a property of a node: each goes through the prototype's own
// getter or method, taken once.
const getter = (proto, name) => {
  const g = Object.getOwnPropertyDescriptor(proto, name).get;
  return (o) => g.call(o);
};
const setter = (proto, name) => {
  const s = Object.getOwnPropertyDescriptor(proto, name).set;
  return (o, v) => s.call(o, v);
};
const method = (proto, name) => {
  const m = proto[name];
  return (o, ...a) => m.apply(o, a);
};

const nodeType = getter(Node.prototype, "nodeType");
const firstChild = getter(Node.prototype, "firstChild");
const nextSibling = getter(Node.prototype, "nextSibling");
const parentNode = getter(Node.prototype, "parentNode");
const isConnected = getter(Node.prototype, "isConnected");
const ownerDocument = getter(Node.prototype, "ownerDocument");
const textContent = getter(Node.prototype, "textContent");
const getRootNode = method(Node.prototype, "getRootNode");
const data = getter(CharacterData.prototype, "data");
const localName = getter(Element.prototype, "localName");
const namespaceURI = getter(Element.prototype, "namespaceURI");
const idOf = getter(Element.prototype, "id");
const shadowRoot = getter(Element.prototype, "shadowRoot");
const assignedSlot = getter(Element.prototype, "assignedSlot");
const classList = getter(Element.prototype, "classList");
const scrollLeft = getter(Element.prototype, "scrollLeft");
const scrollTop = getter(Element.prototype, "scrollTop");
const scrollWidth = getter(Element.prototype, "scrollWidth");
const scrollHeight = getter(Element.prototype, "scrollHeight");
const clientLeft = getter(Element.prototype, "clientLeft");
const clientTop = getter(Element.prototype, "clientTop");
const clientWidth = getter(Element.prototype, "clientWidth");
const clientHeight = getter(Element.prototype, "clientHeight");
const offsetWidth = getter(HTMLElement.prototype, "offsetWidth");
const offsetHeight = getter(HTMLElement.prototype, "offsetHeight");
const tabIndex = getter(HTMLElement.prototype, "tabIndex");
const isContentEditable = getter(HTMLElement.prototype, "isContentEditable");
const innerText = getter(HTMLElement.prototype, "innerText");
const getAttributeOf = Element.prototype.getAttribute;
const attr = (e, name) => getAttributeOf.call(e, name);
const hasAttributeOf = Element.prototype.hasAttribute;
const has = (e, name) => hasAttributeOf.call(e, name);
const hasAttributes = method(Element.prototype, "hasAttributes");
const attributeNames = method(Element.prototype, "getAttributeNames");
const rectOf = Element.prototype.getBoundingClientRect;
const rect = (e) => rectOf.call(e);
const getClientRects = method(Element.prototype, "getClientRects");
const checkVisibilityOf = Element.prototype.checkVisibility;
const withVisibility = { visibilityProperty: true };
const shown = (e) => checkVisibilityOf.call(e, withVisibility);
const withOpacity = { visibilityProperty: true, opacityProperty: true };
const opaque = (e) => checkVisibilityOf.call(e, withOpacity);
const matches = method(Element.prototype, "matches");
const animationsOf = method(Element.prototype, "getAnimations");
const playState = getter(Animation.prototype, "playState");
const effectOf = getter(Animation.prototype, "effect");
const transitionProperty = getter(CSSTransition.prototype, "transitionProperty");
const computedTiming = method(AnimationEffect.prototype, "getComputedTiming");
const keyframesOf = method(KeyframeEffect.prototype, "getKeyframes");
const closest = method(Element.prototype, "closest");
const scrollIntoView = method(Element.prototype, "scrollIntoView");
const scrollBy = method(Element.prototype, "scrollBy");
const queryAll = method(Element.prototype, "querySelectorAll");
const queryAllIn = method(DocumentFragment.prototype, "querySelectorAll");
const queryAllDocument = method(Document.prototype, "querySelectorAll");
const byIdIn = method(DocumentFragment.prototype, "getElementById");
const byIdDocument = method(Document.prototype, "getElementById");
const assignedNodes = method(HTMLSlotElement.prototype, "assignedNodes");
const focusOf = HTMLElement.prototype.focus;
const blurOf = HTMLElement.prototype.blur;
const focusSVG = SVGElement.prototype.focus;
const hostOf = getter(ShadowRoot.prototype, "host");
const documentElement = getter(Document.prototype, "documentElement");
const documentBody = getter(Document.prototype, "body");
const readyState = getter(Document.prototype, "readyState");
const documentTitle = getter(Document.prototype, "title");
const defaultView = getter(Document.prototype, "defaultView");
const activeElement = getter(Document.prototype, "activeElement");
const activeInShadow = getter(ShadowRoot.prototype, "activeElement");
const scrollingElement = getter(Document.prototype, "scrollingElement");
const fromPoint = method(Document.prototype, "elementFromPoint");
const fromPointShadow = method(ShadowRoot.prototype, "elementFromPoint");
const getSelection = method(Document.prototype, "getSelection");
const execCommand = method(Document.prototype, "execCommand");
const frameDocument = getter(HTMLIFrameElement.prototype, "contentDocument");
const oldFrameDocument = getter(HTMLFrameElement.prototype, "contentDocument");
const listen = method(EventTarget.prototype, "addEventListener");
const dispatch = method(EventTarget.prototype, "dispatchEvent");
const styleOf = window.getComputedStyle.bind(window);
const frameOfAnimation = window.requestAnimationFrame.bind(window);
const later = window.setTimeout.bind(window);
const clock = performance;
const now = clock.now.bind(clock);
const parseURL = URL;

const HTML = "http://www.w3.org/1999/xhtml";
const SVG = "http://www.w3.org/2000/svg";
const isHTML = (e) => namespaceURI(e) === HTML;
const is = (e, tag) => localName(e) === tag && isHTML(e);

// input is the members of the controls, by tag, for those that have them.
const input = {
  maxLength: getter(HTMLInputElement.prototype, "maxLength"),
  type: getter(HTMLInputElement.prototype, "type"),
  value: getter(HTMLInputElement.prototype, "value"),
  setValue: setter(HTMLInputElement.prototype, "value"),
  number: getter(HTMLInputElement.prototype, "valueAsNumber"),
  checked: getter(HTMLInputElement.prototype, "checked"),
  setChecked: setter(HTMLInputElement.prototype, "checked"),
  indeterminate: getter(HTMLInputElement.prototype, "indeterminate"),
  readOnly: getter(HTMLInputElement.prototype, "readOnly"),
  multiple: getter(HTMLInputElement.prototype, "multiple"),
  files: getter(HTMLInputElement.prototype, "files"),
  labels: getter(HTMLInputElement.prototype, "labels"),
  form: getter(HTMLInputElement.prototype, "form"),
  select: method(HTMLInputElement.prototype, "select"),
};
const textarea = {
  maxLength: getter(HTMLTextAreaElement.prototype, "maxLength"),
  value: getter(HTMLTextAreaElement.prototype, "value"),
  setValue: setter(HTMLTextAreaElement.prototype, "value"),
  readOnly: getter(HTMLTextAreaElement.prototype, "readOnly"),
  labels: getter(HTMLTextAreaElement.prototype, "labels"),
  form: getter(HTMLTextAreaElement.prototype, "form"),
  select: method(HTMLTextAreaElement.prototype, "select"),
};
const select = {
  value: getter(HTMLSelectElement.prototype, "value"),
  options: getter(HTMLSelectElement.prototype, "options"),
  index: getter(HTMLSelectElement.prototype, "selectedIndex"),
  setIndex: setter(HTMLSelectElement.prototype, "selectedIndex"),
  multiple: getter(HTMLSelectElement.prototype, "multiple"),
  size: getter(HTMLSelectElement.prototype, "size"),
  labels: getter(HTMLSelectElement.prototype, "labels"),
  form: getter(HTMLSelectElement.prototype, "form"),
};
const option = {
  value: getter(HTMLOptionElement.prototype, "value"),
  label: getter(HTMLOptionElement.prototype, "label"),
  selected: getter(HTMLOptionElement.prototype, "selected"),
  choose: setter(HTMLOptionElement.prototype, "selected"),
  disabled: getter(HTMLOptionElement.prototype, "disabled"),
};
const button = {
  type: getter(HTMLButtonElement.prototype, "type"),
  labels: getter(HTMLButtonElement.prototype, "labels"),
  form: getter(HTMLButtonElement.prototype, "form"),
};
const labelControl = getter(HTMLLabelElement.prototype, "control");
const meterLabels = getter(HTMLMeterElement.prototype, "labels");
const progressLabels = getter(HTMLProgressElement.prototype, "labels");
const outputLabels = getter(HTMLOutputElement.prototype, "labels");
const anchorHref = getter(HTMLAnchorElement.prototype, "href");
const areaHref = getter(HTMLAreaElement.prototype, "href");
const detailsOpen = getter(HTMLDetailsElement.prototype, "open");

const cut = (s, n) => (s.length > n ? s.slice(0, n) : s);
const tidy = (s) => s.replace(/\s+/g, " ").trim();
const short = (s) => cut(tidy(s), 512);

// inner is the document of a frame element, if this world may see it.
const inner = (e) => {
  switch (localName(e)) {
    case "iframe": return isHTML(e) ? frameDocument(e) : null;
    case "frame": return isHTML(e) ? oldFrameDocument(e) : null;
  }
  return null;
};
const isFrame = (e) => (localName(e) === "iframe" || localName(e) === "frame") && isHTML(e);

// up is the parent in the flat tree: of a slotted node its slot, of a shadow root its
// host, of a document the element that frames it, if that can be seen from here.
const framers = new WeakMap(); // document -> frame element
const up = (n) => {
  if (nodeType(n) === 1) {
    const slot = assignedSlot(n);
    if (slot) return slot;
  }
  const p = parentNode(n);
  if (p && nodeType(p) === 11) return hostOf(p);
  if (p && nodeType(p) === 9) return framers.get(p) || null;
  return p;
};
const byId = (e, id) => {
  const root = getRootNode(e);
  if (nodeType(root) === 9) return byIdDocument(root, id);
  if (nodeType(root) === 11) return byIdIn(root, id);
  return null;
};

// Numbers of nodes, which are not used again as long as this world lives.
let lastNumber = 0;
const numbers = new WeakMap();
const numbered = new Map(); // number -> WeakRef
const forget = new FinalizationRegistry((n) => numbered.delete(n));
const numberOf = (e) => {
  let n = numbers.get(e);
  if (n === undefined) {
    n = ++lastNumber;
    numbers.set(e, n);
    numbered.set(n, new WeakRef(e));
    forget.register(e, n);
  }
  return n;
};
// nodeOf is the element of a number, as long as it is in a document that is shown.
const nodeOf = (n) => {
  const e = numbered.get(n)?.deref();
  return e && isConnected(e) && defaultView(ownerDocument(e)) ? e : null;
};

// offset is what has to be added to a point of a document for one of this world's
// own document, and by what it is multiplied before.
const offsets = (doc) => {
  let x = 0, y = 0, s = 1;
  for (let d = doc; d !== document; ) {
    const f = framers.get(d);
    if (!f) break;
    const r = rect(f);
    const k = offsetWidth(f) > 0 ? r.width / offsetWidth(f) : 1;
    const style = styleOf(f);
    const left = r.left + k * (clientLeft(f) + (parseFloat(style.paddingLeft) || 0));
    const top = r.top + k * (clientTop(f) + (parseFloat(style.paddingTop) || 0));
    x = left + k * x; y = top + k * y; s *= k;
    d = ownerDocument(f);
  }
  return { x, y, s };
};
