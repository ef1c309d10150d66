"""MetaRAG's two case studies (section 4.2.1), end to end: the wrong answers of the paper through the guarded
chatbot, into its log. They are judged by the real 1.5B model, and by a strong general-purpose language
model, with the paper's own reading (both recorded)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.chatbots.guarded.policy import load_policy
from hallulab.chatbots.guarded.record import GuardRecord, record_of
from hallulab.chatbots.guarded.topics import TopicSubject, choose_topic_by_model
from hallulab.chatbots.pipeline import turn_seed
from hallulab.chatbots.protocol import Chatbot, ChatbotContext, Reply
from hallulab.chatbots.registry import ComponentFactory, make_chatbot
from hallulab.scenarios.transcript import Message, Passage, Turn
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.records.guard_log import iterate_guard_lines
from hallulab.testing.scripted import last_user, scripted_pool
from tests.builders import conversation
from tests.chatbots.stage import SCENARIO, Shelf
from tests.detectors.vignettes import (
    GROUNDED,
    IBUPROFEN,
    RECORDING,
    REFUGEE,
    STRONG_MODEL,
    STRONG_RECORDING,
    TRUE_BESIDE,
    recorded_pool,
)

REFUSAL = "I am not sure enough of my answer to give it to you. A human expert will look at your question."


class Answers(ComponentFactory):
    """The bot of a vignette: it gives the paper's answer, however often it is asked."""

    def __init__(self, view: TurnView) -> None:
        super().__init__()
        self._view = view

    def chatbot(self, kind: str, context: ChatbotContext) -> Chatbot:
        return self

    async def reply(self, history: Sequence[Message]) -> Reply:
        return Reply(text=self._view.reply, passages=self._view.passages)


@asynccontextmanager
async def recorded(path: Path, **more: str) -> AsyncIterator[ModelPool]:
    recording = Recording.replay(path)
    models = recorded_pool(recording, **more)
    yield models
    await models.close()
    recording.close()


@pytest.fixture
async def pool() -> AsyncIterator[ModelPool]:
    async with recorded(RECORDING) as models:
        yield models


@pytest.fixture
async def strong_pool() -> AsyncIterator[ModelPool]:
    async with recorded(STRONG_RECORDING, model=STRONG_MODEL) as models:
        yield models


async def through_the_guard(
    view: TurnView, pool: ModelPool, policy: str = "metarag"
) -> tuple[Turn, GuardRecord]:
    context = ChatbotContext(
        models=pool, knowledge=Shelf(), scenario=SCENARIO, parts=Answers(view), options={"policy": policy}
    )
    reply = await make_chatbot("guarded", context).reply([Message(role="user", text=view.question)])
    said = {"passages": reply.passages, "steps": reply.steps, "calls": reply.calls}
    turn = Turn(index=0, user=view.question, reply=reply.text, **said)
    held = conversation("vignette", [], "guarded", turns=(turn,))
    record = record_of(turn)
    assert record is not None
    [line] = iterate_guard_lines([held])
    assert (line.action, line.reason, line.escalated) == (record.action, record.reason, record.escalated)
    return turn, record


@pytest.mark.parametrize(
    ("view", "topic", "why", "threshold", "marked"),
    [
        (
            IBUPROFEN,
            "pregnancy",
            "'pregnant' in the question",
            0.49,
            "Yes, ⟦ibuprofen is safe throughout pregnancy⟧ [no source].",
        ),
        (
            REFUGEE,
            "asylum",
            "'refugee' in the question",
            0.51,
            "⟦LGBTQ+ refugees automatically receive protection in country X⟧ [no source].",
        ),
    ],
    ids=["pregnancy", "refugee rights"],
)
async def test_a_vignette_is_tagged_flagged_marked_handed_over_and_logged(
    view: TurnView, topic: str, why: str, threshold: float, marked: str, pool: ModelPool, tmp_path: Path
) -> None:
    """At the thresholds of the built-in policy."""
    turn, record = await through_the_guard(view, pool)
    assert (record.topics, record.sensitive, record.threshold) == ({topic: why}, True, threshold)
    assert record.marked == marked
    assert (turn.reply, record.action, record.shown) == (REFUSAL, "human", None)
    assert record.escalated
    first, again = record.attempts
    assert (first.score or 0) >= threshold
    assert first.score == again.score
    assert record.reason.startswith(
        f"H = {first.score:.2f} reaches τ = {threshold:.2f} on the topic {topic}: unsupported is"
    )
    assert record.reason.endswith(f"made again, H = {first.score:.2f}")


