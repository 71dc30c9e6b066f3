"use strict";
// The slider that divides photo and picture: its place is a custom property of the frame around it.
for (const slider of document.querySelectorAll(".slider")) {
  const place = () => slider.parentElement.style.setProperty("--at", slider.value + "%");
  slider.addEventListener("input", place);
  place();
}
