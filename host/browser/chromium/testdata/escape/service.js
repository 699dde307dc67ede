'use strict';
self.addEventListener('install', (e) => e.waitUntil(self.skipWaiting()));
self.addEventListener('activate', (e) => e.waitUntil(self.clients.claim()));
self.addEventListener('message', (e) => e.waitUntil(Promise.allSettled(e.data.map((u) => fetch(u, {mode: 'no-cors'})))));
