// The choice of light or dark, before anything is drawn.
'use strict';
try {
  const theme = localStorage.getItem('sluice-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* no storage: as the system has it */ }
