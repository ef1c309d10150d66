"use strict";
(() => {
  // Conversations side by side: which detectors are shown.

  const boxes = [...document.querySelectorAll("#detectors input")];
  if (!boxes.length) return;

  function show() {
    const on = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    for (const one of document.querySelectorAll("[data-detector]")) one.hidden = !on.has(one.dataset.detector);
    for (const mark of document.querySelectorAll("mark[data-all]")) {
      const pairs = mark.dataset.all.trim().split(" ").map((pair) => pair.split(":")).filter((pair) => on.has(pair[1]));
      mark.classList.remove("open", ...[0, 1, 2, 3, 4, 5].map((number) => `b${number}`));
      if (pairs.length) {
        mark.classList.add(`b${pairs[0][1] % 6}`);
        mark.dataset.findings = pairs.map((pair) => pair[0]).join(" ");
        mark.setAttribute("role", "button");
        mark.tabIndex = 0;
      } else {
        delete mark.dataset.findings;
        mark.removeAttribute("role");
        mark.removeAttribute("tabindex");
      }
    }
    for (const turn of document.querySelectorAll(".turn")) {
      turn.toggleAttribute("data-flagged", turn.dataset.flagging.split(" ").some((place) => on.has(place)));
    }
  }

  for (const box of boxes) box.addEventListener("change", show);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !/^[1-9]$/.test(event.key)) return;
    const box = boxes[Number(event.key) - 1];
    if (box) box.click();
  });
  show(); // the browser may have kept boxes of before
})();
