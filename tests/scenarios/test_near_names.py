"""The name that is meant where an unknown one is given."""

from __future__ import annotations

import pytest

from hallulab.scenarios.files.data_files import suggest_key
from hallulab.scenarios.near_names import find_near_name, suggest_name
from hallulab.scenarios.packs.pack_files import PersonasFile
from hallulab.simulator.records.experiment import Experiment


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("halludetct", "halludetect"),
        ("HALLUDETECT", "halludetect"),
        ("metrag", "metarag"),
        ("ragas", None),
        ("", None),
        ("x" * 1_000_000, None),
    ],
)
def test_the_nearest_name_is_found_whatever_the_case_and_length(name: str, near: str | None) -> None:
    assert find_near_name(name, ["halludetect", "metarag", "lexical"]) == near


def test_where_nothing_is_near_nothing_is_added() -> None:
    assert suggest_name("vanila", ["vanilla"]) == " (did you mean `vanilla`?)"
    assert suggest_name("vanila", []) == ""


@pytest.mark.parametrize(
    ("location", "meant"),
    [
        (("chatbot",), "chatbots"),
        (("chatbots", 0, "option"), "options"),
        (("models", "judge", "basurl"), "base_url"),
        (("until_decided", "margn"), "margin"),
        (("until_decided", "UntilDecided", "margn"), "margin"),
        (("attack", "poison_rato"), "poison_ratio"),
        (("prices", "m", "imput"), "input"),
    ],
)
def test_a_key_is_compared_with_those_of_its_own_level(location: tuple[int | str, ...], meant: str) -> None:
    assert suggest_key(Experiment, location) == f" (did you mean `{meant}`?)"


def test_keys_of_personas_are_known_by_their_level() -> None:
    assert suggest_key(PersonasFile, ("personas", 3, "grievence")) == " (did you mean `grievance`?)"
    assert suggest_key(PersonasFile, ("personas", 3, "personas")) == ""
