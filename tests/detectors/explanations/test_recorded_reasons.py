"""A reason says only what is so: over the recorded runs, and over labelled replies of others."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.base.questions import split_statements
from hallulab.detectors.explanations.explanation import explain
from hallulab.detectors.lexical.detector import LexicalDetector
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Conversation, Turn
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import scripted_pool
from tests.demo import replay_headline
from tests.detectors.explanations.reasons_read import find_untrue, find_written
from tests.places import RECORDINGS

BY_RULE = ("halludetect", "metarag")


def read_replies(name: str) -> Iterator[LabelledReply]:
    with gzip.open(RECORDINGS / "labelled" / name, "rt", encoding="utf-8") as file:
        yield from map(LabelledReply.model_validate_json, file)


def read_sentences(name: str) -> Iterator[tuple[str, LabelledReply, str]]:
    for reply in read_replies(name):
        said = [*(one.text for one in reply.history if one.role == "user"), reply.question]
        for region in split_statements(reply.reply):
            yield region.of(reply.reply), reply, "\n".join(said)


def list_user_text(chat: Conversation, turn: Turn) -> str:
    return "\n".join(one.user for one in chat.turns[: turn.index + 1])


def find_untrue_reasons(folder: RunFolder) -> tuple[int, list[tuple[str, list[str]]]]:
    """The number of reasons by rule in a run, and those that the passages refute, with what is not so."""
    journals = folder.read_journals()
    chats = {chat.id: chat for chat in journals.conversations}
    found, untrue = 0, []
    for verdict in journals.verdicts:
        chat = chats[verdict.conversation]
        turn = chat.turns[verdict.turn]
        for span in verdict.spans or () if verdict.detector in BY_RULE else ():
            found += 1
            # The passages that the detector searched for and asked about are no passages of the turn.
            texts = [*(one.text for one in turn.passages), span.evidence.partition(": ")[2]]
            wrong = find_untrue(span.reason, texts, list_user_text(chat, turn))
            if wrong:
                untrue.append((span.reason, wrong))
    return found, untrue


def test_no_passage_refutes_a_reason_of_the_recorded_demo(demo_replay: RunFolder) -> None:
    found, untrue = find_untrue_reasons(demo_replay)
    assert found > 15
    assert untrue == []


@pytest.mark.slow
def test_no_passage_refutes_a_reason_of_the_recorded_headline(tmp_path: Path) -> None:
    found, untrue = find_untrue_reasons(replay_headline(tmp_path / "headline"))
    assert found > 150
    assert untrue == []


LABELLED = {"begin": 40, "gold": 40, "mtrag": 40, "ragtruth": 40, "wice": 10}
"""Labelled data → sentences of it that are explained. Claims of WiCE have long evidence."""


@pytest.mark.parametrize(
    ("name", "most"),
    [*LABELLED.items(), *(pytest.param(name, 400, marks=pytest.mark.slow) for name in LABELLED)],
)
def test_no_passage_refutes_the_reason_of_any_sentence(name: str, most: int) -> None:
    untrue = [
        (reason, wrong)
        for sentence, reply, said in islice(read_sentences(f"{name}.jsonl.gz"), most)
        for reason in [explain(sentence, reply.passages, said).reason]
        for wrong in [find_untrue(reason, [one.text for one in reply.passages], said)]
        if wrong
    ]
    assert untrue == []


async def test_the_words_that_lexical_names_stand_in_no_passage() -> None:
    pool, _ = scripted_pool(lambda _: "unused")
    detector = LexicalDetector("lexical", DetectorContext(models=pool))
    named: list[str] = []
    for reply in islice(read_replies("mtrag.jsonl.gz"), 60):
        view = TurnView(question=reply.question, passages=reply.passages, reply=reply.reply)
        for span in (await detector.detect(view)).spans or ():
            words = span.reason.removeprefix("not in the evidence: ").split(", ")
            assert find_written(words, [one.text for one in reply.passages]) == []
            named += words
    assert len(named) > 100
