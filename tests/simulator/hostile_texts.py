"""Forty texts that try to run a script, and a run folder with such a text in every field that takes it.

A script of theirs calls `ran`; an element of theirs is a `canary` or has `data-canary`; a request of theirs
goes to `canary.invalid`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from hallulab.scenarios.datasets.annotations import AnnotationLine, Quotation
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.packs.pack_files import init_scenario
from hallulab.scenarios.transcript import Call, Conversation, Passage, Span, Step, Turn, Verdict
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from tests.simulator.viewer.serving import append

TEXTS = (
    # elements
    "<script data-canary>ran()</script>",
    "<img data-canary src=x onerror=ran()>",
    "<svg data-canary onload=ran()>",
    "<svg data-canary><script>ran()</script></svg>",
    "<iframe data-canary srcdoc='<script>parent.ran()</script>'></iframe>",
    "<details data-canary open ontoggle=ran()>",
    "<input data-canary autofocus onfocus=ran()>",
    "<video data-canary><source onerror=ran()></video>",
    "<body data-canary onload=ran() onpageshow=ran()>",
    "<a data-canary href=javascript:ran()>a</a>",
    "<form data-canary action=javascript:ran()><button>b</button></form>",
    "<object data-canary data=//canary.invalid/x></object>",
    "<link data-canary rel=stylesheet href=//canary.invalid/x>",
    "<style data-canary>@import '//canary.invalid/x'</style>",
    "<meta data-canary http-equiv=refresh content='0;url=//canary.invalid/'>",
    "<base data-canary href=//canary.invalid/>",
    "<canary onclick=ran() tabindex=0>c</canary>",
    "<math data-canary><mtext><img onerror=ran() src=x></mtext></math>",
    # ways out of where a text stands
    "</script><script data-canary>ran()</script>",
    "</title></style></textarea></noscript><img data-canary src=x onerror=ran()>",
    "--><img data-canary src=x onerror=ran()><!--",
    "]]><img data-canary src=x onerror=ran()>",
    "<!--<script data-canary>ran()//-->",
    '"><img data-canary src=x onerror=ran()>',
    "'><img data-canary src=x onerror=ran()>",
    '" data-canary onmouseover="ran()" onfocus="ran()" autofocus x="',
    "' data-canary onmouseover='ran()' onfocus='ran()' autofocus x='",
    "x data-canary onmouseover=ran() onfocus=ran() autofocus",
    # scripts, addresses, templates and selectors
    '";ran();//',
    "';ran();//",
    "${ran()}`;ran();//",
    "\\u003cimg data-canary src=x onerror=ran()\\u003e\\x3cscript\\x3eran()",
    "\u2028ran()\u2029;ran()",
    "javascript:ran()",
    "data:text/html,<script data-canary>ran()</script>",
    "{{ 7 * 7 }}{% raw %}{{ self.__init__.__globals__ }}",
    "&lt;img data-canary src=x onerror=ran()&gt;&#60;canary&#62;",
    "\x00<img\x00 data-canary src=x onerror=ran()>\ufeff",
    "＜script data-canary＞ran()＜/script＞\u202e<scr\u0131pt data-canary>ran()",
    "'] , * { background: url(//canary.invalid/x) } [data-canary='",
)

Record = TypeVar("Record", bound=BaseModel)


def fill(kind: type[Record], given: Mapping[str, Any], text: str) -> Record:
    """A record with the text in every field that takes one, and is not given as something else."""
    made = dict(given)
    for name in kind.model_fields:
        if isinstance(made.get(name, ""), str):
            for candidate in (text, (text,), {text: text}, f"person:{text}"):
                try:
                    kind.model_validate({**made, name: candidate})
                except ValidationError:
                    continue
                made[name] = candidate
                break
    return kind.model_validate(made)


def write_hostile_pack(folder: Path, text: str) -> str:
    """Write a pack whose personas have the text everywhere, and return the name of one."""
    init_scenario(folder)
    file = folder / "personas.yaml"
    held = yaml.safe_load(file.read_text(encoding="utf-8"))["personas"]
    personas = [fill(Persona, {**one, "messages": ()}, text).described() for one in held]
    for one, before in zip(personas, held, strict=True):
        one["id"] = before["id"]
    shown = json.dumps({"personas": personas}).replace("\\u0000", " ")  # packs have no NUL
    file.write_text(shown, encoding="utf-8")
    name: str = held[0]["id"]
    return name


def write_hostile_run(folder: Path, text: str) -> RunFolder:
    """Write a run folder with the text everywhere, beside a pack of its own; two annotators disagree."""
    persona = write_hostile_pack(folder.with_name(f"{folder.name[:20]}-pack"), text)
    run = RunFolder(folder)
    reply = f"{text} and {text}."
    call = fill(Call, _CALL, text)
    passage = fill(Passage, {"id": "", "document": "", "text": "", "score": 0.5}, text)
    step = fill(Step, {"name": "", "text": ""}, text)
    said = {"user": "", "passages": (passage,), "steps": (step,), "calls": (call,)}
    turn = fill(Turn, {**said, "index": 0, "reply": ""}, text).model_copy(update={"reply": reply})
    span = fill(Span, {"start": 0, "end": len(text), "text": text, "severity": 4.0}, text)
    unlocated = fill(Span, {"start": None, "end": None, "text": text, "score": 0.5}, text)
    for number in range(3):
        held = {"id": "", "scenario": "", "persona": "", "chatbot": "", "model": "", "seed": number}
        ended = {"turns": (turn,), "stop_reason": "error", "calls": (call,), "branch": None}
        chat = fill(Conversation, {**held, **ended}, text)
        named = {"id": f"{text}{number}", **({"persona": persona} if number == 2 else {})}
        chat = chat.model_copy(update={**named, "chatbot": f"{text}{number}"})
        append(run.conversations, [chat])
        for outcome in ("scored", "failed", "abstained"):
            judged = {"conversation": "", "turn": 0, "detector": "", "version": "", "calls": (call,)}
            known = {"score": 0.9, "flagged": True, "spans": (span, unlocated), "error": None}
            found = known if outcome == "scored" else {"score": None, "flagged": None, "spans": None}
            verdict = fill(Verdict, {**judged, **found, "outcome": outcome}, text)
            detector = {"conversation": chat.id, "detector": f"{text}{outcome}"}
            append(run.verdicts, [verdict.model_copy(update=detector)])
        for annotator, quotes in ((f"person:{text}", True), ("person:b", False)):
            quote = fill(Quotation, {"quote": text, "severity": 4, "start": 0}, text)
            looked = {"turn": 0, "spans": (quote,) if quotes else (), "adjudicates": (), "time": None}
            line = fill(AnnotationLine, {**looked, "conversation": "", "key": "k"}, text)
            append(
                run.annotations, [line.model_copy(update={"conversation": chat.id, "annotator": annotator})]
            )
    experiment = fill(
        Experiment, {"scenario": "s", "chatbots": ("vanilla",), "detectors": ("lexical",)}, text
    )
    places = {"scenario": str(folder.with_name(f"{folder.name[:20]}-pack"))}
    detectors = {f"{text}{outcome}": text for outcome in ("scored", "failed", "abstained")}
    saved = {"experiment": experiment.model_copy(update=places), "detectors": detectors}
    run.write_experiment(fill(SavedExperiment, {**saved, "identity": {text: text}, "schema": 1}, text))
    return run


_CALL = {"purpose": "", "model": "", "prompt_tokens": 1, "completion_tokens": 1, "latency_s": 1.0}
