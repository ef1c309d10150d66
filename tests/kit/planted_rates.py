"""Chatbots that make statements up at known rates: a scripted model, and `lexical` finds all of them.

A reply quotes the first passage that was retrieved. Behind it stand made-up sentences, of words that no
document has. How many is drawn from the request, so equal requests get equal replies, and other users get
others.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hallulab.testing.scripted import Script
from hallulab.testing.tiny_pack import make_pack

_PASSAGE = re.compile(r"\[1\] .*\n(?:Title: .*\n)?(.+)")
_MADE_UP = "Zorvel quindle bravix tolmer."
_FIRST_LIMIT = 200


def describe_bots(rates: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the chatbots of an experiment: Vanilla, told apart by the limit of a reply.

    Args:
        rates: hallucinations a turn by name of the chatbot.
    """
    return [
        {"name": name, "kind": "vanilla", "options": {"max_tokens": _FIRST_LIMIT + number}}
        for number, name in enumerate(rates)
    ]


def make_planted_script(rates: Mapping[str, float]) -> Script:
    """Return a script that plays the users and these chatbots.

    Args:
        rates: as of `describe_bots`.
    """
    by_limit = dict(enumerate(rates.values(), _FIRST_LIMIT))

    def answer(body: dict[str, Any]) -> str | Mapping[str, float]:
        rate = by_limit.get(int(body.get("max_tokens") or 0))
        system = str(body["messages"][0].get("content"))
        passage = _PASSAGE.search(system)
        number = zlib.crc32(json.dumps(body, sort_keys=True).encode())
        if rate is None or passage is None:
            return {"No": 0.9, "Yes": 0.1} if body.get("logprobs") else f"What about my case {number}?"
        drawn = random.Random(number)
        planted = int(rate) + (drawn.random() < rate % 1)
        quoted = re.split(r"(?<=[.!?])\s", passage[1])[0]
        return " ".join([quoted, *[_MADE_UP] * planted])

    return answer


def make_crowd(folder: Path, personas: int) -> Path:
    """Write the tiny pack with so many personas into a new folder, and return the folder."""
    make_pack(folder)
    lines = [
        f"  - {{id: p{number}, name: Ann {number}, grievance: Her tea number {number} is cold., "
        f"goals: [Warm tea number {number}], manner: Brief., summary: She asked for warm tea {number}.}}"
        for number in range(personas)
    ]
    (folder / "personas.yaml").write_text("\n".join(["personas:", *lines]) + "\n", encoding="utf-8")
    return folder
