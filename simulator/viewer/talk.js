"use strict";
(() => {
  const saying = document.getElementById("saying");
  if (!saying) return;
  const place = document.getElementById("talk");
  const state = document.getElementById("state");
  const message = document.getElementById("message");
  const buttons = { send: document.getElementById("send"), stop: document.getElementById("stop"), end: document.getElementById("end") };
  const saved = document.getElementById("saved");
  const headers = { "x-hallulab": "1", "content-type": "application/json" };
  let talk = null; // the address of the conversation; null: none has begun
  let waiting = false; // for a reply
  let source = null;
  let draft = null; // the article of the reply that is being made

  async function post(address, value, more = {}) {
    const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(value), ...more });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer;
  }

  function wait(text) {
    waiting = text !== null;
    buttons.send.disabled = waiting;
    state.textContent = text || "";
  }

  function putDraft(asked) {
    removeDraft();
    draft = document.getElementById("drafted").content.firstElementChild.cloneNode(true);
    draft.querySelector(".asked").textContent = asked;
    draft.querySelector(".cell").hidden = true;
    place.append(draft);
    draft.scrollIntoView({ block: "nearest" });
  }

  function fillDraft({ doing, text, is_reply }) {
    state.textContent = `${doing}…`;
    if (!draft) return;
    const followed = draft.getBoundingClientRect().bottom <= window.innerHeight;
    draft.querySelector(".cell").hidden = !text;
    draft.querySelector("small").textContent = is_reply ? "" : "not the reply yet";
    draft.querySelector(".reply").textContent = text;
    if (followed) draft.scrollIntoView({ block: draft.offsetHeight > window.innerHeight ? "end" : "nearest" });
  }

  function removeDraft() {
    if (draft) draft.remove();
    draft = null;
  }

  function finish(text) {
    source.close();
    removeDraft();
    talk = null;
    wait(null);
    state.textContent = `${text} Your next message begins another one.`;
    buttons.stop.disabled = buttons.end.disabled = true;
    document.getElementById("choices").disabled = false;
  }

  function putTurn(turn, html) {
    const parsed = new DOMParser().parseFromString(html, "text/html").querySelector("article");
    const old = document.getElementById(`turn-${turn}`);
    if (old) {
      const open = old.querySelector("details").open;
      old.replaceWith(parsed);
      parsed.querySelector("details").open = open;
    } else {
      place.append(parsed);
      parsed.scrollIntoView({ block: "nearest" });
    }
  }

  async function begin() {
    const detectors = [...document.querySelectorAll("input[name=detector]:checked")].map((one) => one.value);
    const chosen = { scenario: document.getElementById("scenario").value, chatbot: document.getElementById("chatbot").value, detectors };
    talk = `/talk/${(await (await post("/talk", chosen)).json()).talk}`;
    document.getElementById("choices").disabled = true;
    buttons.stop.disabled = buttons.end.disabled = false;
    place.replaceChildren();
    saved.hidden = true;
    source = new EventSource(`${talk}/events`);
    const on = (kind, act) => source.addEventListener(kind, (event) => act(JSON.parse(event.data)));
    const address = talk;
    on("replying", (asked) => {
      wait("The bot is replying…");
      putDraft(asked);
    });
    on("draft", fillDraft);
    on("turn", ({ turn, html }) => {
      if (!document.getElementById(`turn-${turn}`)) {
        removeDraft();
        wait(null);
      }
      putTurn(turn, html);
      saved.href = `${address}/run`;
      saved.hidden = false;
    });
    on("unanswered", (why) => {
      wait(null);
      removeDraft();
      state.textContent = why;
      if (!message.value) message.value = last;
    });
    on("note", (text) => (state.textContent = text));
    on("over", finish);
  }

  let last = "";

  saying.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = message.value.trim();
    if (!text || waiting) return;
    wait(talk ? "The bot is replying…" : "The bot is made ready, which takes minutes where a model is started…");
    try {
      if (!talk) await begin();
      await post(`${talk}/say`, { text });
      last = text;
      message.value = "";
      message.focus();
    } catch (error) {
      wait(null);
      state.textContent = error.message;
    }
  });

  const order = (name) => talk && post(`${talk}/${name}`, {}).catch((error) => (state.textContent = error.message));
  buttons.stop.addEventListener("click", () => order("stop"));
  buttons.end.addEventListener("click", () => order("end"));
  message.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      saying.requestSubmit();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") order("stop");
    else if ((event.key === "Enter" || event.key === " ") && event.target.matches("mark[data-findings]")) {
      event.preventDefault();
      event.target.click();
    }
  });
  window.addEventListener("pagehide", () => talk && post(`${talk}/end`, {}, { keepalive: true }));
})();
