// Ctrl-K finds, ? shows the keys. Both are dialogs, which hold the focus and give it back.
'use strict';

(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

  const find = () => {
    const dialog = $('#palette');
    if (!dialog || dialog.open) return;
    dialog.showModal();
    const words = $('#palette-words');
    words.select();
    words.dispatchEvent(new Event('sluice:open'));
  };
  const keys = () => $('#shortcuts')?.showModal();

  // Where keys belong to what is typed, or to the owner's view of a browser.
  const typing = (at) => at.isContentEditable || at.closest?.('input, select, textarea');
  const elsewhere = (at) => at.closest?.('.view');

  document.addEventListener('keydown', (e) => {
    if (elsewhere(e.target) || e.altKey) return;
    if ((e.ctrlKey || e.metaKey) && !e.shiftKey && e.key.toLowerCase() === 'k') {
      e.preventDefault();
      if ($('#palette')?.open) $('#palette').close(); else if (!$('dialog[open]')) find();
    } else if (e.key === '?' && !e.ctrlKey && !e.metaKey && !typing(e.target) && !$('dialog[open]')) {
      e.preventDefault();
      keys();
    }
  });

  const move = (dialog, by) => {
    const stops = [$('#palette-words'), ...all('#palette-found a', dialog)];
    const at = stops.indexOf(document.activeElement);
    stops[(at + by + stops.length) % stops.length].focus();
  };
  document.addEventListener('DOMContentLoaded', () => {
    const dialog = $('#palette');
    if (!dialog) return;
    dialog.addEventListener('keydown', (e) => {
      if (e.isComposing || e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
      e.preventDefault();
      move(dialog, e.key === 'ArrowDown' ? 1 : -1);
    });
    $('[data-palette-form]').addEventListener('submit', (e) => {
      e.preventDefault();
      $('#palette-found a')?.click();
    });
    for (const d of all('dialog.palette')) {
      d.addEventListener('click', (e) => { if (e.target === d || e.target.closest('[data-palette-close]')) d.close(); });
    }
    for (const button of all('[data-palette]')) button.addEventListener('click', find);
  });
})();
