"use strict";
// Every text of the run reaches the document through `textContent`: nothing is parsed as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = 6;
  const MOST_LISTED = 12;
  const hidden = { detectors: new Set(), chatbots: new Set() };
  const lanes = document.getElementById("lanes");
  const panel = document.getElementById("finding");
  const personaSelect = document.getElementById("persona-select");
  const seedSelect = document.getElementById("seed-select");
  const branched = data.cases.some((item) => item.turn > 0);
  let current = 0;
  let opened = new Map(); // what is flagged in the case shown, and the findings behind it

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  function shown(value) {
    return typeof value === "number" ? String(Math.round(value * 1000) / 1000) : String(value);
  }

  function words(name) {
    return name.replaceAll("_", " ");
  }

  function counted(number, noun) {
    return `${number} ${noun}${number === 1 ? "" : "s"}`;
  }

  function swatch(detector) {
    const dot = make("span", `swatch d${detector % COLOURS}`);
    dot.setAttribute("aria-hidden", "true");
    return dot;
  }

  // ---- the panel with one number, reason and evidence

  function describe(finding) {
    const head = make("h3", "", swatch(finding.detector), data.detectors[finding.detector]);
    // One number: a severity says what it means, and a score is on the scale of the reply's.
    if (finding.severity !== null) head.append(make("span", "", `severity ${shown(finding.severity)} of 5`));
    else if (finding.score !== null) head.append(make("span", "", `score ${shown(finding.score)}`));
    else if (finding.probability !== null) head.append(make("span", "", `unsupported with probability ${shown(finding.probability)}`));
    if (!finding.located) head.append(make("span", "", "not found verbatim in the reply"));
    const list = make("dl", "");
    list.append(make("dt", "", "Reason"), make("dd", "reason", finding.reason || "none given"));
    list.append(make("dt", "", "Evidence"), make("dd", "evidence", finding.evidence || "none given"));
    if (finding.origin) list.append(make("dt", "", "From"), make("dd", "origin", finding.origin));
    return make("article", "", head, make("blockquote", "", finding.text), list);
  }

  function open(target, findings) {
    for (const old of document.querySelectorAll(".open")) old.classList.remove("open");
    target.classList.add("open");
    for (const [element, others] of opened) {
      if (others.some((item) => findings.includes(item))) element.classList.add("open");
    }
    const close = make("button", "close", "Close");
    close.type = "button";
    close.addEventListener("click", () => {
      target.focus({ preventScroll: true });
      shut();
    });
    panel.replaceChildren(close, ...findings.map(describe));
    panel.hidden = false;
    panel.scrollTop = 0;
    document.body.classList.add("reading");
    const covered = target.getBoundingClientRect().bottom - panel.getBoundingClientRect().top;
    if (covered > 0) window.scrollBy(0, covered + 16);
  }

  function shut() {
    panel.hidden = true;
    document.body.classList.remove("reading");
    for (const old of document.querySelectorAll(".open")) old.classList.remove("open");
  }

  function opens(element, findings) {
    opened.set(element, findings);
    element.title = findings
      .map((item) => `${data.detectors[item.detector]}${item.severity === null ? "" : `, severity ${shown(item.severity)}`}: ${item.reason}`)
      .join("\n");
    element.addEventListener("click", () => open(element, findings));
    element.addEventListener("focus", () => open(element, findings));
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(element, findings);
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") shut();
  });

  // ---- one reply

  function visible(turn, positions) {
    return positions.map((place) => turn.findings[place]).filter((item) => !hidden.detectors.has(item.detector));
  }

  function flagged(parts, findings) {
    const mark = make("mark", "", ...parts);
    const detectors = [...new Set(findings.map((item) => item.detector))];
    const tints = detectors.map((detector) => `var(--b${detector % COLOURS})`);
    mark.style.background = tints.length > 1 ? `linear-gradient(${tints.join(",")})` : tints[0];
    mark.style.boxShadow = detectors
      .map((detector, line) => `0 ${2 * (line + 1)}px 0 0 var(--d${detector % COLOURS})`)
      .join(",");
    mark.tabIndex = 0;
    mark.setAttribute("role", "button");
    mark.setAttribute("aria-controls", "finding");
    opens(mark, findings);
    return mark;
  }

  const STYLES = { bold: "b", italic: "i", code: "code" };

  // Neighbouring pieces that the same detectors flag are one mark, of one or more styles.
  function replyOf(turn) {
    const pieces = [];
    for (const [text, positions, style] of turn.reply) {
      const findings = visible(turn, positions);
      const last = pieces[pieces.length - 1];
      const same = last && last.findings.length === findings.length && last.findings.every((item, place) => item === findings[place]);
      const part = STYLES[style] ? make(STYLES[style], "", text) : text;
      if (same) last.parts.push(part);
      else pieces.push({ parts: [part], findings });
    }
    return make("p", "reply", ...pieces.flatMap(({ parts, findings }) => (findings.length ? [flagged(parts, findings)] : parts)));
  }

  function unlocated(turn) {
    return turn.findings
      .filter((item) => !item.located && !hidden.detectors.has(item.detector))
      .map((item) => {
        const button = make("button", "unlocated", make("small", "", swatch(item.detector), ` ${data.detectors[item.detector]} flags words not found verbatim in the reply:`), item.text);
        button.type = "button";
        opens(button, [item]);
        return button;
      });
  }

  // On paper nothing can be clicked, so every reason is printed below its reply.
  function printed(turn) {
    const items = turn.findings
      .filter((item) => !hidden.detectors.has(item.detector))
      .map((item) => make("li", "", make("b", "", data.detectors[item.detector]), `${item.severity === null ? "" : ` (severity ${shown(item.severity)})`}: “${item.text}” ${item.reason}`));
    return make("ul", "printed", ...items);
  }

  function verdictOf(verdict, detector, turn) {
    const score = verdict.score ? `, ${verdict.score}` : "";
    const cut = verdict.truncated ? ", evidence or reply was cut" : "";
    const count = turn.findings.filter((item) => item.detector === detector).length;
    const said = {
      clean: `nothing flagged${score}`,
      flagged: count ? `${count} flagged${score}` : `flagged as a whole${score}; marks no words`,
      not_localised: `${verdict.flagged ? "flagged" : "not flagged"} as a whole${score}; says not where, so it counts nowhere`,
      failed: `failed, not judged: ${verdict.error}`,
      abstained: `abstained, not judged: ${verdict.error}`,
      missing: "no verdict, not judged",
    }[verdict.state];
    const bad = !["clean", "flagged"].includes(verdict.state);
    return make("li", bad ? `bad ${verdict.state}` : verdict.state, swatch(detector), " ", make("b", "", data.detectors[detector]), ` ${said}${cut}`);
  }

  // The colour is deepest at 1; detectors that score words give probabilities.
  function heat(verdict, detector) {
    const words = verdict.words.map(([text, score]) => {
      const word = make("span", "", text);
      const share = Math.round(100 * Math.min(1, Math.max(0, score)));
      word.style.background = `color-mix(in srgb, var(--d${detector % COLOURS}) ${share}%, transparent)`;
      word.title = `score ${shown(score)}`;
      return word;
    });
    return make("p", "heat", ...words);
  }

  function grounds(verdict, detector) {
    const entries = verdict.words.length ? [make("h4", "", "Words, the deeper the worse"), heat(verdict, detector)] : [];
    for (const [text, score, place] of verdict.sentences) {
      const passage = data.passages[place];
      entries.push(make("h4", "", `Score ${shown(score)}: “${text}”`), make("p", "", `Best passage, ${passage.id}: ${passage.text}`));
    }
    return entries;
  }

  function section(title, entries) {
    const details = make("details", "", make("summary", "", title));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(...entries().flat());
    });
    return details;
  }

  function cell(turn, chatbot, position) {
    const said = make("p", "said", make("span", "who", "User"), turn.user);
    const body = make("article", "cell", make("p", "where", `${data.chatbots[chatbot]}, turn ${data.cases[current].turn + position + 1}`), said, replyOf(turn));
    body.append(...unlocated(turn), printed(turn));
    body.append(make("ul", "verdicts", ...turn.verdicts.map((verdict, detector) => verdictOf(verdict, detector, turn))));
    turn.verdicts.forEach((verdict, detector) => {
      if (hidden.detectors.has(detector) || !verdict.words || !(verdict.words.length || verdict.sentences.length)) return;
      body.append(section(`Words and evidence by ${data.detectors[detector]}`, () => grounds(verdict, detector)));
    });
    for (const met of turn.planted) {
      const text = met.text ? `: “${met.text}”` : "";
      body.append(make("p", met.followed ? "planted bad" : "planted", make("b", "", `${met.thing}, ${met.where}`), ` ${met.said}${text}`));
    }
    if (turn.passages.length) {
      body.append(section(`Retrieved passages (${turn.passages.length})`, () => [
        ...(turn.query ? [make("h4", "", "Searched for"), make("p", "", turn.query)] : []),
        ...turn.passages.map(([place, score]) => {
          const passage = data.passages[place];
          return [make("h4", "", passage.id, make("span", "", score === null ? "" : ` similarity ${shown(score)}`)), make("p", "", passage.text)];
        }),
      ]));
    }
    if (turn.steps.length) {
      body.append(section(`Steps (${turn.steps.length})`, () => turn.steps.map(([name, text]) => [make("h4", "", words(name)), make("p", "", text)])));
    }
    return body;
  }

  // ---- one persona, all chatbots

  function head(chat, chatbot) {
    const title = make("div", "cell head", make("h3", "", data.chatbots[chatbot]));
    if (!chat) return title;
    const counts = data.detectors.map((name, detector) => `${name} ${chat.turns.reduce((sum, turn) => sum + turn.findings.filter((item) => item.detector === detector).length, 0)}`);
    const ended = chat.stop === "unknown" ? "" : `, ended: ${words(chat.stop)}`;
    title.append(make("p", "", `${counted(chat.turns.length, "turn")}${ended}`), make("p", "", `flagged: ${counts.join(", ")}`));
    if (chat.error) title.append(make("p", "bad", `error: ${chat.error}`));
    for (const flaw of chat.flaws) {
      title.append(make("p", "bad", `simulated user, turn ${data.cases[current].turn + flaw.turn + 1}: ${words(flaw.kind)} (${flaw.detail})`));
    }
    return title;
  }

  function showCase() {
    shut();
    opened = new Map();
    const item = data.cases[current];
    const persona = item.persona;
    const about = make("div", "", make("p", "", make("b", "", persona.name || persona.id), persona.manner ? `. Manner: ${persona.manner.replace(/\.$/, "")}` : "", ...item.speaking.map((drawn) => `. ${drawn}`)));
    if (persona.grievance) about.append(make("p", "", persona.grievance));
    if (persona.goals && persona.goals.length) about.append(make("p", "goals", `Wants: ${persona.goals.join("; ")}`));
    if (item.given.length) {
      about.append(section(`Given to all chatbots: ${counted(item.given.length / 2, "exchange")}`, () =>
        item.given.map(([role, text]) => [make("h4", "", role === "user" ? "User" : "Chatbot of the run"), make("p", "", text)])));
    }
    document.getElementById("case").replaceChildren(about);
    const columns = data.chatbots.map((_, chatbot) => chatbot).filter((chatbot) => !hidden.chatbots.has(chatbot));
    lanes.style.setProperty("--columns", Math.max(1, columns.length));
    const cells = columns.map((chatbot) => head(item.chats[chatbot], chatbot));
    const turns = Math.max(0, ...columns.map((chatbot) => (item.chats[chatbot] ? item.chats[chatbot].turns.length : 0)));
    for (let turn = 0; turn < turns; turn += 1) {
      for (const chatbot of columns) {
        const chat = item.chats[chatbot];
        if (chat && turn < chat.turns.length) {
          const shownTurn = cell(chat.turns[turn], chatbot, turn);
          shownTurn.id = `reply-${chatbot}-${turn}`;
          if (flaggedBySome(chat.turns[turn]).length) shownTurn.classList.add("disputed");
          cells.push(shownTurn);
        }
        else cells.push(make("div", "cell gone", chat ? "The conversation has ended." : "No conversation with this persona and seed."));
      }
    }
    lanes.replaceChildren(...cells);
  }

  /* Return the detectors that flag a reply which others, of all that are there, do not flag. */
  function flaggedBySome(turn) {
    const flags = turn.verdicts.map((verdict) => verdict.flagged);
    if (flags.some((flag) => flag !== true && flag !== false)) return [];
    const flagging = data.detectors.filter((_, detector) => flags[detector]);
    return flagging.length < flags.length ? flagging : [];
  }

  function disputes() {
    const found = [];
    data.cases.forEach((item, place) => item.chats.forEach((chat, chatbot) => (chat ? chat.turns : []).forEach((turn, position) => {
      const flagging = flaggedBySome(turn);
      if (flagging.length) found.push({ place, chatbot, position, flagging });
    })));
    return found;
  }

  function listDisputes(found) {
    const box = document.getElementById("disputes");
    box.hidden = found.length === 0;
    box.append(make("p", "", `The detectors disagree on ${found.length === 1 ? "1 reply" : `${found.length} replies`}. Read ${found.length === 1 ? "it" : "these"} first${found.length > MOST_LISTED ? `; here are ${MOST_LISTED}` : ""}:`));
    const list = make("ul", "");
    for (const one of found.slice(0, MOST_LISTED)) {
      const item = data.cases[one.place];
      const button = make("button", "", `${item.persona.name || item.persona.id}, ${data.chatbots[one.chatbot]}, turn ${item.turn + one.position + 1}`);
      button.type = "button";
      button.addEventListener("click", () => {
        visit(one);
      });
      list.append(make("li", "", button, ` flagged by ${one.flagging.join(", ")} only`));
    }
    box.append(list);
  }

  function visit(one) {
    go(one.place);
    const reply = document.getElementById(`reply-${one.chatbot}-${one.position}`);
    if (reply) reply.scrollIntoView({ block: "center", inline: "center" });
  }

  /* Show the turn that the address names; return whether it names one. */
  function follow() {
    let named = "";
    try {
      named = decodeURIComponent(location.hash.slice(1));
    } catch {
      return false; // no address of ours
    }
    for (const [place, item] of data.cases.entries()) {
      for (const [chatbot, chat] of item.chats.entries()) {
        if (!chat || !named.startsWith(`chat-${chat.id}-`)) continue;
        const position = Number(named.slice(`chat-${chat.id}-`.length));
        if (!chat.turns[position]) continue;
        hidden.chatbots.delete(chatbot);
        document.querySelectorAll("#chatbot-toggles input")[chatbot].checked = true;
        visit({ place, chatbot, position });
        return true;
      }
    }
    return false;
  }

  function key(item) {
    return `${item.scenario}\n${item.persona.id}`;
  }

  function count(item) {
    return item.chats.reduce((sum, chat) => sum + (chat ? chat.turns.reduce((inner, turn) => inner + turn.findings.length, 0) : 0), 0);
  }

  function option(value, text) {
    const element = make("option", "", text);
    element.value = value;
    return element;
  }

  function sameKey() {
    return data.cases.map((item, place) => [item, place]).filter(([item]) => key(item) === key(data.cases[current]));
  }

  function go(place) {
    current = (place + data.cases.length) % data.cases.length;
    const seeds = sameKey();
    personaSelect.value = String(seeds[0][1]);
    seedSelect.replaceChildren(...seeds.map(([item, index]) => option(index, branched ? `${item.seed}, turn ${item.turn + 1}` : String(item.seed))));
    seedSelect.value = String(current);
    document.getElementById("seed-pick").hidden = seeds.length < 2;
    showCase();
  }

  function toggles(id, names, set, coloured) {
    const box = document.getElementById(id);
    names.forEach((name, number) => {
      const input = make("input", "");
      input.type = "checkbox";
      input.checked = true;
      input.addEventListener("change", () => {
        if (input.checked) set.delete(number); else set.add(number);
        showCase();
      });
      const label = make("label", "", input);
      if (coloured) label.append(swatch(number));
      label.append(name);
      box.append(label);
    });
  }

  if (data.cases.length === 0) {
    document.getElementById("controls").hidden = true;
    document.getElementById("case").textContent = "There are no conversations yet.";
    return;
  }
  const totals = new Map();
  for (const item of data.cases) totals.set(key(item), (totals.get(key(item)) || 0) + count(item));
  const listed = new Set();
  data.cases.forEach((item, place) => {
    if (listed.has(key(item))) return;
    listed.add(key(item));
    const total = totals.get(key(item));
    personaSelect.append(option(place, `${item.persona.name ? `${item.persona.name} (${item.persona.id})` : item.persona.id}: ${total} flagged`));
  });
  toggles("detector-toggles", data.detectors, hidden.detectors, true);
  toggles("chatbot-toggles", data.chatbots, hidden.chatbots, false);
  personaSelect.addEventListener("change", () => go(Number(personaSelect.value)));
  seedSelect.addEventListener("change", () => go(Number(seedSelect.value)));
  document.getElementById("previous").addEventListener("click", () => go(current - 1));
  document.getElementById("next").addEventListener("click", () => go(current + 1));
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  const disputed = disputes();
  listDisputes(disputed);
  const counts = data.cases.map(count);
  go(disputed.length ? disputed[0].place : counts.indexOf(Math.max(...counts)));
  follow();
  window.addEventListener("hashchange", follow);
})();
