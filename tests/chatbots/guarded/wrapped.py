"""A guarded chatbot around a bot that says what it is told, with a detector that finds what it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hallulab.chatbots.guarded.record import GuardRecord, record_of
from hallulab.chatbots.protocol import Chatbot, ChatbotContext, ChatbotError, Reply
from hallulab.chatbots.registry import ComponentFactory, make_chatbot
from hallulab.detectors.base.protocol import Detector, DetectorContext, Traits
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.transcript import Call, Judgement, Message, Passage, Span, Step, Turn, Unit
from hallulab.scenarios.turn_views import TurnView
from tests.builders import call
from tests.chatbots.stage import SCENARIO, stage

LEAFLET = Passage(
    id="leaflet#0", document="leaflet", text="The cream is not tested on expectant mothers.", topic="creams"
)


class Says:
    """Gives these replies, one after the other; an error is raised."""

    def __init__(self, *replies: str | Exception) -> None:
        self._replies = list(replies)
        self.histories: list[Sequence[Message]] = []

    async def reply(self, history: Sequence[Message]) -> Reply:
        self.histories.append(history)
        said = self._replies.pop(0)
        if isinstance(said, Exception):
            raise said
        return Reply(
            text=said,
            query="the query",
            passages=(LEAFLET,),
            steps=(Step(name="draft", text=said),),
            calls=(call("chatbot.generate"),),
        )


class Finds(Detector):
    """Gives these scores, one after the other, with a span over the whole reply from 0.5; None fails."""

    traits = Traits(needs_model=False)
    threshold = 0.5

    def __init__(self, *scores: float | None) -> None:
        self.name, self.version = "finds", "v1"
        self._scores = list(scores)
        self.views: list[TurnView] = []

    async def detect(self, view: TurnView) -> Judgement:
        self.views.append(view)
        score, calls = self._scores.pop(0), (call("finds.check"),)
        if score is None:
            return Judgement(outcome="failed", error="no answer", calls=calls)
        unit = Unit(text=view.reply, start=0, end=len(view.reply), score=score)
        spans = (Span(start=0, end=len(view.reply), text=view.reply, score=score, reason="wrong"),)
        flagged = score >= 0.5
        return Judgement(
            outcome="scored",
            score=score,
            flagged=flagged,
            spans=spans if flagged else (),
            units=(unit,),
            calls=calls,
        )


class Unplaced(Detector):
    """Flags every reply by words that do not stand in it."""

    traits = Traits(needs_model=False)
    threshold = 0.5

    def __init__(self) -> None:
        self.name, self.version = "unplaced", "v1"

    async def detect(self, view: TurnView) -> Judgement:
        span = Span(start=None, end=None, text="it is safe", score=0.9)
        return Judgement(outcome="scored", score=0.9, flagged=True, spans=(span,))


class Parts(ComponentFactory):
    """Gives this bot and this detector, whatever is asked for."""

    def __init__(self, bot: Chatbot, detector: Detector) -> None:
        super().__init__()
        self._bot, self._detector = bot, detector

    def chatbot(self, kind: str, context: ChatbotContext) -> Chatbot:
        return self._bot

    def detector(self, kind: str, context: DetectorContext) -> Detector:
        return self._detector


def guarded(
    bot: Chatbot,
    detector: Detector,
    scenario: Scenario = SCENARIO,
    changes: Mapping[str, Any] | None = None,
    **options: Any,
) -> Chatbot:
    """`changes` are those of `stage`: what the model says."""
    context, _, _ = stage(changes, options=options, scenario=scenario)
    return make_chatbot("guarded", replace(context, parts=Parts(bot, detector)))


async def asked(bot: Chatbot, question: str) -> tuple[Reply, GuardRecord]:
    """The reply to a first question, and the guard's record of it."""
    reply = await bot.reply([Message(role="user", text=question)])
    record = record_of(Turn(index=0, user=question, reply=reply.text, steps=reply.steps))
    assert record is not None
    return reply, record


def failing(reason: str) -> ChatbotError:
    return ChatbotError(reason, (call("chatbot.generate"),))


def purposes(calls: Sequence[Call]) -> list[str]:
    return [one.purpose for one in calls]
