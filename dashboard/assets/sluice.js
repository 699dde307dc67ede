// What the pages do by themselves. It makes no elements from text: what others
// wrote is put in place by the templates, or through textContent.
'use strict';

(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const csrf = () => $('meta[name="sluice-csrf"]')?.content ?? '';

  // Answers of our own origin are the only HTML that is ever parsed.
  const answers = [];
  const vouch = (html, origin) => {
    if (origin !== location.origin || !html) return;
    answers.push(html);
    if (answers.length > 32) answers.shift();
  };
  const constants = [ // of htmx: an empty answer, and where it keeps forms meanwhile
    '<body><template class="internal-htmx-wrapper"></template></body>',
    "<div id='--htmx-preserve-pantry--'></div>",
  ];
  if (window.trustedTypes) {
    trustedTypes.createPolicy('default', {
      createHTML: (html) => (constants.includes(html) || answers.some((a) => html.includes(a)) ? html : null),
    });
  }
  document.addEventListener('htmx:beforeSwap', (e) => {
    vouch(e.detail.serverResponse, new URL(e.detail.xhr.responseURL, location.href).origin);
  });
  document.addEventListener('htmx:sseBeforeMessage', (e) => vouch(e.detail.data, e.detail.origin));

  // Storage is for choices of the reader, never for anything of a run.
  const kept = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* for this page only */ } };

  // What went well is said for a moment, what failed until it was read.
  const say = (text, bad) => {
    const box = $('#said');
    if (!box || !text) return;
    all('p', box).filter((x) => x.dataset.said === text).forEach((x) => x.remove());
    const line = document.createElement('p');
    line.textContent = line.dataset.said = text;
    box.append(line);
    if (!bad) { setTimeout(() => line.remove(), 6000); return; }
    line.className = 'bad';
    const close = document.createElement('button');
    close.type = 'button';
    close.textContent = 'Dismiss';
    close.addEventListener('click', () => line.remove());
    line.append(' ', close);
  };

  // A session that is over. The page stays as it is, with all that was typed: it goes
  // on once the owner is signed in again, in this tab or another.
  const channel = window.BroadcastChannel ? new BroadcastChannel('sluice') : null;
  const signedOut = () => {
    const box = $('#signedout');
    if (!box) return;
    $('a', box).href = `/ui/login?next=${encodeURIComponent(location.pathname + location.search + location.hash)}`;
    box.hidden = false;
  };
  const renew = async () => {
    const answer = await fetch('/ui/session').catch(() => null);
    if (answer?.status === 401) { signedOut(); return false; }
    const session = answer?.ok ? await answer.json().catch(() => null) : null;
    const meta = $('meta[name="sluice-csrf"]');
    if (!session || !meta) return false;
    meta.content = session.csrfToken;
    const box = $('#signedout');
    if (box && !box.hidden) { box.hidden = true; say('You are signed in again.'); }
    if (source?.readyState === EventSource.CLOSED) source.dispatchEvent(new Event('error'));
    return true;
  };
  document.addEventListener('sluice:signedout', signedOut);
  const again = () => { if (!document.hidden && $('#signedout')?.hidden === false) renew(); };
  addEventListener('focus', again);

  // Forms that say so are filled in as they were when this tab comes back to them.
  // What is secret is in none of them, and in no field that is kept.
  const keepable = ['text', 'search', 'number', 'date', 'checkbox', 'radio', 'textarea', 'select-one'];
  const fieldsToKeep = (form) => Array.from(form.elements).filter((x) => x.name && keepable.includes(x.type) && !['off', 'one-time-code'].includes(x.autocomplete));
  const changed = (x) => (x.type === 'checkbox' || x.type === 'radio' ? x.checked !== x.defaultChecked
    : x.type === 'select-one' ? !x.selectedOptions[0]?.defaultSelected && x.selectedIndex > 0 : x.value !== x.defaultValue);
  const keptAs = 'sluice-forms';
  const here = () => location.pathname + location.search;
  const keepForms = (but) => {
    const forms = {};
    for (const form of all('form[data-keep]')) {
      const fields = form === but ? [] : fieldsToKeep(form);
      if (fields.some(changed)) forms[form.getAttribute('hx-post')] = fields.map((x) => [x.name, x.value, Boolean(x.checked)]);
    }
    try {
      if (Object.keys(forms).length) sessionStorage.setItem(keptAs, JSON.stringify({ page: here(), forms }));
      else sessionStorage.removeItem(keptAs);
    } catch { /* then it is gone */ }
  };
  const restoreForms = () => {
    let k = null;
    try { k = JSON.parse(sessionStorage.getItem(keptAs)); } catch { /* none is kept */ }
    if (k?.page !== here()) return;
    sessionStorage.removeItem(keptAs);
    for (const form of all('form[data-keep]')) {
      const was = k.forms[form.getAttribute('hx-post')];
      const fields = was ? fieldsToKeep(form) : [];
      if (!was || fields.length !== was.length) continue; // another form by now
      fields.forEach((x, i) => {
        const [name, value, checked] = was[i];
        if (x.name !== name) return;
        if (x.type === 'checkbox' || x.type === 'radio') { if (x.value === value) x.checked = checked; } else x.value = value;
        if (changed(x)) for (let d = x.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
      });
    }
  };
  addEventListener('pagehide', () => { if ($('#signedout')?.hidden === false) keepForms(); });
  document.addEventListener('htmx:beforeOnLoad', (e) => {
    if (e.detail.xhr.getResponseHeader('HX-Refresh')) keepForms(formOf(e.detail.elt));
  });

  // Requests: JSON with the page token; files as they are.
  const files = (elt) => Boolean(elt.closest('[hx-encoding="multipart/form-data"]'));
  const defineExtension = () => htmx.defineExtension('sluice', {
    encodeParameters(xhr, parameters, elt) {
      if (files(elt)) return null;
      const values = {};
      parameters.forEach((value, name) => { (values[name] ??= []).push(String(value)); });
      return JSON.stringify(values);
    },
  });
  document.addEventListener('htmx:configRequest', (e) => {
    const d = e.detail;
    if (d.verb !== 'get') {
      d.headers['X-Sluice-CSRF'] = csrf();
      if (!files(d.elt)) d.headers['Content-Type'] = 'application/json';
    }
    if (d.elt.matches('[data-older]')) d.parameters.before = all('#events li[data-seq]').at(-1)?.dataset.seq ?? '0';
  });
  document.addEventListener('sluice:said', (e) => say(e.detail.value));

  const formOf = (elt) => elt.closest('form');
  const clearErrors = (form) => {
    all('[data-wrong]', form).forEach((x) => { x.textContent = ''; });
    all('[data-failed]', form).forEach((x) => x.remove());
    all('[aria-invalid]', form).forEach((x) => { x.removeAttribute('aria-invalid'); x.removeAttribute('aria-describedby'); });
  };
  document.addEventListener('htmx:beforeRequest', (e) => {
    const form = formOf(e.detail.elt);
    const busy = form ? all('button', form) : [e.detail.elt];
    busy.filter((x) => x.tagName === 'BUTTON').forEach((b) => { b.disabled = true; b.dataset.busy = ''; b.setAttribute('aria-busy', 'true'); });
    if (form) clearErrors(form);
  });
  document.addEventListener('htmx:afterRequest', (e) => {
    const form = formOf(e.detail.elt);
    all('[data-busy]', form ?? document).forEach((b) => { b.disabled = false; delete b.dataset.busy; b.removeAttribute('aria-busy'); });
    if (!form || !form.matches('[data-once],[data-clear]')) return;
    if (e.detail.successful || e.detail.xhr.status === 409) form.reset();
  });

  // A refusal names its fields.
  const fieldsOf = (details) => details?.fields ?? (details?.field ? [{ path: details.field, rule: 'refused' }] : []);
  // What failed stands in its form until it is tried again. A form that the page draws
  // anew by itself, or a lone button, would lose it.
  const failed = (form, said) => {
    const text = said.charAt(0).toUpperCase() + said.slice(1);
    if (!form || !form.isConnected || form.closest('[sse-swap]')) { say(text, true); return; }
    const line = document.createElement('p');
    line.className = 'wrong';
    line.dataset.failed = '';
    line.setAttribute('role', 'alert');
    line.textContent = text;
    form.append(line);
    line.scrollIntoView({ block: 'nearest' });
  };
  const refused = (xhr, elt) => {
    if (xhr.status === 401) { signedOut(); return; }
    let problem = {};
    try { problem = JSON.parse(xhr.responseText); } catch { /* said below */ }
    const form = formOf(elt);
    if (problem.details?.reason === 'page_token') { // signed in anew since the page was loaded
      renew().then((ok) => failed(form, ok ? 'You signed in anew meanwhile. Try again.' : problem.message));
      return;
    }
    let first = null;
    let placed = 0;
    const fields = fieldsOf(problem.details);
    for (const f of fields) {
      const place = form && all('[data-wrong]', form).find((x) => x.dataset.wrong === f.path);
      if (!place) continue;
      placed += 1;
      place.textContent = String(f.rule).includes(' ') ? `Must be ${f.rule}.` : problem.message;
      place.id ||= `wrong-${f.path}`;
      const input = all('input,select,textarea', form).find((x) => x.name === f.path);
      if (input) {
        input.setAttribute('aria-invalid', 'true');
        input.setAttribute('aria-describedby', place.id);
        input.closest('details')?.setAttribute('open', '');
        first ??= input;
      }
    }
    first?.focus();
    if (!fields.length || placed < fields.length) failed(form, problem.message || 'The host did not answer as expected.');
  };
  // How far an upload is, and what is done with it then.
  const sending = (xhr, elt) => {
    const then = elt.closest('[data-progress]')?.dataset.progress;
    const box = then && $('.sending', formOf(elt));
    if (!box) return;
    const [bar, text] = [$('progress', box), $('span', box)];
    xhr.upload.addEventListener('progress', (p) => {
      if (p.total) bar.value = Math.floor(100 * p.loaded / p.total);
      text.textContent = 'It is being sent…';
      box.hidden = false;
    });
    xhr.upload.addEventListener('load', () => {
      bar.removeAttribute('value');
      text.textContent = `${then}…`;
      box.hidden = false;
    });
    xhr.addEventListener('loadend', () => { box.hidden = true; });
  };
  // The form may be gone when the answer comes: then no event of it gets here.
  document.addEventListener('htmx:beforeSend', (e) => {
    const { xhr, elt } = e.detail;
    sending(xhr, elt);
    xhr.addEventListener('load', () => { if (xhr.status >= 400) refused(xhr, elt); });
  });
  document.addEventListener('htmx:sendError', (e) => failed(formOf(e.detail.elt), 'Sluice cannot be reached. Nothing was changed; try again.'));

  // A file that a question is answered with goes along as a text.
  const mostOfFile = 512 * 1024;
  document.addEventListener('change', (e) => {
    const name = e.target.dataset?.file;
    if (!name) return;
    const form = e.target.form;
    const [file] = e.target.files;
    const place = all('input[type=hidden]', form).find((x) => x.name === name);
    place.value = '';
    e.target.setCustomValidity(file && file.size > mostOfFile ? 'At most 512 KiB' : '');
    if (!file || file.size > mostOfFile) { e.target.reportValidity(); return; }
    e.target.setCustomValidity('It is being read');
    const input = e.target;
    const reader = new FileReader();
    const still = () => input.files[0] === file; // and not another one meanwhile
    reader.onload = () => {
      if (!still()) return;
      const media = /^[\w.+-]+\/[\w.+-]+$/.test(file.type) ? file.type : '';
      place.value = `data:${media};name=${encodeURIComponent(file.name)};base64,${String(reader.result).split(',')[1] ?? ''}`;
      input.setCustomValidity('');
    };
    reader.onerror = () => { if (still()) input.setCustomValidity('It cannot be read'); };
    reader.readAsDataURL(file);
  });

  // Times, in the time zone of the reader.
  const units = [['day', 86400], ['hour', 3600], ['minute', 60]];
  const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' });
  const ago = (at) => {
    const seconds = (at - Date.now()) / 1000;
    for (const [unit, n] of units) if (Math.abs(seconds) >= n * (unit === 'minute' ? 0.75 : 1.5)) return relative.format(Math.round(seconds / n), unit);
    return seconds > 0 ? 'in a moment' : 'just now';
  };
  // A formatter costs more to make than all that a page has it format.
  const clock = new Intl.DateTimeFormat([], { hour: 'numeric', minute: 'numeric', second: 'numeric', hour12: false });
  const local = new Intl.DateTimeFormat([], { dateStyle: 'medium', timeStyle: 'short' });
  const whole = new Intl.DateTimeFormat([], { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' });
  const times = (within, which = 'time[datetime]') => {
    for (const t of all(which, within)) {
      const at = new Date(t.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      if ('clock' in t.dataset) t.textContent = clock.format(at);
      if ('local' in t.dataset) t.textContent = local.format(at);
      if ('ago' in t.dataset) { t.textContent = ago(at); t.title = whole.format(at); }
    }
  };

  // While a button of the pointer is down nothing is replaced: a press that ends on
  // another element than it began on is no click.
  let pressing = false;
  const waiting = [];
  const longest = 3000; // of a press whose end nobody hears
  let release = 0;
  const released = () => { clearTimeout(release); release = setTimeout(() => { pressing = false; waiting.splice(0).forEach((tell) => tell()); }); };
  addEventListener('pointerdown', (e) => {
    if (e.button !== 0) return;
    pressing = true;
    clearTimeout(release);
    release = setTimeout(released, longest);
  }, true);
  for (const end of ['pointerup', 'pointercancel', 'contextmenu', 'dragend']) addEventListener(end, released, true);
  addEventListener('blur', released); // of the window, not of what is in it
  const held = (stream) => {
    const gates = new Map();
    const { addEventListener: add, removeEventListener: remove } = stream;
    stream.addEventListener = (type, handle, ...more) => {
      const gate = (e) => { if (pressing && e.type !== 'error') waiting.push(() => handle(e)); else handle(e); };
      gates.set(handle, gate);
      add.call(stream, type, gate, ...more);
    };
    stream.removeEventListener = (type, handle, ...more) => remove.call(stream, type, gates.get(handle) ?? handle, ...more);
    return stream;
  };

  // The stream of the page. After a break it goes on behind the newest line.
  let source = null;
  const open = (address) => {
    const url = new URL(address, location.href);
    const newest = $('#events li[data-seq]')?.dataset.seq;
    if (newest !== undefined) url.searchParams.set('after', String(Number(newest) + 1));
    source = held(new EventSource(url));
    return source;
  };
  let lost = 0;
  document.addEventListener('htmx:sseOpen', () => { clearTimeout(lost); $('#offline').hidden = true; });
  document.addEventListener('htmx:sseError', () => {
    clearTimeout(lost);
    if (document.hidden && !notifying()) return;
    lost = setTimeout(async () => {
      $('#offline').hidden = false;
      const answer = await fetch('/ui/session').catch(() => null);
      if (answer?.status === 401) { $('#offline').hidden = true; signedOut(); }
    }, 2500);
  });
  // A browser has few connections to a host, so pages out of sight give theirs back.
  let away = 0;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(away);
    if (document.hidden && !notifying()) away = setTimeout(() => source?.close(), 20000);
    if (!document.hidden && source?.readyState === EventSource.CLOSED) source.dispatchEvent(new Event('error'));
  });

  // Lines of one kind in a row, such as stored batches of a stream, are one line that opens.
  const folding = 3; // as many are worth it
  const number = new Intl.NumberFormat('en');
  const join = (lines) => {
    const told = lines.filter((x) => x.dataset.fold);
    const total = (name, one) => told.reduce((sum, x) => sum + Number(x.dataset[name] ?? one), 0);
    const [records, times] = [total('records', 0), total('times', 1)];
    const shown = (n) => number.format(n).replaceAll(',', '\u202f');
    let group = lines.find((x) => x.matches('.fold'));
    const rows = lines.flatMap((x) => (x.matches('.fold') ? all(':scope > details > ol > li', x) : [x]));
    if (!group) {
      group = document.createElement('li');
      group.className = lines[0].className;
      group.classList.add('fold');
      group.dataset.fold = lines[0].dataset.fold;
      const details = document.createElement('details');
      const list = document.createElement('ol');
      list.className = 'events';
      list.reversed = true;
      details.append(document.createElement('summary'), list);
      group.append(details);
    }
    lines[0].before(group);
    if (told[0] !== group) $(':scope > details > summary', group).replaceWith($('summary', told[0]).cloneNode(true)); // the newest speaks
    const summary = $(':scope > details > summary', group);
    if (records) {
      $('.detail', summary).textContent = `${shown(records)} records in ${shown(times)} batches`;
      group.dataset.records = String(records);
    } else {
      const mark = $('.times', summary) ?? document.createElement('span');
      mark.className = 'times';
      mark.textContent = ` × ${shown(times)}`;
      $('.what', summary).append(mark);
    }
    group.dataset.times = String(times);
    $(':scope > details > ol', group).replaceChildren(...rows);
    lines.filter((x) => x !== group).forEach((x) => { if (!rows.includes(x)) x.remove(); });
  };
  const fold = () => {
    let row = []; // begins and ends with lines of one kind; hidden ones between them go along
    let between = [];
    const end = () => {
      const size = row.reduce((n, x) => n + (x.matches('.fold') ? folding : Number(Boolean(x.dataset.fold))), 0);
      if (row.length > 1 && size >= folding) join(row);
      row = [];
      between = [];
    };
    for (const line of all('#events > li')) {
      if (line.matches('.inner')) {
        if (row.length) between.push(line);
        continue;
      }
      if (!line.dataset.fold || row.length && row[0].dataset.fold !== line.dataset.fold) end();
      if (!line.dataset.fold) continue;
      row.push(...between, line);
      between = [];
    }
    end();
  };

  // The list of events stays short enough to scroll.
  const most = 500;
  const trim = () => {
    const lines = all('#events li[data-seq]');
    if (lines.length <= most) return;
    lines.slice(most).forEach((x) => x.remove());
    all('#events > .fold').forEach((x) => { if (!$('li', x)) x.remove(); });
    const older = $('[data-older]');
    if (older) older.hidden = false;
  };

  // Telling the owner.
  const notifying = () => kept('sluice-notify') === 'on' && window.Notification?.permission === 'granted';
  const title = document.title;
  let newest = null;
  const counted = () => {
    const badge = $('#badge [data-needs]');
    if (!badge) return;
    const n = Number(badge.dataset.needs);
    document.title = n ? `(${n}) ${title}` : title;
    const fresh = badge.dataset.newest && newest !== null && badge.dataset.newest !== newest;
    newest = badge.dataset.newest;
    if (!fresh) return;
    const text = n === 1 ? 'One thing is waiting for you.' : `${n} things are waiting for you.`;
    say(text);
    if (notifying() && document.hidden) {
      const note = new Notification('Sluice needs you', { body: text, tag: 'sluice' });
      note.onclick = () => { window.focus(); location.assign('/ui/inbox'); };
    }
  };
  const showNotify = () => all('[data-notify]').forEach((b) => {
    b.hidden = !window.Notification;
    b.setAttribute('aria-pressed', String(notifying()));
    b.textContent = notifying() ? 'Stop telling me' : 'Tell me when something needs me';
    const state = $('[data-notify-state]');
    if (state) state.textContent = window.Notification?.permission === 'denied' ? 'The browser does not allow it for this page.' : notifying() ? 'On in this browser.' : '';
  });
  const toggleNotify = async () => {
    if (notifying()) keep('sluice-notify', 'off');
    else if (await Notification.requestPermission() === 'granted') keep('sluice-notify', 'on');
    else say('The browser does not allow notifications for this page.', true);
    showNotify();
  };

  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  };
  const switchTheme = () => {
    const theme = dark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = theme;
    keep('sluice-theme', theme);
    document.dispatchEvent(new Event('sluice:theme'));
  };
  const signOut = async () => {
    await fetch('/ui/session', { method: 'DELETE', headers: { 'X-Sluice-CSRF': csrf() } }).catch(() => null);
    try { sessionStorage.clear(); } catch { /* nothing was kept */ }
    location.assign('/ui/login');
  };

  document.addEventListener('click', (e) => {
    const on = (selector) => e.target.closest?.(selector);
    if (on('[data-theme-switch]')) switchTheme();
    else if (on('[data-sign-out]')) signOut();
    else if (on('[data-notify]')) toggleNotify();
    else if (on('[data-letters]')) {
      const field = $('input', on('label,.field'));
      field.inputMode = 'text';
      field.focus();
      on('[data-letters]').hidden = true;
    } else if (on('[data-copy-button]')) {
      const field = $('[data-copy]', on('.once'));
      field.select();
      navigator.clipboard?.writeText(field.value).then(() => say('Copied.'), () => null);
    }
  });
  // A record beside its list; a modified click opens its page in a tab, as for any link.
  document.addEventListener('click', (e) => {
    const link = e.target.closest?.('[data-drawer]');
    const drawer = $('#drawer');
    if (!link || !drawer?.showModal || !window.htmx || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
    e.preventDefault();
    htmx.ajax('GET', link.dataset.drawer, { target: '#drawer' }).then(() => { if (!drawer.open) drawer.showModal(); });
  });
  // A folder of the host's machine, for the field beside the button.
  let field = null;
  document.addEventListener('click', (e) => {
    const dialog = $('#folders');
    const [choose, take] = [e.target.closest?.('[data-folder]'), e.target.closest?.('[data-folder-take]')];
    if (choose && dialog && window.htmx) {
      field = all('input', choose.form).find((x) => x.name === choose.dataset.folder);
      htmx.ajax('GET', `/ui/folders?at=${encodeURIComponent(field.value.trim())}`, { target: '#folders' }).then(() => { if (!dialog.open) dialog.showModal(); });
    } else if (take && field) {
      field.value = take.dataset.folderTake;
      dialog.close();
      field.focus();
    }
  });
  document.addEventListener('change', (e) => {
    const most = Number(e.target.dataset?.most);
    if (most) e.target.setCustomValidity(e.target.files[0]?.size > most ? `This file is larger than ${most / 1048576} MiB.` : '');
    if (e.target.matches?.('[data-inner]')) {
      $('.log').classList.toggle('all', e.target.checked);
      keep('sluice-inner', e.target.checked ? 'on' : 'off');
    }
  });

  // Where a login leads: the page that was asked for, if it is one of ours.
  const ours = (to) => {
    try {
      const url = new URL(to, location.origin);
      if (url.origin === location.origin && url.pathname.startsWith('/ui/') && url.pathname !== '/ui/login') return url.pathname + url.search + url.hash;
    } catch { /* no address */ }
    return '/ui/';
  };
  const nextAs = 'sluice-next';
  const back = () => {
    let to = null;
    try {
      to = sessionStorage.getItem(nextAs);
      sessionStorage.removeItem(nextAs);
    } catch { /* none is kept */ }
    return ours(to ?? '/ui/');
  };

  // Signing in: the token is in the fragment, which no server sees.
  const login = async (box) => {
    const next = new URL(location.href).searchParams.get('next');
    if (next) try { sessionStorage.setItem(nextAs, next); } catch { /* then it leads to the overview */ }
    const show = (name) => all('[data-login-wait],[data-login-none],[data-login-failed]', box).forEach((x) => { x.hidden = !x.matches(`[data-login-${name}]`); });
    const token = location.hash.slice(1);
    if (!token) {
      const answer = await fetch('/ui/session').catch(() => null);
      if (answer?.ok) location.replace(back());
      return;
    }
    history.replaceState(null, '', '/ui/login');
    show('wait');
    const answer = await fetch('/ui/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }) }).catch(() => null);
    if (answer?.ok) {
      channel?.postMessage('signed-in');
      location.replace(back());
    } else show('failed');
  };

  const drawn = (within) => {
    times(within);
    for (const input of all('[data-timezone]', within)) if (!input.value) input.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? '';
  };
  document.addEventListener('DOMContentLoaded', () => {
    const box = $('[data-login]');
    if (box) {
      login(box);
      addEventListener('hashchange', () => login(box)); // a link pasted into this very page
      channel?.addEventListener('message', () => location.replace(back())); // or opened in another tab
      return;
    }
    channel?.addEventListener('message', renew);
    drawn(document);
    restoreForms();
    fold();
    const current = $('.bar nav [aria-current]'); // in sight on a phone
    if (current) current.parentElement.scrollLeft = current.offsetLeft - 48;
    setInterval(() => times(document, 'time[data-ago]'), 20000); // the others stay as they are
    showNotify();
    counted();
    const inner = $('[data-inner]');
    if (inner && kept('sluice-inner') === 'on') { inner.checked = true; $('.log').classList.add('all'); }
    if (!window.htmx) return;
    defineExtension();
    htmx.createEventSource = open;
    htmx.onLoad((x) => { if (x !== document.body) drawn(x); }); // the page itself was drawn above
  });
  // What the reader opened stays open when its part of the page is drawn anew.
  let opened = [];
  document.addEventListener('htmx:sseBeforeMessage', (e) => { opened = all('details[id][open]', e.target).map((x) => x.id); });
  document.addEventListener('htmx:sseMessage', (e) => {
    for (const x of all('details[id]', e.target)) if (opened.includes(x.id)) x.open = true;
    if (e.target.id === 'badge') counted();
    if (e.target.id === 'events' || e.target.id === 'allevents') { fold(); trim(); }
  });
  document.addEventListener('htmx:afterSettle', (e) => { if (e.target.id === 'older' || e.target.id === 'events') fold(); });
})();
