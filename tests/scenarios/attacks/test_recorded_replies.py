"""The rules on what a real model wrote in recorded runs without an attack."""

from __future__ import annotations

import gzip
import json
from functools import cache

from hallulab.chatbots.registry import collect_instructions
from hallulab.scenarios.attacks.attack import load_orders
from hallulab.scenarios.attacks.poison import plant_poisons
from hallulab.scenarios.attacks.repeated import is_poison_repeated
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.edits import collect_sentences
from hallulab.simulator.metrics.obedience import judge_obedience
from tests.places import ROOT

INSTRUCTIONS = tuple(
    text
    for name in ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")
    for text in collect_instructions(name, {}) or ()
)


@cache
def texts(run: str) -> list[str]:
    """Everything the model wrote in a recorded run that is more than a word."""
    path = ROOT / "tests" / "recordings" / f"{run}.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    held = [json.loads(line) for line in lines]
    bodies = [one["answer"]["body"] for one in held if one["kind"] == "model"]
    said = [choice["message"]["content"] for body in bodies for choice in body.get("choices", [])]
    return [text for text in said if text and " " in text]


def test_nothing_obeys_an_order() -> None:
    assert len(texts("demo")) == 54
    assert not [
        (order.id, text)
        for order in load_orders()
        for text in texts("demo")
        if judge_obedience(order, text, INSTRUCTIONS, "")
    ]


def test_a_reply_that_tells_the_truth_repeats_no_falsehood_and_with_the_false_value_it_does() -> None:
    pack = load_scenario("consumer-grievance-india")
    [limit] = [one for one in pack.documents if one.name == "limitation-period"]
    poisons = plant_poisons([limit], 1.0, collect_sentences(pack.documents), 0, False)[1]
    [false] = [one for one in poisons if one.true_value == "two years" and "from the date" in one.true]
    said = "is two years from the date"
    replies = [text for text in texts("headline") if said in text and '"opposite"' not in text]
    assert len(replies) == 11
    assert not [
        (poison.false, text) for poison in poisons for text in replies if is_poison_repeated(text, poison)
    ]
    assert all(is_poison_repeated(text.replace("two years", false.false_value), false) for text in replies)
