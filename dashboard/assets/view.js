// The live view: the page of a run's browser, drawn and used from here. Everything
// that it is told was written by a page somewhere; it is shown through textContent
// and as a picture, and nothing else.
'use strict';

(() => {
  const box = document.querySelector('[data-view]');
  if (!box) return;
  const $ = (selector) => box.querySelector(selector);
  const all = (selector) => Array.from(box.querySelectorAll(selector));
  const csrf = () => document.querySelector('meta[name="sluice-csrf"]')?.content ?? '';
  const canvas = $('canvas');
  const keys = $('[data-view-keys]');
  const picture = $('[data-view-picture]');
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  const narrow = matchMedia('(pointer: coarse) and (max-width: 48rem)');

  let view = null; // the one that is open
  const tries = 8; // to come to the host that has the browser
  const apart = 300; // in ms
  let standing = {}; // how things stand, as it was told last

  // On a phone the view is the screen: the page behind it is out of reach meanwhile.
  const screenful = (on) => {
    const cover = on && narrow.matches;
    if (box.classList.contains('full') === cover) return;
    box.classList.toggle('full', cover);
    document.documentElement.classList.toggle('covered', cover);
    const behind = [...document.body.children, ...box.parentElement.children].filter((x) => x !== box && !x.contains(box) && !['said', 'offline', 'signedout'].includes(x.id));
    for (const x of behind) x.inert = cover;
    enlarge(1);
    sized();
  };
  // A keyboard on the screen leaves less of it.
  const sized = () => {
    const seen = box.classList.contains('full') ? window.visualViewport : null;
    box.style.height = seen ? `${Math.round(seen.height)}px` : '';
    box.style.top = seen ? `${Math.round(seen.offsetTop)}px` : '';
  };
  window.visualViewport?.addEventListener('resize', () => sized());
  window.visualViewport?.addEventListener('scroll', () => sized());

  const said = (text) => { $('[data-view-said]').textContent = text; };
  const shown = (selector, on) => { $(selector).hidden = !on; };

  const sentences = {
    no_pending_interaction: 'The run is not waiting for this any more.',
    interaction_id_mismatch: 'The run is waiting for something else by now.',
    stream_not_supported_for_kind: 'What the run waits for is not done in a browser.',
    browser_surface_unavailable: 'The run has no live browser that could be shown.',
    rate_limited: 'Too many views were opened. Wait a minute.',
    invalid_token: 'The view was not accepted. Open it again.',
    session_expired: 'The view was away for too long. Open it again.',
    superseded: 'The view was opened again in another window.',
    connected_elsewhere: 'The view goes on in another window.',
    revoked: 'The view was closed.',
    interaction_ended: 'This step is over. The connector goes on.',
    surface_lost: 'The browser was lost. Nothing was submitted.',
    host_stopping: 'Sluice is stopping.',
    too_many_viewers: 'Too many windows show this browser already.',
    session_ended: 'You are signed out.',
    other_host: 'The browser is at another host of Sluice, which was not reached.',
  };
  const notices = {
    upload_not_permitted: 'The connector may not upload files; the page got none.',
    file_given: 'The page has the file.',
    control_not_given: 'The connector is still at work in the page. Try to take control again.',
    page_busy: 'The page does not answer.',
    download_denied: 'The page offered a file, which was not downloaded.',
    download_done: 'A file of the page was saved in the browser of the run.',
    download_failed: 'The page offered a file, which could not be saved.',
  };
  const errors = {
    page_busy: 'The page does not answer; the last step was dropped.',
    not_controlling: 'You do not have control of the page now.',
    gone: 'It is not there any more.',
    not_done: 'That did not work.',
  };

  // Opening: a view is minted, then its token is shown in the first message.
  const open = async (of) => {
    view?.end();
    box.hidden = false;
    shown('[data-view-gone]', false);
    shown('[data-view-live]', false);
    shown('[data-view-lease]', false);
    $('[data-view-said]').classList.remove('sr');
    said('Opening the browser…');
    screenful(true);
    box.scrollIntoView({ block: 'nearest' });
    box.focus({ preventScroll: true }); // what is typed from now on presses nothing outside
    const v = { of, socket: null, resume: null, id: null, over: false, live: false, drawn: false, since: 0, elsewhere: 0, interaction: of.interaction };
    picture.classList.add('blank');
    v.end = () => { v.over = true; send(v, { type: 'bye' }); v.socket?.close(); };
    view = v;
    const body = { mode: 'control' };
    if (of.interaction) body.interactionId = of.interaction;
    else body.assistanceId = of.assistance;
    const key = crypto.randomUUID?.() ?? String(Math.random());
    let answer, minted;
    do { // behind what balances requests, the next one may come to the host that has the browser
      if (minted) await new Promise((later) => setTimeout(later, apart));
      answer = await fetch(`/v1/runs/${encodeURIComponent(of.run)}/browser/views`, {
        method: 'POST', body: JSON.stringify(body),
        headers: { 'Content-Type': 'application/json', 'X-Sluice-CSRF': csrf(), 'Idempotency-Key': key },
      }).catch(() => null);
      minted = await answer?.json().catch(() => null);
      if (view !== v) return;
    } while (minted?.details?.hostId && v.elsewhere++ < tries);
    if (answer?.status === 401) document.dispatchEvent(new Event('sluice:signedout'));
    if (answer?.status === 401) { gone(sentences.session_ended); return; }
    if (minted?.details?.hostId) { gone(`It is at another host of Sluice.${minted.details.url ? ` Open this page there: ${minted.details.url}` : ''}`); return; }
    if (!answer?.ok) { gone(sentences[minted?.error] ?? 'Sluice did not answer as expected.'); return; }
    v.elsewhere = 0;
    v.id = minted.viewId;
    connect(v, { token: minted.token });
  };

  const connect = (v, credential) => {
    v.credential = credential;
    const url = new URL(`/v1/runs/${encodeURIComponent(v.of.run)}/browser/view`, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    v.socket = socket;
    socket.onopen = () => {
      const first = { type: 'auth', stills: still.matches, ...credential };
      if (v.interaction) first.interaction_id = v.interaction;
      socket.send(JSON.stringify(first));
    };
    socket.onmessage = (e) => {
      if (view !== v) return;
      if (typeof e.data === 'string') heard(v, JSON.parse(e.data));
      else draw(v, e.data);
    };
    socket.onclose = (e) => closed(v, e);
  };

  // A connection that dropped comes back by itself for half a minute.
  const closed = (v, e) => {
    if (view !== v || v.over) return;
    if (e.reason === 'other_host' && v.elsewhere++ < tries) {
      setTimeout(() => { if (view === v && !v.over) connect(v, v.credential); }, apart);
      return;
    }
    if ((e.code === 1006 || e.code === 1005) && v.resume) {
      v.since ||= Date.now();
      if (Date.now() - v.since < 29000) {
        said('The connection was lost. Trying again…');
        $('[data-view-list]').replaceChildren(); // its elements are of that connection
        setTimeout(() => { if (view === v && !v.over) connect(v, { resume: v.resume }); }, 1000);
        return;
      }
    }
    if (!v.live || e.code >= 4400) report(v, e);
    v.over = true;
    gone(sentences[e.reason] ?? 'The connection to the browser was lost.');
  };

  const report = (v, e) => {
    const reasons = { 4401: 'invalid_token', 4403: 'invalid_token', 4410: 'session_expired', 1006: 'unreachable_origin' };
    if (!v.id) return;
    fetch(`/v1/runs/${encodeURIComponent(v.of.run)}/browser/views/${encodeURIComponent(v.id)}/reach-failed`, {
      method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Sluice-CSRF': csrf() }, body: JSON.stringify({ reason: reasons[e.code] ?? 'unknown' }),
    }).catch(() => null);
  };

  // What cannot be shown is not hinted at.
  const final = ['interaction_ended', 'surface_lost', 'session_ended', 'host_stopping', 'no_pending_interaction'].map((code) => sentences[code]);
  const gone = (why) => {
    screenful(false);
    shown('[data-view-live]', false);
    shown('[data-view-gone]', true);
    shown('[data-view-do="retry"]', !final.includes(why)); // where trying again could help
    $('[data-view-said]').classList.add('sr'); // it stands below
    all('[data-view-do="take"],[data-view-do="release"]').forEach((b) => { b.hidden = true; });
    shown('[data-view-lease]', false);
    $('[data-view-host]').textContent = '';
    $('[data-view-page]').textContent = '';
    $('[data-view-why]').textContent = `Browser control is not available. ${why}`;
    said(why);
  };

  const send = (v, message) => {
    if (v?.socket?.readyState === WebSocket.OPEN) v.socket.send(JSON.stringify(message));
  };
  const tell = (message) => send(view, message);
  const yours = () => standing.lease === 'yours';
  const drawn = () => yours() && Boolean(view?.drawn); // a pointer needs a picture to point at

  // What it is told.
  const heard = (v, m) => {
    switch (m.type) {
      case 'hello': {
        v.resume = m.resume;
        v.since = 0;
        v.elsewhere = 0;
        const again = v.live;
        v.live = true;
        standing = {};
        shown('[data-view-gone]', false);
        shown('[data-view-live]', true);
        shown('[data-view-lease]', true);
        screenful(true);
        fitted = '';
        stand(v, m, again ? 'The connection is back.' : 'Connected.');
        if (yours() && $('[data-view-elements]').open) tell({ type: 'elements' });
        break;
      }
      case 'state': stand(v, m, ''); break;
      case 'select': choose(m); break;
      case 'picker': choose(m); break;
      case 'copy': copied(m.text); break;
      case 'elements': list(m.elements); break;
      case 'notice': said(`${notices[m.code] ?? 'Something happened in the browser.'}${m.name ? ` (${m.name})` : ''}`); break;
      case 'error': if (errors[m.code]) said(errors[m.code]); break;
    }
  };

  const leases = { yours: 'You are in control', coming: 'Waiting for the connector to pause', other: 'Somebody else is in control', free: 'Nobody is in control' };
  const stand = (v, m, first) => {
    const before = standing;
    standing = m;
    const news = [first];
    $('[data-view-host]').textContent = m.host || 'a blank page';
    $('[data-view-page]').textContent = m.title ? `· ${m.title}` : '';
    $('[data-view-lease]').textContent = leases[m.lease] ?? '';
    $('[data-view-lease]').className = `pill ${m.lease === 'yours' ? 'live' : ''}`;
    all('[data-view-do="take"]').forEach((b) => { b.hidden = m.lease !== 'free'; });
    all('[data-view-do="release"]').forEach((b) => { b.hidden = m.lease !== 'yours'; });
    all('[data-view-tools] button:not([data-view-do="skip"]),[data-view-paste] button,[data-view-elements] button,[data-view-choice] button,[data-view-file] button,[data-view-dialog] button')
      .forEach((b) => { b.disabled = m.lease !== 'yours'; });
    keys.disabled = m.lease !== 'yours';
    picture.classList.toggle('yours', m.lease === 'yours');
    if (m.lease !== before.lease) {
      news.push(before.lease === 'yours' && m.lease === 'free' ? `You gave control back. ${v.of.interaction ? 'The question of the connector is still open.' : 'The connector goes on by itself.'}` : `${leases[m.lease]}.`);
      if (m.lease === 'yours') fit();
    }
    if (before.host !== undefined && m.host !== before.host) news.push(`The page is now on ${m.host || 'a blank page'}.`);
    asked(m.dialog, before.dialog, news);
    shown('[data-view-file]', Boolean(m.choosing));
    if (m.choosing && !before.choosing) news.push('The page asks for a file.');
    const text = news.filter(Boolean).join(' ');
    if (text) said(text);
  };

  // Dialogs, with the page's host named.
  const asked = (d, before, news) => {
    shown('[data-view-dialog]', Boolean(d));
    if (!d || before && d.text === before.text && d.type === before.type) return;
    $('#view-dialog-who').textContent = d.type === 'beforeunload' ? `${d.host} asks whether to leave the page` : `${d.host} says`;
    $('#view-dialog-text').textContent = d.text;
    shown('[data-view-prompt]', d.type === 'prompt');
    shown('[data-view-no]', d.type !== 'alert');
    news.push(`A dialog of ${d.host} is open: ${d.text}`);
    if (yours()) $('[data-view-dialog] .primary').focus();
  };

  // Lists and pickers that the browser would draw by itself.
  const choose = (m) => {
    const field = document.createElement(m.type === 'select' ? 'select' : 'input');
    if (m.type === 'select') {
      for (const o of m.options) {
        const option = document.createElement('option');
        option.value = o.id;
        option.textContent = o.label;
        option.disabled = o.disabled;
        option.selected = o.selected;
        field.append(option);
      }
    } else {
      field.type = m.kind;
      field.value = m.value ?? '';
    }
    field.setAttribute('aria-labelledby', 'view-choice-name');
    $('#view-choice-name').textContent = m.name || (m.type === 'select' ? 'Choose one' : 'Choose a value');
    $('[data-view-field]').replaceChildren(field);
    shown('[data-view-choice]', true);
    field.focus();
  };

  const copied = async (text) => {
    const ok = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    if (ok) { said(text ? 'Copied.' : 'Nothing is selected in the page.'); return; }
    $('[data-view-paste] textarea').value = text;
    $('[data-view-insert]').open = true;
    said('The clipboard is not open to this page. What was selected stands in the box for pasting.');
  };

  // The elements, for whoever does not see the picture.
  const list = (elements) => {
    const button = (text, name, act) => {
      const b = document.createElement('button');
      b.type = 'button';
      b.textContent = text;
      b.setAttribute('aria-label', `${text}: ${name}`);
      b.addEventListener('click', act);
      return b;
    };
    $('[data-view-list]').replaceChildren(...elements.map((e) => {
      const line = document.createElement('li');
      const what = document.createElement('span');
      const name = e.name ? `${e.name}, ${e.role}` : `${e.role} without a name`;
      what.textContent = e.disabled ? `${name} (cannot be used now)` : name;
      line.append(what);
      if (e.disabled) return line;
      line.append(button('Focus', name, () => tell({ type: 'element', id: e.id, action: 'focus' })));
      line.append(button('Click', name, () => tell({ type: 'element', id: e.id, action: 'click' })));
      if (e.opens) line.append(button('Choose', name, () => tell({ type: 'element', id: e.id, action: 'open' })));
      if (e.editable) {
        const input = document.createElement('input');
        input.type = e.secret ? 'password' : 'text';
        input.autocomplete = 'off';
        input.spellcheck = false;
        input.setAttribute('aria-label', `Text for ${name}`);
        line.append(input, button('Type', name, () => { tell({ type: 'element', id: e.id, action: 'type', text: input.value }); input.value = ''; }));
      }
      return line;
    }));
    said(elements.length === 1 ? 'One element.' : `${elements.length} elements.`);
  };

  // The picture: 21 bytes, then a JPEG.
  const draw = async (v, buffer) => {
    const head = new DataView(buffer);
    if (buffer.byteLength < 22 || head.getUint8(0) !== 1) return;
    const seq = head.getUint32(1);
    try {
      const image = await createImageBitmap(new Blob([new Uint8Array(buffer, 21)], { type: 'image/jpeg' }));
      if (view !== v) return;
      if (canvas.width !== image.width || canvas.height !== image.height) { canvas.width = image.width; canvas.height = image.height; }
      canvas.getContext('2d').drawImage(image, 0, 0);
      image.close();
      picture.classList.remove('blank');
      if (!v.drawn) box.scrollIntoView({ block: 'start' }); // it has its size by now
      v.drawn = true;
    } catch { /* the next one may do */ }
    if (document.hidden) { // a page out of sight needs no pictures
      document.addEventListener('visibilitychange', () => send(v, { type: 'ack', seq }), { once: true });
      return;
    }
    send(v, { type: 'ack', seq });
  };

  // Pointers, in pixels of the picture.
  const at = (e) => {
    const r = canvas.getBoundingClientRect();
    return { x: (e.clientX - r.left) * canvas.width / r.width, y: (e.clientY - r.top) * canvas.height / r.height };
  };
  const modifiers = (e) => (e.altKey ? 1 : 0) | (e.ctrlKey || e.metaKey ? 2 : 0) | (e.shiftKey ? 8 : 0);
  let move = null;
  let frame = 0;
  const later = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (move) tell(move);
      move = null;
      if (wheel) tell(wheel);
      wheel = null;
    });
  };
  const flush = () => { if (move) tell(move); move = null; };
  // Two fingers make the picture larger, here alone. The page gets one finger at a time.
  const fingers = new Map();
  let zoom = 1;
  let pinch = null;
  const enlarge = (times) => {
    zoom = Math.min(4, Math.max(1, times));
    canvas.style.width = zoom === 1 ? '' : `${Math.round(zoom * 100)}%`;
  };
  const spread = () => {
    const [a, b] = fingers.values();
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.max(1, Math.hypot(a.x - b.x, a.y - b.y)) };
  };
  const grip = () => {
    const [s, r] = [spread(), canvas.getBoundingClientRect()];
    pinch = { apart: s.apart / zoom, x: (s.x - r.left) / r.width, y: (s.y - r.top) / r.height }; // what is held stays between the fingers
  };
  const stretch = () => {
    const s = spread();
    enlarge(s.apart / pinch.apart);
    const r = canvas.getBoundingClientRect();
    picture.scrollBy(r.left + pinch.x * r.width - s.x, r.top + pinch.y * r.height - s.y);
  };
  let wheel = null;
  canvas.addEventListener('pointermove', (e) => {
    if (!drawn()) return;
    if (fingers.has(e.pointerId)) fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    if (pinch) {
      if (fingers.size === 2) stretch();
      return;
    }
    if (e.pointerType === 'touch') move = { type: 'touch', action: 'touchmove', id: e.pointerId & 15, ...at(e) };
    else move = { type: 'mouse', action: 'mousemove', modifiers: modifiers(e), ...at(e) };
    later();
  });
  // Text goes where the owner pointed last. The field that takes it stands at that
  // place, so that a keyboard on the screen does not cover it.
  let aimed = false;
  let tapped = null;
  const aim = (e) => {
    const r = picture.getBoundingClientRect();
    keys.style.inset = `${Math.round(e.clientY - r.top + picture.scrollTop)}px auto auto ${Math.round(Math.min(e.clientX - r.left, r.width - 4))}px`;
    keys.focus({ preventScroll: true });
  };
  document.addEventListener('pointerdown', (e) => { aimed = e.target === canvas; }, true);
  document.addEventListener('focusin', (e) => { if (e.target !== keys) aimed = false; });
  document.addEventListener('keydown', (e) => {
    if (!aimed || !view || view.over || box.contains(e.target) || ['Tab', 'F6', 'Escape'].includes(e.key)) return;
    e.preventDefault(); // it was meant for the page in the picture
    e.stopPropagation();
    if (yours()) keys.focus({ preventScroll: true });
  }, true);
  canvas.addEventListener('click', (e) => { if (drawn() && document.activeElement !== keys) aim(e); });
  canvas.addEventListener('pointerdown', (e) => {
    if (!drawn()) return;
    e.preventDefault();
    canvas.setPointerCapture(e.pointerId);
    flush();
    if (e.pointerType === 'touch') {
      fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
      if (pinch || fingers.size > 2) return;
      if (fingers.size === 2 && box.classList.contains('full')) {
        if (tapped) tell({ type: 'touch', action: 'touchcancel', id: tapped.id & 15, ...at(e) });
        tapped = null;
        grip();
        return;
      }
      tapped = { id: e.pointerId, x: e.clientX, y: e.clientY };
      tell({ type: 'touch', action: 'touchstart', id: e.pointerId & 15, ...at(e) });
      return;
    }
    aim(e);
    tell({ type: 'mouse', action: 'mousedown', button: e.button, modifiers: modifiers(e), ...at(e) });
  });
  const up = (e) => {
    fingers.delete(e.pointerId);
    if (pinch) {
      if (!fingers.size) pinch = null;
      return;
    }
    if (!drawn()) return;
    flush();
    if (e.pointerType === 'touch') {
      tell({ type: 'touch', action: 'touchend', id: e.pointerId & 15, ...at(e) });
      const stayed = tapped?.id === e.pointerId && Math.hypot(e.clientX - tapped.x, e.clientY - tapped.y) < 12;
      if (stayed && e.type === 'pointerup') aim(e); // a tap, not a stroke: it opens the keyboard
    } else tell({ type: 'mouse', action: 'mouseup', button: e.button, modifiers: modifiers(e), ...at(e) });
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('contextmenu', (e) => { if (yours()) e.preventDefault(); });
  canvas.addEventListener('wheel', (e) => {
    if (!drawn() || e.ctrlKey) return;
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    wheel = { type: 'scroll', deltaX: (wheel?.deltaX ?? 0) + e.deltaX * unit, deltaY: (wheel?.deltaY ?? 0) + e.deltaY * unit, modifiers: modifiers(e), ...at(e) };
    later();
  }, { passive: false });

  // Keys, through a real text field: that opens the keyboard of a phone and lets
  // input methods work. One space stands in it, so that a deletion can be told.
  const named = ['Enter', 'Tab', 'Escape', 'Backspace', 'Delete', 'ArrowLeft', 'ArrowUp', 'ArrowRight', 'ArrowDown', 'Home', 'End', 'PageUp', 'PageDown'];
  const empty = () => { keys.value = ' '; keys.setSelectionRange(1, 1); };
  const leave = () => { ($('[data-view-insert] summary')).focus(); };
  const key = (e, action) => tell({ type: 'keyboard', action, key: e.key, code: e.code, modifiers: e.getModifierState('AltGraph') ? 0 : modifiers(e) });
  keys.addEventListener('focus', empty);
  keys.addEventListener('keydown', (e) => {
    if (e.isComposing || !yours()) return;
    if (e.key === 'F6') { e.preventDefault(); leave(); return; }
    const command = (e.ctrlKey || e.metaKey) && !e.getModifierState('AltGraph');
    const letter = e.key.toLowerCase();
    if (command && letter === 'c') { e.preventDefault(); tell({ type: 'copy' }); return; }
    if (command && letter === 'v') return; // the paste event has the text
    if (named.includes(e.key) || [...e.key].length === 1 && (!command || 'abiyz'.includes(letter))) {
      e.preventDefault();
      key(e, 'keydown');
    }
  });
  keys.addEventListener('keyup', (e) => {
    if (e.isComposing || !yours()) return;
    if (named.includes(e.key) || [...e.key].length === 1) key(e, 'keyup');
  });
  keys.addEventListener('input', (e) => {
    if (e.isComposing || !yours()) return;
    const text = keys.value.replace(/^ /, '');
    if (keys.value === '') {
      for (const action of ['keydown', 'keyup']) tell({ type: 'keyboard', action, key: 'Backspace', code: 'Backspace' });
    } else if (text && e.inputType !== 'insertCompositionText' && e.inputType !== 'insertFromComposition') tell({ type: 'text', text });
    empty();
  });
  keys.addEventListener('compositionupdate', (e) => tell({ type: 'composition', text: e.data, start: e.data.length, end: e.data.length }));
  keys.addEventListener('compositionend', (e) => { tell({ type: 'composition', text: e.data, commit: true }); empty(); });
  keys.addEventListener('paste', (e) => {
    e.preventDefault();
    const text = e.clipboardData?.getData('text/plain');
    if (text) tell({ type: 'paste', text: text.slice(0, 20000) });
  });

  // A narrow touch screen has the page at its own size.
  let fitted = '';
  const fit = () => {
    if (!narrow.matches || !yours()) { fitted = ''; return; }
    const tall = screen.height >= screen.width;
    const room = (measured, missing) => Math.max(240, Math.min(3840, Math.round(measured) || missing));
    const width = room(picture.clientWidth, tall ? 390 : 844);
    const height = room(picture.clientHeight, tall ? 700 : 260);
    if (fitted === `${width}x${height}`) return;
    fitted = `${width}x${height}`;
    tell({ type: 'viewport', width, height, deviceScaleFactor: Math.min(2, devicePixelRatio || 1), mobile: true });
  };
  let resized = 0;
  screen.orientation?.addEventListener('change', () => { clearTimeout(resized); resized = setTimeout(fit, 300); });

  // A file goes in pieces.
  const give = async (file) => {
    if (!file || file.size > 25 * 1024 * 1024) { said('Choose a file of at most 25 MB.'); return; }
    const v = view;
    tell({ type: 'file_choose', name: file.name.slice(0, 100) || 'file', size: file.size });
    const piece = 128 * 1024;
    for (let from = 0; from < file.size; from += piece) {
      const part = new Uint8Array(await file.slice(from, from + piece).arrayBuffer());
      if (view !== v || v.over) return;
      const message = new Uint8Array(part.length + 1);
      message[0] = 2;
      message.set(part, 1);
      v.socket.send(message);
    }
  };

  const close = () => {
    const opener = view && document.querySelector(`[data-view-open][data-run="${CSS.escape(view.of.run)}"]`);
    screenful(false);
    view?.end();
    view = null;
    box.hidden = true;
    opener?.focus();
  };
  const does = {
    take: () => tell({ type: 'take' }),
    release: () => tell({ type: 'release' }),
    close,
    retry: () => { if (view) open(view.of); },
    type: () => { keys.focus(); said('What you type now goes into the page. F6 leaves it.'); },
    copy: () => tell({ type: 'copy' }),
    skip: leave,
    elements: () => tell({ type: 'elements' }),
    nochoice: () => shown('[data-view-choice]', false),
    nofile: () => tell({ type: 'file_choose', action: 'none' }),
  };
  document.addEventListener('click', (e) => {
    const opener = e.target.closest?.('[data-view-open]');
    if (opener) { open({ run: opener.dataset.run, interaction: opener.dataset.interaction, assistance: opener.dataset.assistance }); return; }
    const b = e.target.closest?.('[data-view-do],[data-view-nav]');
    if (!b || !box.contains(b)) return;
    if (b.dataset.viewNav) tell({ type: 'nav', action: b.dataset.viewNav });
    else does[b.dataset.viewDo]?.();
  });
  $('[data-view-elements]').addEventListener('toggle', (e) => { if (e.target.open && yours()) tell({ type: 'elements' }); });
  const form = (selector, act) => $(selector).addEventListener('submit', (e) => { e.preventDefault(); act(e.target, e.submitter); });
  form('[data-view-dialog]', (f, by) => {
    tell({ type: 'dialog', accept: by?.value !== 'no', text: f.elements.text.value });
    f.reset();
  });
  form('[data-view-choice]', (f) => {
    const field = f.querySelector('select,input');
    if (field.tagName === 'SELECT') tell({ type: 'select_choice', id: field.value });
    else tell({ type: 'picker', value: field.value });
    f.hidden = true;
    keys.focus({ preventScroll: true });
  });
  form('[data-view-file]', (f) => { give(f.elements.file.files[0]); f.reset(); });
  form('[data-view-paste]', (f) => { if (f.elements.text.value) tell({ type: 'paste', text: f.elements.text.value }); f.reset(); });
  addEventListener('pagehide', () => view?.end());
})();
