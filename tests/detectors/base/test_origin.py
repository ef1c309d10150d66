"""What labelled data says of a reply's origin, and what it must not say."""

from __future__ import annotations

import pytest

from detectors.base.origin import Origin, origin_of
from scenarios.labelled import LabelledReply
from scenarios.transcript import Passage


@pytest.mark.parametrize(
    ("meta", "origin"),
    [
        ({}, Origin(collection="d")),
        ({"source": "wow", "model": "gpt", "temperature": 1}, Origin("wow", "gpt", 1.0)),
        ({"temperature": "warm", "support": "not_supported"}, Origin(collection="d")),
    ],
)
def test_the_origin_is_read_of_the_meta(
    meta: dict[str, str | int | float | bool | None], origin: Origin
) -> None:
    reply = LabelledReply(
        id="1",
        dataset="d",
        task="qa",
        passages=(Passage(id="p#0", document="p", text="Evidence."),),
        reply="A reply.",
        label=True,
        group="g",
        meta=meta,
    )
    assert origin_of(reply) == origin
