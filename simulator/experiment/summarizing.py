"""Summarize a reference chat; the summary puts a persona into its situation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.agents.users.summarizer import summarize
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Message
from hallulab.simulator.experiment.build import Settings, open_pool, open_recording, serve_models
from hallulab.simulator.experiment.config import Experiment


@dataclass(frozen=True)
class Summary:
    """The summarizer's answer."""

    text: str
    """The summary."""
    cut: bool
    """Whether the model was stopped before its end."""


async def summarize_chat(chat: Sequence[Message], experiment: Experiment, settings: Settings) -> Summary:
    """Let the simulated user's model summarize a chat.

    Args:
        chat: see `hallulab.agents.users.summarizer.summarize`.
        experiment: its models are used, and its scenario says what the assistant is for.

    Raises:
        UsageError: there is no such scenario, or the models do not fit together.
        OperationalError: server, endpoint or model failed.
    """
    domain = load_scenario(experiment.scenario).domain
    async with open_pool(experiment, open_recording(settings)) as pool, serve_models(pool, settings):
        session = pool.session("summarizer", experiment.seed, experiment.roles.get("user"))
        text = await summarize(session, chat, domain)
    return Summary(text, cut=session.calls[-1].finish_reason == "length")
