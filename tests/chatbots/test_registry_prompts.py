from __future__ import annotations

import re

import pytest

from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.chatbots.fact_checker import FactCheckerBot
from hallulab.chatbots.registry import CHATBOTS
from hallulab.detectors.base.protocol import DetectorContext, describe_judging
from hallulab.detectors.registry import DETECTORS, make_detector
from tests.chatbots.stage import stage
from tests.places import ROOT

FOLDER = ROOT / "chatbots" / "prompts"
PLACEHOLDERS = {
    "frame": {"domain", "assistant", "evidence"},
    "courtesy": {"domain", "assistant"},
    "generation": {"domain", "functions"},
    "careful_generation": {"functions"},
    "editor": {"conversation", "draft"},
    "claims": {"domain", "draft"},
    "verify": {"evidence", "claim"},
    "process": {"conversation", "draft", "unsupported"},
    "specialist": {"title", "duty"},
    "drafter": {"title", "duty"},
    "strategy_baseline": set(),
    "strategy_critical": set(),
    "strategy_hedge": set(),
    "strategy_verify": set(),
    "cite": set(),
    "topic": {"topics", "evidence", "question"},
    "stricter": {"question", "claims"},
}
ASKING_A_BOT = {"stricter"}
"""Prompts that a chatbot gets from its user, and so no system prompt."""


def test_every_prompt_file_is_used_and_listed_here() -> None:
    files = {path.stem for path in FOLDER.glob("*.txt")}
    used = {path.split("/")[1] for bot in CHATBOTS.values() for path in bot.PROMPTS if "chatbots/" in path}
    assert files == used == PLACEHOLDERS.keys()


def test_no_detector_asks_by_a_chatbots_verification_prompt() -> None:
    context, _, _ = stage()
    verifying = set(FactCheckerBot(context).claim_check.prompts.values())
    assert verifying == {load_prompt("hallulab.chatbots", "verify").version}
    files = (ROOT / "detectors").rglob("prompts/*.txt")
    asked = {Prompt(path.stem, path.read_text(encoding="utf-8")).version for path in files}
    assert len(asked) > 10
    assert verifying.isdisjoint(asked)


@pytest.mark.parametrize("kind", sorted(DETECTORS))
def test_no_detector_uses_a_prompt_file_of_the_chatbots(kind: str) -> None:
    context, _, _ = stage()
    detector = make_detector(kind, kind, DetectorContext(models=context.models))
    ours = {path.stem: load_prompt("hallulab.chatbots", path.stem).version for path in FOLDER.glob("*.txt")}
    assert set(ours.values()).isdisjoint(describe_judging(detector, "m").prompts.values())


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_a_prompt_has_its_placeholders(name: str) -> None:
    prompt = load_prompt("hallulab.chatbots", name)
    assert prompt.placeholders == PLACEHOLDERS[name]
    first = prompt.fill(dict.fromkeys(PLACEHOLDERS[name], "x"))[0]
    assert first.role == ("user" if name in ASKING_A_BOT else "system")


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_a_prompt_is_of_no_domain(name: str) -> None:
    text = load_prompt("hallulab.chatbots", name).template
    domain = r"\b(law|legal|lawyer|act|court|commission|consumer|complain\w*|grievance|medic\w+|pregnan\w+)\b"
    assert re.findall(domain, text, re.IGNORECASE) == []
