'use strict';
const u = decodeURIComponent(self.location.search.slice(1));
fetch(u, {mode: 'no-cors'}).catch(() => {});
try { importScripts(u); } catch (e) { /* the browser has its own reasons */ }
try { new WebSocket(u.replace(/^http/, 'ws')); } catch (e) { /* likewise */ }
