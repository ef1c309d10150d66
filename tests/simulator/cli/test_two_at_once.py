"""Two commands on one folder at once: both succeed, or one is refused in a sentence; nothing is damaged."""

from __future__ import annotations

import shutil
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from hallulab.testing.forked_runs import Ended
from tests.fuzz.promises import check_whole
from tests.simulator.cli.every_command import Workshop, state_of

ON_HALF = {
    "run": "run -c {fixed}/recorded.yaml --repeats 2 --quiet --replay {fixed}/recorded.jsonl --out half",
    "simulate": "simulate -c {fixed}/recorded.yaml --repeats 2 --quiet --replay {fixed}/recorded.jsonl "
    "--out half",
    "detect": "detect half --detectors lexical,halludetect --quiet --replay {fixed}/recorded.jsonl",
    "report": "report half",
    "annotate-next": "annotate half --next 2",
    "annotate-add": "annotate half --add to-annotate.yaml",
    "export": "export half --detector lexical --out exported.jsonl",
    "compact": "compact half",
    "branch": "branch half --chatbots vanilla --quiet --replay {fixed}/branch.jsonl --out branched",
    "audit": "audit half",
    "realism": "realism half --reference {fixed}/people.jsonl --out realism.html",
    "gate": "gate half --against base.json --json g.json",
    "baseline": "baseline half --out base2.json",
}
"""Commands on a run that lacks the last conversation and half of the verdicts."""

PAIRS = [*combinations_with_replacement(ON_HALF, 2)]


def check_ended(name: str, ended: Ended) -> None:
    """It succeeded, or says in one sentence why not; a gate says that half of a run cannot be judged."""
    assert "Traceback" not in ended.err, ended
    *warnings, told = ended.err.splitlines() or [""]
    assert all(line.startswith("warning: ") for line in warnings), ended
    assert ended.code in ((0, 3) if name == "gate" else (0,)) or told.startswith("error: "), (name, ended)
    assert ended.code in (0, 2, 3), (name, ended)


@pytest.mark.slow
@pytest.mark.parametrize("first", ON_HALF)
def test_two_commands_on_one_folder_do_it_no_harm(workshop: Workshop, tmp_path: Path, first: str) -> None:
    commands = {name: line.format(fixed=workshop.fixed).split() for name, line in ON_HALF.items()}
    whole = workshop.new(tmp_path / "whole")
    assert workshop.run(commands["run"], whole).code == 0
    judged = {name: held for name, held in state_of(whole / "half").items() if name.endswith(".jsonl")}
    for second in [other for one, other in PAIRS if one == first]:
        place = workshop.new(tmp_path / second)
        for name, ended in zip(
            (first, second), workshop.at_once(commands[first], commands[second], place), strict=True
        ):
            check_ended(name, ended)
        for path in place.rglob("*"):
            if path.is_file() and "knowledge" not in path.parts:
                check_whole(path)
        assert workshop.run(commands["run"], place).code == 0
        held = state_of(place / "half")
        assert {name: held[name] for name in judged} == judged, second
        labels = held.get("annotations.jsonl")
        assert labels is None or max(labels.values()) == 1, second
        shutil.rmtree(place)
