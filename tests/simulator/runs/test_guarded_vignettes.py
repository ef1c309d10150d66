"""MetaRAG's two case studies (section 4.2.1), end to end: the wrong answers of the paper through the guarded
chatbot, judged by the real 1.5B model (recorded), into the audit log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.chatbots.guarded.policy import load_policy
from hallulab.chatbots.guarded.record import GuardRecord, record_of
from hallulab.chatbots.guarded.topics import TopicSubject, choose_topic_by_model
from hallulab.chatbots.pipeline import turn_seed
from hallulab.chatbots.protocol import Chatbot, ChatbotContext, Reply
from hallulab.chatbots.registry import ComponentFactory, make_chatbot
from hallulab.scenarios.transcript import Conversation, Message, Turn, TurnView
from hallulab.simulator.runs.audit_log import AuditLog, BrokenChain, read_chain
from tests.chatbots.stage import SCENARIO, Shelf
from tests.detectors.vignettes import GROUNDED, IBUPROFEN, RECORDING, REFUGEE, TRUE_BESIDE, recorded_pool

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


@pytest.fixture
async def pool() -> AsyncIterator[ModelPool]:
    recording = Recording.replay(RECORDING)
    models = recorded_pool(recording)
    yield models
    await models.close()
    recording.close()


async def through_the_guard(
    view: TurnView, pool: ModelPool, log: Path, policy: str = "metarag"
) -> tuple[Turn, GuardRecord]:
    context = ChatbotContext(
        models=pool, knowledge=Shelf(), scenario=SCENARIO, parts=Answers(view), options={"policy": policy}
    )
    reply = await make_chatbot("guarded", context).reply([Message(role="user", text=view.question)])
    turn = Turn(
        index=0,
        user=view.question,
        reply=reply.text,
        passages=reply.passages,
        steps=reply.steps,
        calls=reply.calls,
    )
    held = Conversation(
        id="vignette",
        scenario="pool",
        persona="p",
        chatbot="guarded",
        model="m",
        seed=0,
        turns=(turn,),
        stop_reason="goal_reached",
    )
    with closing(AuditLog(log, read_chain(log))) as audit:
        audit.add(held)
    record = record_of(turn)
    assert record is not None
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
    log = tmp_path / "audit.jsonl"
    turn, record = await through_the_guard(view, pool, log)
    assert (record.topics, record.sensitive, record.threshold) == ({topic: why}, True, threshold)
    assert record.marked == marked
    assert (turn.reply, record.action, record.shown) == (REFUSAL, "human", None)
    [entry] = read_chain(log).entries
    assert (entry.escalated, entry.action) == (True, "human")
    first, again = entry.attempts
    assert (first.score or 0) >= threshold
    assert first.score == again.score
    assert entry.reason.startswith(
        f"H = {first.score:.2f} reaches τ = {threshold:.2f} on the topic {topic}: unsupported is"
    )
    assert entry.reason.endswith(f"made again, H = {first.score:.2f}")


@pytest.mark.parametrize(("name", "threshold"), [("ibuprofen", 0.49), ("refugee", 0.51)])
async def test_what_the_evidence_says_passes_on_the_same_topics(
    name: str, threshold: float, pool: ModelPool, tmp_path: Path
) -> None:
    view = TRUE_BESIDE[name]
    turn, record = await through_the_guard(view, pool, tmp_path / "audit.jsonl")
    assert (turn.reply, record.action, record.threshold) == (view.reply, "passed", threshold)


async def test_an_edited_line_of_the_log_is_detected(pool: ModelPool, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    await through_the_guard(IBUPROFEN, pool, log)
    line = json.loads(log.read_text())
    log.write_text(json.dumps({**line, "action": "passed", "escalated": False}) + "\n")
    with pytest.raises(BrokenChain, match="line 1: the line was edited after it was written"):
        read_chain(log)


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
