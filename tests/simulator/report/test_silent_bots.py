"""From runs to their answers: a bot that always declines, one that answers half, and the paper's five.

No model: a script answers. The five make up one to five statements in each reply, the half-silent one in each
answer one, and the silent one none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import hallulab
from hallulab.testing.scripted import ScriptedModel, last_user
from hallulab.testing.tiny_pack import words_for_vectors
from tests.kit.planted_rates import make_crowd
from tests.simulator.command_line import CommandLine

PAPER = {"vanilla": 5, "prompt-engineered": 4, "editor": 3, "fact-checker": 2, "agent": 1}
"""Statements that each makes up in a reply."""
LIMIT = 300
"""Limit of the first chatbot's replies; the script tells them apart by it."""
RIGHT, MADE_UP = "Water boils at 100 degrees.", "Zorvel quindle bravix tolmer."
DECLINE = "I cannot find that in our documents. Please contact the help desk."


def answer(body: dict[str, Any], bots: Mapping[str, int]) -> str | Mapping[str, float]:
    """Play users and chatbots; whoever edits or checks a draft lets it stand."""
    if "response_format" in body:
        return json.dumps({"problems": [], "reply": "", "claims": [], "other": []})
    if last_user(body).endswith("Letter:"):
        return {"A": 0.9, "B": 0.05, "C": 0.05}
    if body.get("logprobs"):
        return {"No": 0.9, "Yes": 0.1}
    place = int(body.get("max_tokens") or 0) - LIMIT
    found = re.search(r"tea number (\d+)", json.dumps(body))
    number = int(found[1]) if found else 0
    if not 0 <= place < len(bots):
        return f"What about my tea number {number}?"
    name = list(bots)[place]
    if name == "silent" or (name == "half" and number % 2):
        return DECLINE
    return " ".join([RIGHT, *[MADE_UP] * bots[name]])


def run(folder: Path, personas: int, bots: Mapping[str, int], as_bot: str | None = None) -> Path:
    """Run these chatbots with so many personas, one turn each; return the run folder.

    Args:
        as_bot: name of the only chatbot in the run; None: the names are those of `bots`.
    """
    chatbots = [
        {
            "name": as_bot or name,
            "kind": name if name in PAPER else "vanilla",
            "options": {"max_tokens": LIMIT + place},
        }
        for place, name in enumerate(bots)
    ]
    asked = {
        "scenario": str(make_crowd(folder / "pack", personas)),
        "chatbots": chatbots,
        "detectors": ["lexical"],
        "min_turns": 1,
        "max_turns": 1,
        "timed": False,
        "manners": ["plain"],
    }
    with words_for_vectors(), ScriptedModel(lambda body: answer(body, bots)) as model:
        hallulab.run(asked, model=model.name, base_url=model.base_url, out=folder / "run", quiet=True)
    return folder / "run"


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of the seven, with the ten personas that 21 tests need."""
    folder = run(tmp_path_factory.mktemp("seven"), 10, {"silent": 0, "half": 1, **PAPER})
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    found["page"] = (folder / "report.html").read_text()
    return found


def test_the_numbers_are_those_of_the_script(seven: dict[str, Any]) -> None:
    rows = {row["chatbot"]: (row["hpt_1"], row["answered"], row["coverage"]) for row in seven["rows"]}
    assert rows == {
        "silent": (0.0, 0.0, 1.0),
        "half": (0.5, 0.5, 1.0),
        **{name: (float(number), 1.0, 1.0) for name, number in PAPER.items()},
    }


def test_the_silent_one_is_not_best(seven: dict[str, Any]) -> None:
    [finding] = seven["findings"]
    assert (finding["best"], finding["set_aside"]) == ("agent", ["silent", "half"])
    lines = re.findall(r'<p class="finding-line">(.*?)</p>', seven["page"])
    assert [line for line in lines if line.startswith("By lexical")] == [
        "By lexical, agent hallucinates least of 5 ranked chatbots: 1.00 per turn, significantly less than "
        "every other of these (paired test, p &lt; 0.05 after Holm&#39;s correction); it answers 100.0% of "
        "replies, the others 100.0%.",
        "By lexical, silent and half hallucinate only 0.00 and 0.50 per turn, but answer 0.0% and 50.0% of "
        "replies against 100.0% of vanilla. They are not ranked: a chatbot that answers less is not better "
        "by that alone.",
    ]


def test_declining_is_nobodys_fault(seven: dict[str, Any]) -> None:
    blamed = {row["chatbot"]: (row["hallucinated"], row["retriever"]) for row in seven["blame"]}
    assert (blamed["silent"], blamed["half"][0], blamed["agent"][0]) == ((0, 0), 5, 10)


def test_the_first_chart_has_both_axes(seven: dict[str, Any]) -> None:
    assert re.findall("<figcaption>(.*?)</figcaption>", seven["page"])[0].startswith(
        "Hallucinations (HPT-1) against answered replies"
    )


def test_a_bot_that_becomes_silent_is_blocked_and_not_called_better(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    before = run(tmp_path / "before", 7, {"agent": 1}, as_bot="bot")
    after = run(tmp_path / "after", 7, {"silent": 0}, as_bot="bot")
    gated = hallulab("gate", after, "--against", before, "--json", tmp_path / "gate.json")
    assert gated.code == 1
    result = json.loads((tmp_path / "gate.json").read_text())
    assert [check["message"] for check in result["checks"] if check["outcome"] == "failed"] == [
        "answered 100.0% → 0.0% of replies on 7 personas, p = 0.0078; below 0.025 blocks"
    ]
    compared = " ".join(hallulab("compare", before, after).out.split())
    assert (
        "By lexical, bot hallucinates less in B: 1.00 → 0.00 a turn, -1.00, p = 0.0312; but it answers 0.0% "
        "of replies, 100.0% before, and is not better by that alone."
    ) in compared
    assert "bot answers less in B: 100.0 → 0.0%, -100.0, p = 0.0156." in compared
