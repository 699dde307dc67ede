// The panel is built anew every 700 ms, as frameworks do; only what was chosen
// stays. The list box is made of divs. Rows come ten at a time as one scrolls.
"use strict";
const choice = { months: 3, currency: "CHF", open: false };
const status = document.querySelector("[data-testid=state]");
let preparing = false;

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

function panel() {
  const slider = element("input", { type: "range", id: "months", min: "1", max: "24", step: "1" });
  slider.value = choice.months;
  slider.addEventListener("input", () => { choice.months = Number(slider.value); output.textContent = slider.value; });
  const output = element("output", { for: "months" }, String(choice.months));

  const box = element("div", { class: "box", role: "combobox", tabindex: "0", "aria-label": "Currency", "aria-haspopup": "listbox", "aria-expanded": String(choice.open) }, choice.currency);
  const list = element("div", { class: "list" }, box);
  box.addEventListener("click", () => { choice.open = !choice.open; build(); });
  if (choice.open) {
    list.append(element("ul", { role: "listbox", "aria-label": "Currencies" }, ...["CHF", "EUR", "USD"].map((name) => {
      const option = element("li", { role: "option", "aria-selected": String(name === choice.currency) }, name);
      option.addEventListener("click", () => { choice.currency = name; choice.open = false; build(); });
      return option;
    })));
  }
  const order = element("button", { type: "button", id: "prepare" }, preparing ? "Preparing…" : "Prepare statement");
  order.disabled = preparing;
  order.addEventListener("click", prepare);
  return [element("label", { for: "months" }, "Months"), slider, " ", output, element("p", {}, "Currency"), list, element("p", {}, order)];
}

function build() { document.getElementById("panel").replaceChildren(...panel()); }

async function prepare() {
  preparing = true;
  build();
  status.textContent = "Preparing";
  const answer = await fetch("/statement/prepare", { method: "POST", body: new URLSearchParams({ months: choice.months, currency: choice.currency }) });
  setTimeout(() => {
    preparing = false;
    build();
    status.textContent = answer.ok ? "Statement ready" : "That did not work";
    if (answer.ok) { document.getElementById("result").hidden = false; page(0); }
  }, 500);
}

const scroller = document.querySelector(".scroller");
const more = document.querySelector("[data-testid=more]");
const next = document.querySelector("[data-testid=next]");
let current = 0, loaded = 0, loading = false, ended = false;

function page(n) {
  current = n; loaded = 0; ended = false;
  scroller.querySelector("tbody").replaceChildren();
  scroller.scrollTop = 0;
  more.textContent = "More below…";
  next.disabled = true;
  document.querySelector("[data-testid=page]").textContent = "Page " + (n + 1);
  load();
}

async function load() {
  if (loading || ended) return;
  loading = true;
  const answer = await (await fetch("/statement/rows?page=" + current + "&from=" + loaded)).json();
  setTimeout(() => {
    for (const row of answer.rows) {
      scroller.querySelector("tbody").append(element("tr", {}, ...[row.id, row.date, row.text, row.amount].map((t) => element("td", {}, t))));
    }
    loaded += answer.rows.length;
    ended = answer.end;
    loading = false;
    if (ended) { more.textContent = "All rows"; next.disabled = answer.last; }
  }, 120);
}

scroller.addEventListener("scroll", () => {
  if (scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 40) load();
});
next.addEventListener("click", () => page(current + 1));
build();
setInterval(() => { if (!choice.open && document.activeElement.id !== "months") build(); }, 700);
