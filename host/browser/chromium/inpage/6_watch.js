// What goes and comes back between two looks. From one look to the next the elements
// that are looked at are watched, so that what blinks in step with the looks is not
// taken for still.
let watcher = null, watchEnds = 0, watchWork = 0;
const watching = new Map(); // element -> { says, away, waves }
const maxWatching = 256, maxWatchedText = 4096, maxWatchWork = 5000, watchTime = 2000;
const watchedStates = [...ariaStates, "disabled", "hidden", "value"];
const says = (e) => watchedStates.map((k) => attr(e, k) ?? "").join("\n") + "\n" + textContent(e);

// working reports whether an element, or what it is in, is marked busy or is being moved
// or faded by an animation that ends. known has what was found in the same look.
const working = (e, known) => {
  const path = [];
  let found = false;
  for (let n = e, i = 0; n && i < 64 && !found; n = parentNode(n), i++) {
    if (known.has(n)) { found = known.get(n); break; }
    path.push(n);
    found = nodeType(n) === 1 && (attr(n, "aria-busy") === "true" || animationsOf(n).some(ending));
  }
  for (const n of path) known.set(n, found);
  return found;
};
const colours = /color|shadow|outline|background|fill|stroke|^(offset|computedOffset|easing|composite)$/i;
const ending = (a) => {
  if (playState(a) !== "running") return false;
  if (a instanceof CSSTransition) return !colours.test(transitionProperty(a));
  const effect = effectOf(a);
  return effect instanceof KeyframeEffect && computedTiming(effect).endTime < Infinity &&
    keyframesOf(effect).slice(0, 8).some((k) => Object.keys(k).some((name) => !colours.test(name)));
};

// wave is how often an element has said something else and then the same again, since
// it is watched, and whether it says something else than at the last look.
const wave = (e) => {
  if (watcher) moved(watcher.takeRecords());
  const said = says(e);
  let w = watching.get(e);
  if (!w) {
    if (watching.size >= maxWatching) return { waves: 0, changed: false };
    if (!watcher) { watcher = new MutationObserver(moved); watchWork = 0; later(unwatch, watchTime); }
    watching.set(e, (w = { says: said, away: false, waves: 0 }));
    watcher.observe(getRootNode(e), { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: watchedStates });
  }
  const changed = w.says !== said;
  if (changed) { w.says = said; w.away = false; }
  watchEnds = now() + watchTime;
  return { waves: w.waves, changed };
};
const moved = (records) => {
  const touched = new Set();
  for (const r of records) {
    for (let n = r.target, i = 0; n && i < 64; n = parentNode(n), i++) if (watching.has(n)) touched.add(n);
  }
  for (const e of touched) {
    if (++watchWork > maxWatchWork) return; // a page that changes all the time has shown that it does
    const w = watching.get(e), same = says(e) === w.says;
    if (same && w.away) w.waves++;
    w.away = !same;
  }
};
const unwatch = () => {
  const left = watchEnds - now();
  if (left > 0) { later(unwatch, left + 1); return; }
  watcher.disconnect();
  watcher = null;
  watching.clear();
};
