"""Two commands on one folder at once: both succeed, or one is refused in a sentence; nothing is damaged."""

from __future__ import annotations

import shutil
import threading
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from tests.fuzz.promises import check_whole
from tests.kit.forked_runs import Ended
from tests.simulator.cli.every_command import State, Workshop, state_of
from tests.simulator.viewer.test_crowd import Client, viewing

ON_HALF = {
    "run": "run -c {fixed}/recorded.yaml --repeats 2 --quiet --replay {fixed}/recorded.jsonl --out half",
    "simulate": "run --no-judge -c {fixed}/recorded.yaml --repeats 2 --quiet --replay {fixed}/recorded.jsonl "
    "--out half",
    "detect": "detect half --detectors lexical,halludetect --quiet --replay {fixed}/recorded.jsonl",
    "report": "report half",
    "annotate-next": "annotate half --next 2",
    "annotate-add": "annotate half --add to-annotate.yaml",
    "export": "export half --detector lexical --out exported.jsonl",
    "compact": "export half --format tables",
    "branch": "branch half --chatbots vanilla --quiet --replay {fixed}/branch.jsonl --out branched",
    "audit": "report half --guards",
    "realism": "realism half --reference {fixed}/people.jsonl --out realism.html",
    "gate": "gate half --against base.json --json g.json",
    "baseline": "compare half --save base2.json",
}
"""Commands on a run that lacks the last conversation and half of the verdicts."""

JUDGING = {"run", "simulate", "detect"}
"""Commands that add to its journals."""

PAIRS = [*combinations_with_replacement(ON_HALF, 2)]


def check_ended(name: str, ended: Ended) -> None:
    """It succeeded, or says in one sentence why not; a gate says that half of a run cannot be judged."""
    assert "Traceback" not in ended.err, ended
    told = ended.last_line
    assert ended.code in ((0, 3) if name == "gate" else (0,)) or told.startswith("error: "), (name, ended)
    assert ended.code in (0, 2, 3), (name, ended)


@pytest.mark.slow
@pytest.mark.parametrize("first", ON_HALF)
def test_two_commands_on_one_folder_do_it_no_harm(workshop: Workshop, tmp_path: Path, first: str) -> None:
    commands = {name: line.format(fixed=workshop.fixed).split() for name, line in ON_HALF.items()}
    whole = workshop.new(tmp_path / "whole")
    halved = journals_of(whole)
    assert workshop.run(commands["run"], whole).code == 0
    judged = journals_of(whole)
    for second in [other for one, other in PAIRS if one == first]:
        place = workshop.new(tmp_path / second)
        pair = (first, second)
        for name, ended in zip(pair, workshop.at_once(commands[first], commands[second], place), strict=True):
            check_ended(name, ended)
        for path in place.rglob("*"):
            if path.is_file() and "knowledge" not in path.parts:
                check_whole(path)
        if JUDGING & {*pair}:
            assert workshop.run(commands["run"], place).code == 0
        held = journals_of(place)
        labels = held.pop("annotations.jsonl", {"none": 1})
        assert held == (judged if JUDGING & {*pair} else halved), second
        assert max(labels.values()) == 1, second
        shutil.rmtree(place)


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_HALF)
def test_a_viewer_beside_a_command_shows_the_run_and_does_it_no_harm(
    workshop: Workshop, tmp_path: Path, name: str
) -> None:
    place, alone = workshop.new(tmp_path / "beside"), workshop.new(tmp_path / "alone")
    command = ON_HALF[name].format(fixed=workshop.fixed).split()
    usual = workshop.run(command, alone)
    with viewing(place) as (client, _):
        ended = threading.Event()
        seen: list[int] = []
        reader = threading.Thread(target=look_until, args=(client, ended, seen))
        reader.start()
        beside = workshop.run(command, place)
        ended.set()
        reader.join()
    check_ended(name, beside)
    assert (beside.code, bool(seen)) == (usual.code, True)
    assert journals_of(place) == journals_of(alone)


def look_until(client: Client, ended: threading.Event, seen: list[int]) -> None:
    """Open the list of runs and one run's pages, again and again; keep their lengths."""
    run = client.get("/").decode().partition('href="/runs/')[2].partition('"')[0]
    assert run
    while not (ended.is_set() and seen):
        seen += [len(client.get(path)) for path in ("/", f"/runs/{run}", f"/runs/{run}/labels")]


def journals_of(place: Path) -> State:
    """The journals of the run, and the labels."""
    found = state_of(place / "half")
    names = ("conversations.jsonl", "verdicts.jsonl", "audit.jsonl", "annotations.jsonl")
    return {name: found[name] for name in names if name in found}
