"""A pack of twelve documents on four topics with two personas each, and a model that never says the same."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hallulab.scenarios.files.yaml_text import dump_yaml

THINGS = [
    *("anchor", "barrel", "candle", "dagger", "engine", "fiddle"),
    *("goblet", "hammer", "island", "jacket", "kettle", "ladder"),
]
TOPICS = ("air", "rail", "road", "water")

_TEXT = """---
title: The {thing} permit
topic: {topic}
---

The {thing} permit costs {fee} rupees for each year. The office must answer a request for the {thing} permit
within {days} working days, if the {thing} form is complete. A {thing} permit usually ends on 31 March 2027.

An appeal about the {thing} permit goes to the {thing} council under section {section}. It must be filed
within {days} days. The council may not charge more than {fee} rupees for the {thing} appeal.
"""

_LETTERS = "bcdfghjklmnpqrstvwz"


def write_dialogue_pack(folder: Path, language: str | None = None) -> Path:
    """Write the pack into a new folder, and return the folder."""
    (folder / "documents").mkdir(parents=True)
    personas = []
    for number, thing in enumerate(THINGS):
        text = _TEXT.format(
            thing=thing,
            topic=TOPICS[number % 4],
            fee=200 + 10 * number,
            days=10 + number,
            section=40 + number,
        )
        (folder / "documents" / f"{thing}.md").write_text(text)
        personas += [
            {
                "id": f"{name}-{thing}",
                "name": name.title(),
                "grievance": f"Needs the {thing} permit.",
                "goals": [f"Learn the fee of the {thing} permit", f"Learn where a {thing} appeal goes"],
                "manner": "Brief.",
                "summary": f"Asked about the {thing} permit.",
            }
            for name in ("ann", "bob")
        ]
    about = {
        "schema": 1,
        "name": "permits",
        "title": "Permits",
        "description": "People ask about permits.",
        "domain": "permits",
        "assistant": "help with permits",
        "licence": "Apache-2.0",
        **({"language": language} if language else {}),
        "documents": "documents",
        "personas": "personas.yaml",
    }
    (folder / "scenario.yaml").write_text(dump_yaml(about))
    (folder / "personas.yaml").write_text(dump_yaml({"personas": personas}))
    return folder


async def answer_without_evidence(history: Sequence[Mapping[str, str]]) -> str:
    """Answer as somebody's own chatbot that shows no passages."""
    return f"{history[-1]['content']} It costs {len(history)} rupees."


def say_something_else(body: dict[str, Any]) -> str | Mapping[str, float]:
    """Answer a request by made-up words, others for each request; no goal is ever reached."""
    if body.get("logprobs"):
        return {"No": 0.9, "Yes": 0.1}
    generator = random.Random(zlib.crc32(json.dumps(body, sort_keys=True).encode()))
    words = ["".join(generator.choices(_LETTERS, k=4)) + "o" for _ in range(12)]
    return f"What about {' '.join(words)}?"
