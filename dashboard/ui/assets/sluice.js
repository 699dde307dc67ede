// What the pages do by themselves. It makes no elements from text: what others
// wrote is put in place by the templates, or through textContent.
'use strict';

(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const csrf = () => $('meta[name="sluice-csrf"]')?.content ?? '';

  // Answers of our own origin are the only HTML that is ever parsed (S100).
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

  const say = (text, bad) => {
    const box = $('#said');
    if (!box || !text) return;
    const line = document.createElement('p');
    line.textContent = text;
    if (bad) line.className = 'bad';
    box.append(line);
    setTimeout(() => line.remove(), bad ? 12000 : 6000);
  };

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
    if (d.elt.matches('[data-older]')) d.parameters.before = all('#events > li').at(-1)?.dataset.seq ?? '0';
  });
  document.addEventListener('sluice:said', (e) => say(e.detail.value));

  const formOf = (elt) => elt.closest('form');
  const clearErrors = (form) => {
    all('[data-wrong]', form).forEach((x) => { x.textContent = ''; });
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

  // A refusal names its fields (A46).
  const fieldsOf = (details) => details?.fields ?? (details?.field ? [{ path: details.field, rule: 'refused' }] : []);
  const refused = (xhr, elt) => {
    if (xhr.status === 401) { location.assign('/ui/login'); return; }
    let problem = {};
    try { problem = JSON.parse(xhr.responseText); } catch { /* said below */ }
    const form = formOf(elt);
    let first = null;
    for (const f of fieldsOf(problem.details)) {
      const place = form && all('[data-wrong]', form).find((x) => x.dataset.wrong === f.path);
      if (!place) continue;
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
    say(problem.message || 'The host did not answer as expected.', true);
  };
  // The form may be gone when the answer comes: then no event of it gets here.
  document.addEventListener('htmx:beforeSend', (e) => {
    const { xhr, elt } = e.detail;
    xhr.addEventListener('load', () => { if (xhr.status >= 400) refused(xhr, elt); });
  });
  document.addEventListener('htmx:sendError', () => say('Sluice cannot be reached.', true));

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

  // The stream of the page. After a break it goes on behind the newest line.
  let source = null;
  const open = (address) => {
    const url = new URL(address, location.href);
    const newest = $('#events > li')?.dataset.seq;
    if (newest !== undefined) url.searchParams.set('after', String(Number(newest) + 1));
    source = new EventSource(url);
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
      if (answer?.status === 401) location.assign('/ui/login');
    }, 2500);
  });
  // A browser has few connections to a host, so pages out of sight give theirs back.
  let away = 0;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(away);
    if (document.hidden && !notifying()) away = setTimeout(() => source?.close(), 20000);
    if (!document.hidden && source?.readyState === EventSource.CLOSED) source.dispatchEvent(new Event('error'));
  });

  // The list of events stays short enough to scroll.
  const most = 500;
  const trim = () => {
    const lines = all('#events > li');
    if (lines.length <= most) return;
    lines.slice(most).forEach((x) => x.remove());
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
    location.assign('/ui/login');
  };

  document.addEventListener('click', (e) => {
    const on = (selector) => e.target.closest?.(selector);
    if (on('[data-theme-switch]')) switchTheme();
    else if (on('[data-sign-out]')) signOut();
    else if (on('[data-notify]')) toggleNotify();
    else if (on('[data-copy-button]')) {
      const field = $('[data-copy]', on('.once'));
      field.select();
      navigator.clipboard?.writeText(field.value).then(() => say('Copied.'), () => null);
    }
  });
  document.addEventListener('change', (e) => {
    if (e.target.matches?.('[data-inner]')) {
      $('.log').classList.toggle('all', e.target.checked);
      keep('sluice-inner', e.target.checked ? 'on' : 'off');
    }
  });

  // Signing in: the token is in the fragment, which no server sees (A31).
  const login = async (box) => {
    const show = (name) => all('[data-login-wait],[data-login-none],[data-login-failed]', box).forEach((x) => { x.hidden = !x.matches(`[data-login-${name}]`); });
    const token = location.hash.slice(1);
    if (!token) {
      const answer = await fetch('/ui/session').catch(() => null);
      if (answer?.ok) location.replace('/ui/');
      return;
    }
    history.replaceState(null, '', '/ui/login');
    show('wait');
    const answer = await fetch('/ui/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }) }).catch(() => null);
    if (answer?.ok) location.replace('/ui/');
    else show('failed');
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
      return;
    }
    drawn(document);
    const here = $('.bar nav [aria-current]'); // in sight on a phone
    if (here) here.parentElement.scrollLeft = here.offsetLeft - 48;
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
  document.addEventListener('htmx:sseMessage', (e) => {
    if (e.target.id === 'badge') counted();
    if (e.target.id === 'events') trim();
  });
})();
