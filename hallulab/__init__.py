"""The front door: run experiments, read run folders, write chatbots and detectors.

Importing it loads nothing heavy. Each name is imported from its own module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hallulab.agents.models.answers import ModelError
    from hallulab.agents.models.prompt import ChatMessage
    from hallulab.agents.served_model import ClaimCheck
    from hallulab.api import run
    from hallulab.chatbots.protocol import Chatbot, ChatbotContext, ChatbotError, Reply
    from hallulab.detectors.base.protocol import Detector, DetectorContext, TrainableDetector, Traits
    from hallulab.results import Run
    from hallulab.scenarios.errors import HallulabError, OperationalError, ReplayMiss, UsageError
    from hallulab.scenarios.labelled import LabelledReply
    from hallulab.scenarios.transcript import (
        Call,
        Conversation,
        Judgement,
        Message,
        Passage,
        Retriever,
        Span,
        Step,
        Turn,
        TurnView,
        Unit,
    )
    from hallulab.simulator.experiment.config import Experiment
    from hallulab.simulator.report.build import read_report
    from hallulab.simulator.report.document import RunReport

__all__ = [
    "Call",
    "ChatMessage",
    "Chatbot",
    "ChatbotContext",
    "ChatbotError",
    "ClaimCheck",
    "Conversation",
    "Detector",
    "DetectorContext",
    "Experiment",
    "HallulabError",
    "Judgement",
    "LabelledReply",
    "Message",
    "ModelError",
    "OperationalError",
    "Passage",
    "ReplayMiss",
    "Reply",
    "Retriever",
    "Run",
    "RunReport",
    "Span",
    "Step",
    "TrainableDetector",
    "Traits",
    "Turn",
    "TurnView",
    "Unit",
    "UsageError",
    "read_report",
    "run",
]

_HOMES = {
    "hallulab.agents.served_model": ("ClaimCheck",),
    "hallulab.agents.models.answers": ("ModelError",),
    "hallulab.agents.models.prompt": ("ChatMessage",),
    "hallulab.chatbots.protocol": ("Chatbot", "ChatbotContext", "ChatbotError", "Reply"),
    "hallulab.detectors.base.protocol": ("Detector", "DetectorContext", "TrainableDetector", "Traits"),
    "hallulab.api": ("run",),
    "hallulab.results": ("Run",),
    "hallulab.scenarios.errors": ("HallulabError", "OperationalError", "ReplayMiss", "UsageError"),
    "hallulab.scenarios.labelled": ("LabelledReply",),
    "hallulab.scenarios.transcript": (
        "Call",
        "Conversation",
        "Judgement",
        "Message",
        "Passage",
        "Retriever",
        "Span",
        "Step",
        "Turn",
        "TurnView",
        "Unit",
    ),
    "hallulab.simulator.experiment.config": ("Experiment",),
    "hallulab.simulator.report.build": ("read_report",),
    "hallulab.simulator.report.document": ("RunReport",),
}
"""Module → its names, for `__getattr__`. The same imports stand above for type checkers."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # or type checkers would believe that every name is there

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'hallulab' has no attribute {name!r}")
        found = getattr(import_module(home), name)
        globals()[name] = found  # from now on it is found without a detour
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