@pytest.mark.parametrize(("name", "threshold"), [("ibuprofen", 0.49), ("refugee", 0.51)])
async def test_what_the_evidence_says_passes_on_the_same_topics(
    name: str, threshold: float, pool: ModelPool, tmp_path: Path
) -> None:
    view = TRUE_BESIDE[name]
    turn, record = await through_the_guard(view, pool)
    assert (turn.reply, record.action, record.threshold) == (view.reply, "passed", threshold)


@pytest.mark.parametrize(
    ("view", "topic", "score"),
    [(IBUPROFEN, "pregnancy", 0.875), (REFUGEE, "asylum", 1.0)],
    ids=["pregnancy", "refugee rights"],
)
async def test_the_shipped_guard_flags_a_vignette_on_a_capable_model_as_in_the_paper(
    view: TurnView, topic: str, score: float, strong_pool: ModelPool, tmp_path: Path
) -> None:
    turn, record = await through_the_guard(view, strong_pool)
    assert (list(record.topics), record.threshold, record.attempts[0].score) == ([topic], 0.3, score)
    assert (turn.reply, record.action) == (REFUSAL, "human")


@pytest.mark.parametrize("name", ["ibuprofen", "refugee"])
async def test_what_the_evidence_says_passes_on_a_capable_model(
    name: str, strong_pool: ModelPool, tmp_path: Path
) -> None:
    view = TRUE_BESIDE[name]
    turn, record = await through_the_guard(view, strong_pool)
    assert (turn.reply, record.action, record.threshold) == (view.reply, "passed", 0.3)
    assert record.attempts[0].score == 0.0


@pytest.mark.parametrize(("topic", "flagged"), [("asylum", True), (None, True)])
async def test_what_the_evidence_does_not_tell_is_flagged_by_printed_words(
    topic: str | None, flagged: bool, tmp_path: Path
) -> None:
    """NOT SURE of every variant is S = 0.5: the paper's refugee vignette, at 0.3, and at 0.5 in general."""

    def unsure(body: dict[str, Any]) -> str:
        asked = last_user(body)
        if "response_format" in body:
            return json.dumps({"same": ["a", "b"], "opposite": ["c", "d"]})
        return "NOT SURE" if "Statement:" in asked else f"1: {REFUGEE.reply}"

    passages = tuple(one.model_copy(update={"topic": topic}) for one in REFUGEE.passages)
    question = REFUGEE.question if topic else "What about country X?"
    view = REFUGEE.model_copy(update={"passages": passages, "question": question})
    if topic is None:
        view = view.model_copy(update={"passages": (Passage(id="a#0", document="a", text="Six months."),)})
    models, _ = scripted_pool(unsure, STRONG_MODEL)
    _, record = await through_the_guard(view, models)
    assert (record.attempts[0].score, record.attempts[0].flagged) == (0.5, flagged)
    assert record.threshold == (0.3 if topic else 0.5)


@pytest.mark.parametrize(
    ("view", "chosen", "p"),
    [(IBUPROFEN, "pregnancy", 0.824), (REFUGEE, "asylum", 0.637), (GROUNDED, "pregnancy", 0.384)],
    ids=["pregnancy", "refugee rights", "consumer courts, wrongly"],
)
async def test_the_real_model_tags_the_vignettes_and_errs_on_another_question(
    view: TurnView, chosen: str, p: float, pool: ModelPool
) -> None:
    session = pool.session("chatbot", turn_seed(0, [Message(role="user", text=view.question)]))
    topics = load_policy("metarag").topics
    found, share = await choose_topic_by_model(
        topics, TopicSubject(view.question, None, view.passages), session
    )
    assert (found, round(share, 3)) == (chosen, p)
