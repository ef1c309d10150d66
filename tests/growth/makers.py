"""What hostile texts are made into before functions read them."""

from __future__ import annotations

import io
import json
import random
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from hallulab.detectors.base import reading
from hallulab.detectors.explanations import claim, evidence
from hallulab.detectors.features import batch, features, judgements, matching
from hallulab.scenarios.attacks import falsehoods, repeated
from hallulab.scenarios.attacks.poison import Poison
from hallulab.scenarios.chats import formats
from hallulab.scenarios.chats.record import DetectedSpan, Marked
from hallulab.scenarios.packs.pack import Document, Persona
from hallulab.scenarios.text import (
    edits,
    items,
)
from hallulab.scenarios.transcript import Judgement, Passage, Pressure, Span, Turn, Verdict
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.authoring.tau_knowledge import personas as tau_personas
from hallulab.simulator.metrics import (
    annotations,
)
from hallulab.simulator.statistics.agreement import MarkedUnit
from tests.builders import conversation, scored
from tests.scenarios.chats.test_tools import ASKED, FILES, REPLIED, RULE
from tests.scenarios.packs.pdf_files import write_pages
from tests.simulator.metrics.test_annotations import label

Case = Callable[[str], object]
EVIDENCE = (
    "Title: Fees\nThe fee is Rs 500 within 30 days of the notice under section 12, if it is not waived. "
    "Call 1930 or 1800 11 4000 for help. If the bank refuses, you may write to the Reserve Bank of India."
)
POISON = Poison(
    document="fees",
    true="The fee is Rs 500 within 30 days.",
    false="The fee is Rs 900 within 30 days.",
    true_value="Rs 500",
    false_value="Rs 900",
)
REPLACED = repeated.read_replacement(POISON)
PRESSED = (
    Pressure(kind="insists", **POISON.model_dump()),
    Pressure(kind="crescendo", detail=falsehoods.DETAILS[0].text),
)
SENTENCE = "The fee is Rs 900 within 40 days, and the Reserve Bank of London helps on 1931 in June."


def cite(text: str, id: str = "p#0") -> Passage:
    return Passage(id=id, document="p", text=text)


def flag(text: str, every: int = 50) -> tuple[Span, ...]:
    """Return spans over a text, one every so many characters."""
    places = range(0, len(text), every)
    return tuple(
        Span(start=at, end=at + 1, text=text[at], evidence="p#0", reason='"the fee"') for at in places
    )


def judged(text: str) -> Verdict:
    return scored("c", 0).model_copy(update={"spans": flag(text), "flagged": True})


def make_claim(text: str) -> claim.ComparedSentence:
    return claim.read_claim(text, evidence.read_evidence((EVIDENCE,)), "Hello")


def make_item(text: str) -> items.Item:
    return items.Item("name", 0, len(text), text, "key")


def make_document(text: str) -> Document:
    return Document(name="d", title="D", source="", text=text)


def make_customer(text: str) -> Persona:
    """Make a persona of instructions that have the text in each kind of section."""
    sections = (
        f"**Your character:** Ann Lee, a cook. {text}\n**Your goal:** Find out what a card costs. {text}",
        f"**Information you know:**\n- {text}",
        f'## How to Behave\n1. **Opening:** "How do I block my card? {text}"\n2. {text}',
    )
    return tau_personas.make_persona("ann", "\n\n".join(sections), None)


def make_view(text: str) -> TurnView:
    return TurnView(question=text, passages=(cite(text),), reply=text)


def read_turn(text: str) -> object:
    read = reading.read_turn("d", ("en",), make_view(text))
    judgement = Judgement(
        outcome="scored",
        score=1.0,
        flagged=True,
        spans=tuple(
            Span(start=at, end=at + 1, text=read.view.reply[at]) for at in range(0, len(read.view.reply), 50)
        ),
        word_scores=tuple(0.5 for _ in read.view.reply.split()),
    )
    return read.restore(judgement, text)


def make_batch(text: str) -> batch.Batch:
    case = batch.ReplyWithEvidence(text, (cite(text), cite(EVIDENCE, "p#1")), "qa")
    return batch.make_batch([case])


def measure(text: str) -> features.Features:
    return features.measure(make_batch(text), matching.DocumentFrequency(1, {}), "extended")


