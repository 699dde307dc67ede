// The form comes late, the notice fades, and an advertisement pushes the form down
// a moment after it came.
"use strict";
const cover = document.querySelector(".cover");
document.getElementById("accept").addEventListener("click", () => {
  cover.classList.add("leaving");
  setTimeout(() => cover.remove(), 300);
});
setTimeout(() => {
  document.getElementById("place").replaceChildren(document.getElementById("form").content.cloneNode(true));
  setTimeout(() => {
    const advert = document.createElement("p");
    advert.className = "advert";
    advert.textContent = "Have you thought about a loan?";
    document.querySelector("main").prepend(advert);
  }, 400);
}, 300);
