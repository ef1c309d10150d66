"use strict";
(() => {
  const form = document.getElementById("starting");
  if (!form) return;
  const WAIT_MS = 300; // after the last key, before the form is checked
  const headers = { "x-hallulab": "1", "content-type": "application/json" };
  const yaml = document.getElementById("yaml");
  const button = document.getElementById("start-run");
  const sentences = document.getElementById("sentences");
  const copied = document.getElementById("copied");
  const recipients = document.getElementById("recipients");
  const confirming = document.getElementById("confirming");
  let asked = 0;
  let timer = null;

  function collect() {
    const values = {};
    for (const one of form.elements) {
      if (!one.name) continue;
      if (one.type !== "checkbox") values[one.name] = one.value;
      else if (!("list" in one.dataset)) values[one.name] = one.checked;
      else {
        values[one.name] = values[one.name] || [];
        if (one.checked) values[one.name].push(one.value);
      }
    }
    return values;
  }

  async function post(address) {
    let text = "The viewer does not answer. Is it still running?";
    try {
      const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(collect()) });
      text = await answer.text();
      return JSON.parse(text);
    } catch {
      return { field: "", sentence: text.trim() };
    }
  }

  function clear() {
    for (const old of form.querySelectorAll("[id^='error-']")) old.hidden = true;
    for (const old of form.querySelectorAll("[aria-invalid]")) old.removeAttribute("aria-invalid");
  }

  function complain({ field, sentence }, reach) {
    clear();
    const place = document.getElementById(`error-${field}`);
    place.textContent = sentence;
    place.hidden = false;
    const block = place.closest(".field");
    const control = block && block.querySelector("input, select, textarea");
    if (!control) return;
    control.setAttribute("aria-invalid", "true");
    if (!reach) return;
    for (let inner = control; (inner = inner.parentElement.closest("details")); ) inner.open = true;
    control.focus();
  }

  function listRecipients(found) {
    const boxes = [...confirming.querySelectorAll("input")];
    if (boxes.map((box) => box.value).join() === found.map(({ mark }) => mark).join()) return; // keeps the focus
    const ticked = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const lines = found.map(({ mark, sentence }) => {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "confirmed", value: mark });
      box.dataset.list = "";
      box.checked = ticked.has(mark);
      const label = document.createElement("label");
      label.append(box, ` ${sentence}`);
      return label;
    });
    confirming.replaceChildren(...lines);
    recipients.hidden = found.length === 0;
  }

  function show(told, reach = false) {
    if (told.sentence === undefined) clear();
    else complain(told, reach);
    yaml.value = told.yaml || "";
    if (told.recipients) listRecipients(told.recipients);
    const lines = told.sentences || ["A field is not right yet."];
    sentences.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  }

  async function check() {
    const number = ++asked;
    const told = await post("/start/check");
    if (number === asked) show(told);
  }

  function checkSoon() {
    copied.textContent = "";
    clearTimeout(timer);
    timer = setTimeout(check, WAIT_MS);
  }

  form.addEventListener("input", checkSoon);
  document.body.addEventListener("htmx:afterSettle", checkSoon); // other personas are there

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    asked += 1;
    button.disabled = true;
    const told = await post("/start");
    if (told.page) {
      location.assign(told.page);
      return;
    }
    button.disabled = false;
    if (told.field === "confirmed") await check(); // lists what is to be confirmed
    show(told, true);
  });

  document.getElementById("copy-yaml").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(yaml.value);
      copied.textContent = "Copied.";
    } catch {
      yaml.select();
      copied.textContent = "Press Ctrl+C.";
    }
  });

  check();
})();
