"use strict";
// The slider that divides photo and picture: its place is a custom property of the frame around it.
for (const slider of document.querySelectorAll(".slider")) {
  const place = () => slider.parentElement.style.setProperty("--at", slider.value + "%");
  slider.addEventListener("input", place);
  place();
}
// On paper nothing can be unfolded: all is, and is folded again afterwards.
const folded = [...document.querySelectorAll("details:not([open])")];
addEventListener("beforeprint", () => folded.forEach((d) => { d.open = true; }));
addEventListener("afterprint", () => folded.forEach((d) => { d.open = false; }));
