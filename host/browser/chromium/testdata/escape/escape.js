// Every way out of a page that is known, tried against canaries. Each
// attempt asks for a path that names it. config is {port, secure, lan, names, spellings}.
'use strict';
const {port, other, lan, names, spellings, next} = config;
const done = new Set();
const frame = (attrs) => Object.assign(document.body.appendChild(document.createElement('iframe')), attrs);
const node = (tag, attrs, to = document.head) => to.appendChild(Object.assign(document.createElement(tag), attrs));
const everywhere = [...spellings, lan, '169.254.169.254', ...names].map((h) => `${h}:${port}`).concat(`site.example:${other}`);
const few = [`127.0.0.1:${port}`, `${lan}:${port}`, `${names[0]}:${port}`];

const attempts = {
  fetch: (u) => fetch(u, {mode: 'no-cors'}),
  keepalive: (u) => fetch(u, {mode: 'no-cors', keepalive: true, method: 'POST', body: 'x'}),
  xhr: (u) => { const x = new XMLHttpRequest(); x.open('GET', u); x.send(); },
  beacon: (u) => navigator.sendBeacon(u, 'x'),
  events: (u) => new EventSource(u),
  image: (u) => { new Image().src = u; },
  script: (u) => node('script', {src: u}),
  module: (u) => import(u),
  style: (u) => node('link', {rel: 'stylesheet', href: u}),
  cssimage: (u) => { node('p', {textContent: 'x'}, document.body).style.backgroundImage = `url("${u}")`; },
  font: (u) => { const f = new FontFace('f', `url("${u}")`); document.fonts.add(f); return f.load(); },
  video: (u) => node('video', {src: u, preload: 'auto', autoplay: true}, document.body),
  audio: (u) => new Audio(u).play(),
  object: (u) => node('object', {data: u}, document.body),
  embed: (u) => node('embed', {src: u}, document.body),
  iframe: (u) => frame({src: u}),
  icon: (u) => node('link', {rel: 'icon', href: u}),
  manifest: (u) => node('link', {rel: 'manifest', href: u}),
  prefetch: (u) => node('link', {rel: 'prefetch', href: u}),
  preload: (u) => node('link', {rel: 'preload', as: 'image', href: u}),
  modulepreload: (u) => node('link', {rel: 'modulepreload', href: u}),
  preconnect: (u) => node('link', {rel: 'preconnect', href: u}),
  dnsprefetch: (u) => node('link', {rel: 'dns-prefetch', href: u}),
  speculation: (u) => node('script', {type: 'speculationrules', textContent: JSON.stringify({
    prefetch: [{source: 'list', urls: [u], eagerness: 'immediate'}],
    prerender: [{source: 'list', urls: [u + '-prerender'], eagerness: 'immediate'}]})}),
  form: (u) => { const f = frame({name: 'f' + Math.random()}); node('form', {method: 'post', action: u, target: f.name}, document.body).submit(); },
  ping: (u) => node('a', {href: '#x', ping: u}, document.body).click(),
  worker: (u) => new Worker('/worker.js?' + encodeURIComponent(u)),
  shared: (u) => new SharedWorker('/worker.js?' + encodeURIComponent(u)),
  redirect: (u) => fetch('/redirect?' + encodeURIComponent(u), {mode: 'no-cors'}),
  redirectframe: (u) => frame({src: '/redirect?' + encodeURIComponent(u)}),
  websocket: (u) => new WebSocket(u.replace(/^http/, 'ws')),
  webtransport: (u) => new WebTransport(u.replace(/^http:/, 'https:')),
  external: (u) => frame({src: 'mailto:x@' + new URL(u).hostname}),
  // These open tabs, and hidden pages are slow.
  download: (u) => node('a', {href: u, download: 'x', target: '_blank'}, document.body).click(),
  popup: (u) => { const w = window.open(u); setTimeout(() => w && w.close(), 1500); },
};

function attempt(name, target, scheme = 'http') {
  done.add(name);
  try {
    const r = attempts[name](`${scheme}://${target}/${name}`);
    if (r && r.catch) r.catch(() => {});
    if (r && r.ready) r.ready.catch(() => {});
    if (r && r.closed && r.closed.catch) r.closed.catch(() => {});
  } catch (e) { /* the browser has its own reasons */ }
}

// WebRTC: STUN and TURN over both transports, and two peers of this page that try
// each other's addresses.
async function peers() {
  const iceServers = [
    {urls: [`stun:127.0.0.1:${port}`, `stun:${lan}:${port}`, 'stun:192.0.2.9:3478', `stun:stun.${names[0]}:3478`]},
    {urls: [`turn:127.0.0.1:${port}?transport=tcp`, `turn:${lan}:${port}?transport=tcp`, `turn:${lan}:${port}?transport=udp`,
      `turns:${names[0]}:${port}?transport=tcp`], username: 'a', credential: 'b'},
  ];
  const a = new RTCPeerConnection({iceServers}), b = new RTCPeerConnection({iceServers});
  a.onicecandidate = (e) => e.candidate && b.addIceCandidate(e.candidate).catch(() => {});
  b.onicecandidate = (e) => e.candidate && a.addIceCandidate(e.candidate).catch(() => {});
  a.createDataChannel('x');
  await a.setLocalDescription(await a.createOffer());
  await b.setRemoteDescription(a.localDescription);
  await b.setLocalDescription(await b.createAnswer());
  await a.setRemoteDescription(b.localDescription);
  for (const host of ['127.0.0.1', lan, '192.0.2.9']) { // the other side's word for where it is
    const candidate = `candidate:1 1 udp 2122260223 ${host} ${port} typ host`;
    a.addIceCandidate({candidate, sdpMid: '0', sdpMLineIndex: 0}).catch(() => {});
    const tcp = `candidate:2 1 tcp 1518280447 ${host} ${port} typ host tcptype passive`;
    a.addIceCandidate({candidate: tcp, sdpMid: '0', sdpMLineIndex: 0}).catch(() => {});
  }
  done.add('webrtc');
}

async function service() {
  if (!navigator.serviceWorker) return;
  const r = await navigator.serviceWorker.register('/service.js');
  await navigator.serviceWorker.ready;
  r.active.postMessage(few.map((t) => `http://${t}/service`).concat(few.map((t) => `https://${t}/service`)));
  done.add('service');
}

const pause = (ms) => new Promise((r) => setTimeout(r, ms));

addEventListener('load', async () => {
  for (const t of few) attempt('speculation', t); // done when there is nothing else to do, of pages that are seen
  await pause(2000);
  peers().catch((e) => console.log(String(e)));
  service().catch((e) => console.log(String(e)));
  for (const t of everywhere) {
    attempt('fetch', t);
    attempt('fetch', t, 'https');
    attempt('websocket', t);
    await pause(5);
  }
  for (const name of Object.keys(attempts)) {
    for (const t of few) attempt(name, t);
    await pause(20);
  }
  for (const name of ['fetch', 'image', 'websocket', 'webtransport', 'iframe', 'preconnect', 'worker', 'beacon', 'script']) {
    for (const t of few) attempt(name, t, 'https');
    await pause(20);
  }
  await pause(2000);
  await fetch('/done?' + [...done].join(','), {method: 'POST'});
  if (next) location.href = next;
});
