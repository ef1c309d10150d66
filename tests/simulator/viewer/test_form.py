"""The form is made of the schema, and read as an experiment file is."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.viewer.form import MAIN, FormError, list_fields, read_form, show_value


class Parts(Frozen):
    """A value with parts."""

    one: int = 1


class WiderExperiment(Experiment):
    """An experiment of tomorrow."""

    colour: Literal["red", "blue"] = "red"
    """What `hue` it has; None: none
    (`hallulab.simulator.nowhere`)."""
    share: Annotated[float, Field(gt=0, le=1)] | None = Field(default=None, gt=0, le=1)
    """How much."""
    loud: bool = False
    """Whether it is loud."""
    tags: tuple[str, ...] = ("a", "b")
    """Its tags."""
    parts: Parts | None = None
    """Its parts."""
    amount: int | Literal["auto"] = 3
    """Its amount."""


ADDED = {field.name: field for field in list_fields(WiderExperiment)}


def test_every_field_of_the_schema_is_in_the_form_once_those_on_top_first() -> None:
    names = [field.name for field in list_fields(Experiment)]
    assert sorted(names) == sorted(Experiment.model_fields)
    assert tuple(names[: len(MAIN)]) == MAIN


@pytest.mark.parametrize(
    ("name", "kind", "default", "bounds"),
    [
        ("colour", "choice", "red", ""),
        ("share", "number", "", "more than 0, at most 1"),
        ("loud", "switch", "", ""),
        ("tags", "lines", "a, b", ""),
        ("parts", "yaml", "", ""),
        ("amount", "text", "3", ""),
        ("chatbots", "components", "", ""),
        ("seed", "number", "0", ""),
        ("decision_samples", "number", "1", "at least 1, at most 100"),
        ("concurrency", "text", "16", ""),
    ],
)
def test_a_field_has_the_type_default_and_bounds_of_the_schema(
    name: str, kind: str, default: str, bounds: str
) -> None:
    field = ADDED[name]
    assert (field.kind, field.default, field.bounds) == (kind, default, bounds)


def test_what_can_be_chosen_is_that_of_the_schema() -> None:
    assert ADDED["colour"].choices == ("red", "blue")


def test_the_docstring_is_the_help() -> None:
    pieces = [(piece.text, piece.is_code) for piece in ADDED["colour"].help]
    assert pieces == [("What ", False), ("hue", True), (" it has; empty: none.", False)]


def test_every_field_has_help() -> None:
    assert [field.name for field in list_fields(Experiment) if not field.help] == []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"limit": " 3 "}, {"limit": "3"}),
        ({"limit": "", "model": "  "}, {}),
        ({"loud": False}, {"loud": False}),
        ({"tags": " a \n\n b"}, {"tags": ["a", "b"]}),
        ({"tags": "[]"}, {"tags": []}),
        ({"parts": "{one: 2}"}, {"parts": {"one": 2}}),
        ({"parts": "null"}, {}),
        ({"personas": ["asha"]}, {"personas": ["asha"]}),
        ({"personas": []}, {}),
        ({"strange": "1"}, {"strange": "1"}),
        ({"chatbots": ["vanilla"], "chatbots.more": "- editor"}, {"chatbots": ["vanilla", "editor"]}),
    ],
)
def test_a_form_is_read(given: dict[str, Any], read: dict[str, Any]) -> None:
    assert read_form(list(ADDED.values()), given) == {"chatbots": [], "detectors": [], **read}


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"limit": {"a": 1}}, "limit", "must be a text."),
        ({"limit": True}, "limit", "must be a text."),
        ({"chatbots": [1]}, "chatbots", "must be a list of names."),
        ({"parts": "{"}, "parts", "this is no valid YAML"),
        ({"parts": "!!python/object/apply:os.system [ls]"}, "parts", "this is no valid YAML"),
        ({"chatbots.more": "{name: x}"}, "chatbots", "further ones must be a list: begin each with `- `."),
    ],
)
def test_a_value_of_another_kind_is_refused(given: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(FormError) as refused:
        read_form(list(ADDED.values()), given)
    assert refused.value.field == field
    assert str(refused.value).startswith(sentence)


def test_a_value_is_shown_as_it_is_read() -> None:
    shown = {name: show_value(ADDED[name].kind, value) for name, value in VALUES.items()}
    read = read_form(list(ADDED.values()), shown)
    assert {name: read[name] for name in VALUES} == {**VALUES, "share": "0.5"}


VALUES = {"tags": ["x", "y"], "parts": {"one": 2}, "share": 0.5, "colour": "blue"}
