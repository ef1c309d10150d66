"use strict";
(() => {
  const desk = document.getElementById("desk");
  if (!desk) return;
  const by = (id) => document.getElementById(id);
  const run = desk.dataset.run;
  const settling = "settling" in desk.dataset; // one decides what counts of several annotators' labels
  const said = by("desk-said");
  const name = by("desk-name");
  const kept = "hallulab-annotator";
  const given = name.dataset.annotator;
  if (given === "person") name.value = localStorage.getItem(kept) || "";
  let state = null; // the server's last answer about this conversation
  let chosen = null; // the selected words
  let working = Promise.resolve(); // keys are sent one after the other, in their order

  const make = (tag, text, fields = {}) => Object.assign(document.createElement(tag), { textContent: text, ...fields });
  const announce = (text) => { said.textContent = text; };
  const markOf = (turn, finding) => {
    const flag = turn.flags.find((one) => one.flag === finding.dataset.flag);
    return flag ? flag.mark : null; // a page that was loaded before a detector judged again has other flags
  };

  async function ask(path, body) {
    const headers = { "content-type": "application/json", "x-hallulab": "1" };
    const answer = await fetch(path, body && { method: "POST", headers, body: JSON.stringify({ ...body, annotator: name.value }) });
    const kind = answer.headers.get("content-type") || "";
    const found = kind.startsWith("application/json") ? await answer.json() : { error: await answer.text() };
    if (found.error) throw new Error(found.error);
    return found;
  }

  // ---- what the page shows

  function show(found) {
    state = found;
    for (const turn of state.turns) showTurn(turn);
    showNext(state.next);
    by("desk-guideline").textContent = state.guideline ? `guideline ${state.guideline}` : "no guideline";
  }

  function showNext(next) {
    const link = by("desk-next");
    link.hidden = !next.address;
    if (next.address) link.href = next.address;
    const what = settling ? `Settle next (${next.left} open ${next.left === 1 ? "conflict" : "conflicts"} left)` : `Label next (${next.left} drawn ${next.left === 1 ? "turn" : "turns"} left)`;
    link.textContent = next.address ? what : "";
    by("desk-draw").hidden = settling || Boolean(next.address);
  }

  function describe(turn) {
    const saved = turn.by ? `Settled by ${turn.by}` : "Saved";
    if (!turn.line) {
      const open = turn.flags.filter((flag) => !flag.mark).length;
      if (turn.missed.length || open < turn.flags.length) return `Not saved yet: ${open ? `${open} without a mark` : "press Enter"}`;
      return settling ? "Not settled" : "Not labelled";
    }
    if (turn.line.unknown) return `${saved}: cannot tell`;
    const number = turn.line.spans.length;
    return number ? `${saved}: ${number} ${number === 1 ? "hallucination" : "hallucinations"}` : `${saved}: clean`;
  }

  function showTurn(turn) {
    const article = by(`turn-${turn.turn}`);
    if (!article) return;
    article.toggleAttribute("data-labelled", Boolean(turn.line));
    const box = article.querySelector(".marking");
    const drawn = turn.drawn ? "Drawn to be labelled" : "Not drawn";
    const parts = [make("span", describe(turn), { className: turn.line ? "saved" : "" })];
    if (!settling) parts.push(make("span", drawn, { className: "hint" }));
    const takes = settling ? state.takes.slice(0, 9).map((who, at) => [String(at + 1), `Take ${who}’s`]) : [];
    const keys = [["a", "Add selected words"], ["c", "Clean"], ["u", "Cannot tell"], ["Enter", "Done"], ["z", "Undo"]];
    for (const [key, text] of [...takes, ...keys.filter(([key]) => !settling || key !== "u")]) {
      const button = make("button", `${text} (${key})`, { type: "button" });
      button.addEventListener("click", () => press(key, article));
      parts.push(button);
    }
    const list = make("ul", "");
    for (const span of turn.line ? turn.line.spans : []) {
      list.append(make("li", `“${span.quote}”, severity ${span.severity}${span.reason ? `: ${span.reason}` : ""}`));
    }
    if (!turn.line) for (const text of turn.missed) list.append(make("li", `added: “${text}”`));
    if (list.children.length) parts.push(list);
    box.replaceChildren(...parts);
    for (const finding of article.querySelectorAll(".finding")) showFinding(article, turn, finding);
  }

  function showFinding(article, turn, finding) {
    let box = finding.querySelector(".verdict");
    if (!box) {
      box = make("span", "", { className: "verdict" });
      for (const kind of ["right", "wrong"]) {
        const button = make("button", kind, { type: "button" });
        button.dataset.kind = kind;
        button.addEventListener("click", () => press(kind === "right" ? "y" : "n", article, finding));
        box.append(button);
      }
      finding.querySelector("p").append(" ", box);
    }
    const mark = markOf(turn, finding);
    for (const button of box.children) button.setAttribute("aria-pressed", String(mark === button.dataset.kind));
  }

  // ---- numbers

  const two = (value) => (value === null ? "–" : value > 999 ? "over 999" : value.toFixed(2));
  const range = (pair) => (pair ? `${two(pair[0])} to ${two(pair[1])}` : "–");

  async function showNumbers() {
    let found;
    try {
      const detector = by("desk-detector").value;
      found = await ask(`${run}/numbers${detector ? `?detector=${encodeURIComponent(detector)}` : ""}`);
    } catch (error) {
      by("desk-numbers").textContent = error.message;
      return;
    }
    const select = by("desk-detector");
    select.replaceChildren(...found.detectors.map((one) => make("option", one, { value: one, selected: one === found.detector })));
    by("desk-rows").replaceChildren(...found.rows.map((row) => {
      const line = make("tr", "");
      line.append(make("th", row.chatbot ?? "all chatbots", { scope: "row" }));
      const cells = [`${row.annotated} of ${row.turns}`, two(row.hpt_1), two(row.corrected_hpt_1), range(row.corrected_hpt_1_ci95), range(row.all_labelled_ci95)];
      line.append(...cells.map((text) => make("td", text, { className: "n" })));
      return line;
    }));
    const all = found.rows.find((row) => row.chatbot === null);
    const now = all.all_labelled_ci95 || all.corrected_hpt_1_ci95;
    const kind = all.all_labelled_ci95 ? "run" : "personas"; // the two are not compared
    const first = `hallulab-first-${run}-${found.detector}-${kind}`;
    if (now && !sessionStorage.getItem(first)) sessionStorage.setItem(first, JSON.stringify(now));
    const before = JSON.parse(sessionStorage.getItem(first) || "null");
    const was = now && before && range(before) !== range(now) ? `; it was ${range(before)}` : "";
    const what = all.all_labelled_ci95 ? "all labels of this run would give" : "95%";
    by("desk-numbers").textContent =
      `HPT-1 by ${found.detector} ${two(all.hpt_1)}, corrected ${two(all.corrected_hpt_1)}` +
      `${now ? ` (${what} ${range(now)}${was})` : ""}; ${all.annotated} of ${all.turns} turns labelled`;
    by("desk-why").textContent = [all.not_corrected, all.no_interval && `no interval: ${all.no_interval}`].filter(Boolean).join("; ");
  }

  // ---- keys

  function current() {
    const focused = document.activeElement && document.activeElement.closest(".turn");
    const named = /^#turn-\d+$/.test(location.hash) && by(location.hash.slice(1));
    const only = document.querySelectorAll(".turn").length === 1 && document.querySelector(".turn");
    return focused || named || only || null;
  }

  function findFlag(article, turn) {
    const active = document.activeElement;
    if (active && article.contains(active)) {
      if (active.closest(".finding")) return active.closest(".finding");
      if (active.matches("mark[data-findings]")) {
        const numbers = active.dataset.findings.split(" ");
        const all = [...active.closest(".lane").querySelectorAll(".finding")].filter((one) => numbers.includes(one.dataset.finding));
        return all.find((one) => !markOf(turn, one)) || all[0];
      }
    }
    const all = [...article.querySelectorAll(".finding")];
    return article.querySelector(".finding.open") || all.find((one) => !markOf(turn, one)) || null;
  }

  function place(reply, range) {
    const until = document.createRange();
    until.selectNodeContents(reply);
    until.setEnd(range.startContainer, range.startOffset);
    const start = [...until.toString()].length; // characters, not the halves that scripts count
    const text = range.toString();
    return { start, end: start + [...text].length, text };
  }

  function readSelection() {
    const selection = document.getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return;
    const range = selection.getRangeAt(0);
    const inside = (node) => (node.nodeType === 1 ? node : node.parentElement).closest(".reply");
    const reply = inside(range.startContainer);
    if (!reply || reply !== inside(range.endContainer)) return;
    chosen = { turn: reply.closest(".turn"), ...place(reply, range) };
  }

  document.addEventListener("selectionchange", readSelection); // a click on a button may end the selection

  function openForm(article) {
    if (!chosen || (article && chosen.turn !== article)) {
      announce("Select some words of this reply first.");
      return;
    }
    by("desk-quote").textContent = chosen.text;
    by("desk-missed").hidden = false;
    by("desk-severity").focus();
  }

  function closeForm(back) {
    by("desk-missed").hidden = true;
    by("desk-reason").value = "";
    by("desk-severity").value = "3";
    if (back) back.focus({ preventScroll: true });
  }

  by("desk-missed").addEventListener("submit", (event) => {
    event.preventDefault();
    const { turn, start, end, text } = chosen;
    const body = { kind: "missed", start, end, text, severity: Number(by("desk-severity").value), reason: by("desk-reason").value };
    chosen = null;
    closeForm(turn);
    send(turn, () => body);
  });
  by("desk-cancel").addEventListener("click", () => closeForm(chosen && chosen.turn));

  /** Send what `say` returns when all earlier keys are answered: which flag is unmarked depends on them. */
  function send(article, say) {
    working = working.then(async () => {
      try {
        const turn = Number(article.dataset.turn);
        if (!state) await load();
        if (!state) return; // what load said still stands
        const body = say(state.turns.find((one) => one.turn === turn));
        if (!body) return;
        const found = await ask(`${run}/marks`, { conversation: desk.dataset.conversation, turn, ...body, ...(settling ? { adjudicate: true } : {}) });
        if (found.undone !== undefined) {
          const where = found.turn === null ? "of a conversation that does not count any more" : `turn ${found.turn + 1}`;
          announce(found.undone ? `Taken back: ${found.undone}, ${where}` : "There is nothing to take back.");
          if (new URL(found.at, location.href).pathname !== location.pathname) {
            location.assign(found.at);
            return;
          }
        }
        show(found);
        const now = state.turns.find((one) => one.turn === turn);
        if (found.undone === undefined) announce(`Turn ${turn + 1}: ${describe(now)}`);
        await showNumbers();
      } catch (error) {
        announce(`Not saved: ${error.message}`);
      }
    });
  }

  function press(key, article, finding) {
    if (key === "z" && !article) article = document.querySelector(".turn"); // whichever turn it was
    if (!article) {
      announce("Go to a turn first: j, k, l, or a click into it.");
      return;
    }
    const kinds = { c: "clean", u: "unknown", Enter: "done", z: "undo" };
    if (settling && /^[ynu]$/.test(key)) announce("Here, take somebody’s labels, or mark the turn yourself.");
    else if (settling && /^[1-9]$/.test(key)) {
      send(article, () => {
        const takes = state.takes[Number(key) - 1];
        if (!takes) announce(`There is no annotator ${key}.`);
        return takes ? { kind: "take", takes } : null;
      });
    } else if (key === "a") openForm(article);
    else if (kinds[key]) send(article, () => ({ kind: kinds[key] }));
    else {
      const focused = finding || null;
      send(article, (turn) => {
        const about = focused || findFlag(article, turn);
        if (!about) {
          announce("No flag of this turn is without a mark.");
          return null;
        }
        about.classList.remove("open");
        const fields = { flag: about.dataset.flag };
        if (key === "n") return { kind: "wrong", ...fields };
        return { kind: "right", ...fields, ...(key === "y" ? {} : { severity: Number(key) }) };
      });
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && !by("desk-missed").hidden) closeForm(chosen && chosen.turn);
    if (typing) return;
    if (event.key === "l") {
      if (!by("desk-next").hidden) go(by("desk-next").href);
      else announce(settling ? "No other conflict is open." : "No drawn turn is left. Draw some.");
    } else if (event.key === "Enter") {
      if (event.target.matches("body, .turn")) press("Enter", current());
    } else if ((settling ? /^[ynacuz1-9]$/ : /^[ynacuz1-5]$/).test(event.key)) {
      event.preventDefault();
      if (event.key === "a") readSelection(); // the event of a selection comes after it
      press(event.key, event.key === "a" && chosen ? chosen.turn : current());
    }
  });

  /** Go to a turn, also of this page: then the browser loads nothing and does not focus it. */
  function go(address) {
    working.then(() => {
      chosen = null;
      const target = new URL(by("desk-next").href || address, location.href);
      if (target.pathname !== location.pathname) {
        location.assign(target);
        return;
      }
      history.replaceState(null, "", target.hash);
      by(target.hash.slice(1)).scrollIntoView({ block: "center" });
      by(target.hash.slice(1)).focus({ preventScroll: true });
    });
  }

  by("desk-next").addEventListener("click", (event) => {
    event.preventDefault();
    go(event.currentTarget.href);
  });
  by("desk-draw").addEventListener("click", () => {
    working = working.then(async () => {
      try {
        showNext((await ask(`${run}/draw`, {})).next);
        announce("Drawn. Press l to go to the first.");
        await load();
      } catch (error) {
        announce(error.message);
      }
    });
  });
  by("desk-detector").addEventListener("change", showNumbers);
  name.addEventListener("change", () => {
    localStorage.setItem(kept, name.value.trim());
    working = working.then(load);
  });

  async function load() {
    try {
      show(await ask(`${desk.dataset.marks}?annotator=${encodeURIComponent(name.value)}`));
      await showNumbers();
    } catch (error) {
      announce(error.message);
    }
  }
  working = working.then(load);
})();
