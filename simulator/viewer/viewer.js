"use strict";
(() => {
  const main = document.querySelector("main");

  // ---- a run that grows

  if (main.dataset.events) {
    const source = new EventSource(main.dataset.events);
    let seen = main.dataset.seen; // the run may grow between the page and the first event
    source.addEventListener("grown", (event) => {
      if (event.data !== seen) document.body.dispatchEvent(new Event("grown"));
      seen = event.data;
    });
    window.addEventListener("pagehide", () => source.close());
  }

  // ---- the list of runs

  const table = document.getElementById("runs");
  if (table) {
    const body = table.tBodies[0];
    const key = (row, column) => {
      const cell = row.cells[column];
      const time = cell.querySelector("time");
      const text = time ? time.dateTime : cell.textContent.trim();
      return cell.classList.contains("n") ? Number(text) : text.toLowerCase();
    };
    table.querySelectorAll("thead button").forEach((button) => {
      button.addEventListener("click", () => {
        const head = button.closest("th");
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const column = head.cellIndex;
        const order = (one, other) => (key(one, column) < key(other, column) ? -1 : key(one, column) > key(other, column) ? 1 : 0);
        body.append(...[...body.rows].sort((one, other) => (down ? order(other, one) : order(one, other))));
      });
    });
    document.getElementById("filter").addEventListener("input", (event) => {
      const wanted = event.target.value.trim().toLowerCase().split(/\s+/);
      for (const row of body.rows) row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word));
    });
  }

  // ---- a conversation

  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");

  function reach(element, focused = element) {
    element.scrollIntoView({ block: "center", behavior: reduced.matches ? "auto" : "smooth" });
    focused.focus({ preventScroll: true });
  }

  function clear() {
    for (const old of document.querySelectorAll(".cited, .open")) old.classList.remove("cited", "open");
  }

  function cite(finding) {
    clear();
    finding.classList.add("open");
    const numbers = finding.dataset.finding;
    const lane = finding.closest(".lane");
    for (const mark of lane.querySelectorAll("mark")) {
      if (mark.dataset.findings.split(" ").includes(numbers)) mark.classList.add("open");
    }
    const target = finding.dataset.cites && document.getElementById(finding.dataset.cites);
    if (!target) {
      reach(finding, finding.querySelector("button"));
      return;
    }
    target.closest("details").open = true;
    target.classList.add("cited");
    target.closest(".passage").classList.add("cited");
    reach(target, target.closest(".passage"));
  }

  function open(mark) {
    const number = mark.dataset.findings.split(" ")[0];
    cite(mark.closest(".lane").querySelector(`.finding[data-finding="${number}"]`));
  }

  document.addEventListener("click", (event) => {
    const mark = event.target.closest("mark[data-findings]");
    if (mark) open(mark);
    const button = event.target.closest(".cite");
    if (button) cite(button.closest(".finding"));
  });

  function current() {
    const focused = document.activeElement && document.activeElement.closest(".turn");
    if (focused) return Number(focused.dataset.turn);
    const named = /^#turn-(\d+)$/.exec(location.hash);
    return named ? Number(named[1]) : -1;
  }

  const region = document.getElementById("desk-said") || document.getElementById("said");
  const ends = { "#end": "No further flagged turn.", "#start": "No flagged turn before this one." };

  function move(forward) {
    const flagged = [...document.querySelectorAll(".turn[data-flagged]")];
    const here = current();
    const next = forward
      ? flagged.find((turn) => Number(turn.dataset.turn) > here)
      : flagged.reverse().find((turn) => Number(turn.dataset.turn) < here);
    if (next) {
      clear();
      if (Object.values(ends).includes(region.textContent)) region.textContent = "";
      history.replaceState(null, "", `#${next.id}`);
      reach(next);
      return;
    }
    if (!main.dataset.chat) { // conversations side by side: the next ones are on no page yet
      region.textContent = ends[forward ? "#end" : "#start"];
      return;
    }
    const last = Math.max(0, document.querySelectorAll(".turn").length - 1);
    location.assign(`${main.dataset.chat}/${forward ? "next" : "previous"}/${forward ? Math.max(here, last) : 0}`);
  }

  if (document.getElementById("turns")) {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
      if (event.key === "j" || event.key === "k") move(event.key === "j");
      else if (event.key === "Escape") clear();
      else if ((event.key === "Enter" || event.key === " ") && event.target.matches("mark[data-findings]")) {
        event.preventDefault();
        open(event.target);
      }
    });
    const { hash } = location;
    const first = hash === "#start" && document.querySelector(".turn");
    const target = first || (hash && document.getElementById(hash.slice(1)));
    if (target) reach(target);
    if (first) history.replaceState(null, "", `#${first.id}`); // a reload says it no more
    if (ends[hash]) region.textContent = ends[hash];
  }
})();
