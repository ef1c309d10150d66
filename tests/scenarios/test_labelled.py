"""Labelled replies: what a detector sees of them, and what is said of their origin."""

from __future__ import annotations

import pytest

from hallulab.scenarios.transcript import Message
from hallulab.scenarios.turn_views import Origin, TurnView
from tests.builders import EVIDENCE, labelled


def test_a_detector_sees_neither_label_nor_origin() -> None:
    said = (Message(role="user", text="Hello."),)
    reply = labelled("A reply.", True, history=said, question="Why?", meta={"model": "gpt"})
    assert reply.view == TurnView(
        history=said, question="Why?", passages=(EVIDENCE,), reply="A reply.", origin=Origin()
    )


@pytest.mark.parametrize(
    ("meta", "origin"),
    [
        ({}, Origin(collection="d")),
        (
            {"source": "wow", "model": "gpt", "temperature": 1},
            Origin(collection="wow", generator="gpt", temperature=1.0),
        ),
        ({"temperature": "warm", "support": "not_supported"}, Origin(collection="d")),
    ],
)
def test_the_origin_is_read_of_the_meta(
    meta: dict[str, str | int | float | bool | None], origin: Origin
) -> None:
    assert labelled(meta=meta).origin == origin
