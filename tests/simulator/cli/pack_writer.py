"""A scripted model that writes packs, and documents for it to read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2

from hallulab.agents.users.questions import UNSAID
from hallulab.testing.scripted import completion, last_user
from hallulab.testing.tiny_pack import HashedWords, words_for_vectors
from tests.kit.forked_runs import Ended

ENDPOINT = ("--base-url", "http://127.0.0.1:9/v1", "--model", "scripted", "--quiet")
WritePack = Callable[..., Ended]
"""Writes a pack by `init-scenario` with the flags that it is given."""

ABOUT = {
    "title": "Town \x1b[31mlibrary",
    "domain": "a town library",
    "assistant": "help readers",
    "functions": ["Explain cards"],
    "specialists": [{"name": "desk", "title": "Desk", "duty": "explains cards"}] * 2,
}
CASES = {
    "thing3": {
        "grievance": "She has thing3 on loan.",
        "goals": [
            "learn what the fee for thing3 is.",
            "Learn who pays the fee for thing3 abroad",
            "What the fee for thing3 is?",
        ],
        "facts": ["It was sixty days late", "She paid 77 cents", " "],
    },
    "thing5": {
        "grievance": "He lost thing5.",
        "goals": ["Learn what the fine for thing5 is, and who pays it abroad"],
        "facts": [],
    },
}
"""What the model reads off a summary."""


@contextmanager
def without_weights() -> Iterator[None]:
    """Searches and comparisons are by words while the block runs."""
    with (
        words_for_vectors(),
        patch("hallulab.simulator.authoring.packs.SentenceEmbedder", lambda *_: HashedWords()),
    ):
        yield


def twelve_documents(folder: Path) -> Path:
    """Write documents of two passages each, about a fee and a fine."""
    for number in range(12):
        path = folder / f"part-{number % 2}" / f"thing-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        said = f"The fee for thing{number} is {number} cents. It is paid at desk{number}. "
        path.write_text(
            f"# Thing {number}\n\n{said * 6}\n\n## Late{number}\n\n{said.replace('fee', 'fine') * 6}\n"
        )
    return folder


class Writer:
    """A model that writes what the prompts ask for; its checks say what `told` says."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = ABOUT
        self.told = {"said": 0.9, "not said": 0.1}
        self.few = 0.9
        """Share of Yes for what few documents tell."""
        self.goals: list[dict[str, str]] = []
        """Answers to requests for goals that come before the usual ones."""
        self.asked: list[str] = []
        self.cut = False
        """Whether summaries are cut off."""

    def __call__(self, body: dict[str, Any]) -> str | dict[str, float] | httpx2.Response:
        system, last = body["messages"][0]["content"], last_user(body)
        if system.startswith("You describe an assistant"):
            return json.dumps(self.about)
        if system.startswith("You read a chat between a user") and not body.get("logprobs"):
            if "endless" in last:
                return httpx2.Response(400, json={"error": {"message": "the prompt is too long"}})
            summary = completion("" if "silent" in last else f"The user\n{last.splitlines()[0][6:]}")
            summary["choices"][0]["finish_reason"] = "length" if self.cut else "stop"
            return httpx2.Response(200, json=summary)
        if system.startswith("You read a summary of what a user"):
            return json.dumps(CASES[re.findall(r"thing\d+", last)[0]])
        if system.startswith("You read what a person wrote"):
            return {"C": 0.6, "F": 0.4} if "thing3" in last else {"C": 0.4, "F": 0.6}
        if system.startswith("You read a text and write in JSON"):
            if self.goals:
                return json.dumps(self.goals.pop(0))
            thing, what = re.search(r"thing\d+", last), "fine" if "fine" in last else "fee"
            assert thing is not None
            said = f"Learn what the {what} for {thing[0]} is."
            return json.dumps({"said": said, "not_said": f"Learn who pays the {what} for {thing[0]} abroad"})
        if system.startswith("You invent the case"):
            return json.dumps(
                {"grievance": f"{last.split(' wants')[0]} has a fee to pay.", "facts": ["It is May"]}
            )
        if system.startswith("You read a text and then answer"):
            self.asked.append(last)
            yes = self.told["not said" if "abroad" in last else "said"]
            yes = self.few if any(goal in last for goal in UNSAID) else yes
            return {"Yes": yes, "No": 1 - yes}
        return {"Yes": 0.9, "No": 0.1} if body.get("logprobs") else "The fee is 3 cents."