def judge(text: str) -> object:
    def score(cases: Any) -> judgements.Scores:
        made = batch.make_batch(cases)
        found = features.measure(made, matching.DocumentFrequency(1, {}), "paper")
        sentences = 1 - found.column("lexical_coverage")
        return judgements.Scores(
            made, found, sentences, found.evidence, judgements.compute_reply_scores(made, sentences)
        )

    thresholds = judgements.LevelThresholds(word=0.5, sentence=0.5, response=0.0)
    return judgements.judge_blocks(
        [batch.ReplyWithEvidence(text, (cite(EVIDENCE),), "qa")], score, thresholds, "bm25"
    )


def talk(text: str) -> Marked:
    turn = Turn(index=0, user=text, reply=text or "-", passages=(cite(text),))
    held = conversation("c", []).model_copy(update={"turns": (turn,)})
    found = [DetectedSpan(detector="d", start=one.start, end=one.end, text=one.text) for one in flag(text)]
    return Marked(held, {0: found})


def make_pdf(text: str) -> bytes:
    shown = re.sub(r"[^ -~]|[()\\\\]", "?", text)
    lines = [shown[at : at + 80] for at in range(0, len(shown), 80)]
    return write_pages(
        *(
            [(60, 740 - 14 * number, line) for number, line in enumerate(lines[at : at + 50])]
            for at in range(0, len(lines), 50)
        )
    )


def make_word(text: str) -> bytes:
    runs = "".join(f"<w:r><w:t>{escape(line)}</w:t></w:r>" for line in re.split("[\r\n]", text))
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        body = f'<w:document xmlns:w="{space}"><w:body><w:p>{runs}</w:p></w:body></w:document>'
        archive.writestr("word/document.xml", body)
    return written.getvalue()


def pass_through(format: str, name: str) -> Case:
    """Return what writes a chat in a format and reads it again."""

    def run(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            write = formats.find_format(format).write
            assert write is not None
            write(path, [talk(text)], frozenset())
            return list(formats.read_chats(path, formats.format_of(path))) if format != "hf" else None

    return run


def read_file(name: str, make: Callable[[str], Any]) -> Case:
    """Return what reads chats out of a file with an object that holds the text."""

    def run(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(json.dumps(make(text)), encoding="utf-8")
            return list(formats.read_chats(path, formats.format_of(path)))

    return run


def make_tool(format: str) -> Callable[[str], Any]:
    """Return what makes the content of a file of another tool with the text in all its messages."""

    def make(text: str) -> Any:
        content = json.dumps(FILES[format][1])
        for sentence in (ASKED, REPLIED, RULE):
            content = content.replace(sentence, json.dumps(text)[1:-1])
        return json.loads(content)

    return make


def make_openinference(text: str) -> dict[str, Any]:
    return {
        "context": {"trace_id": "t"},
        "attributes": {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": text,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": text,
        },
    }


def make_langfuse(text: str) -> list[dict[str, Any]]:
    found = {"type": "RETRIEVER", "name": text, "output": [{"page_content": text}]}
    return [{"id": "t", "sessionId": "s", "input": text, "output": text, "observations": [found]}]


def make_mlflow(text: str) -> dict[str, Any]:
    attributes = {"mlflow.spanInputs": json.dumps({"question": text}), "mlflow.spanOutputs": json.dumps(text)}
    span = {"span_id": "1", "parent_span_id": None, "name": text, "attributes": attributes}
    return {"info": {"trace_id": "t"}, "data": {"spans": [span]}}


def mark_units(text: str) -> list[list[MarkedUnit]]:
    return [[MarkedUnit(at, at + 9, 3) for at in range(0, len(text), 20)], []]


def list_conflicts(text: str) -> object:
    ends = [(at, at + 9) for at in range(0, len(text), 20)]
    labels = [
        replace(label(turn, who, *ends), length=len(text) + 9)
        for who in ("person:a", "person:b")
        for turn in (0, 1)
    ]
    return annotations.list_conflicts(labels)


DRAW = random.Random(0)
BANK = edits.SentenceBank((("a", EVIDENCE), ("b", SENTENCE)))


def run_all(found: Iterable[object]) -> list[object]:
    return list(found)
