const exports = {
  read, ready, through, counted, aimed, focusNode, leave, enter, setControl, scroll, show, boxesOf, hide, unhide, secrets, selection, controlAt, frameAt, mark, nameFrame, extract, node: nodeOf,
  title: () => short(documentTitle(document)),
  lens: () => { const v = globalThis.visualViewport; return v ? { scale: v.scale, x: v.offsetLeft, y: v.offsetTop } : { scale: 1, x: 0, y: 0 }; },
  rested: () => new Promise((done) => { setTimeout(done, 500); requestAnimationFrame(() => requestAnimationFrame(() => done())); }),
  multiline: (n) => { const e = nodeOf(n); return e !== null && !is(e, "input"); },
  place: (n) => { const e = nodeOf(n); if (!e) return null; const f = frameFacts(e, 0, 0, newLook()); return { x: f.x, y: f.y, s: f.s }; },
};
Object.defineProperty(globalThis, "sluice", { value: exports });
