from __future__ import annotations

import re
from pathlib import Path

import pytest

import chatbots
from agents.prompt import load_prompt
from chatbots.registry import CHATBOTS

FOLDER = Path(chatbots.__file__).parent / "prompts"
PLACEHOLDERS = {
    "frame": {"domain", "assistant", "evidence"},
    "generation": {"domain", "functions"},
    "careful_generation": {"functions"},
    "editor": {"conversation", "draft"},
    "claims": {"domain", "draft"},
    "verify": {"evidence", "claim"},
    "process": {"conversation", "draft", "unsupported"},
    "specialist": {"title", "duty"},
    "drafter": {"title", "duty"},
}


def test_every_prompt_file_is_used_and_listed_here() -> None:
    files = {path.stem for path in FOLDER.glob("*.txt")}
    used = {path.split("/")[1] for bot in CHATBOTS.values() for path in bot.PROMPTS if "chatbots/" in path}
    assert files == used == PLACEHOLDERS.keys()


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_a_prompt_has_its_placeholders(name: str) -> None:
    prompt = load_prompt("chatbots", name)
    assert prompt.placeholders == PLACEHOLDERS[name]
    assert prompt.fill(dict.fromkeys(PLACEHOLDERS[name], "x"))[0].role == "system"


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_a_prompt_is_of_no_domain(name: str) -> None:
    text = load_prompt("chatbots", name).template
    domain = r"\b(law|legal|lawyer|act|court|commission|consumer|complain\w*|grievance|medic\w+|pregnan\w+)\b"
    assert re.findall(domain, text, re.IGNORECASE) == []
