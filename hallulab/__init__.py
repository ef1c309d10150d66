"""The front door: run experiments, read run folders, write chatbots and detectors.

Importing it loads nothing heavy. Each name is imported from its own module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.claim_check import ClaimCheck
    from agents.models.errors import ModelError
    from agents.models.prompt import ChatMessage
    from chatbots.protocol import Chatbot, ChatbotContext, ChatbotError, Reply
    from detectors.base.protocol import Detector, DetectorContext, TrainableDetector, Traits
    from hallulab.running import run
    from hallulab.saved_run import Run
    from scenarios.errors import HallulabError, OperationalError, ReplayMiss, UsageError
    from scenarios.labelled import LabelledReply
    from scenarios.transcript import (
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
    from simulator.experiment.config import Experiment
    from simulator.report.document import RunReport, read_report

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
    "agents.claim_check": ("ClaimCheck",),
    "agents.models.errors": ("ModelError",),
    "agents.models.prompt": ("ChatMessage",),
    "chatbots.protocol": ("Chatbot", "ChatbotContext", "ChatbotError", "Reply"),
    "detectors.base.protocol": ("Detector", "DetectorContext", "TrainableDetector", "Traits"),
    "hallulab.running": ("run",),
    "hallulab.saved_run": ("Run",),
    "scenarios.errors": ("HallulabError", "OperationalError", "ReplayMiss", "UsageError"),
    "scenarios.labelled": ("LabelledReply",),
    "scenarios.transcript": (
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
    "simulator.experiment.config": ("Experiment",),
    "simulator.report.document": ("RunReport", "read_report"),
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
