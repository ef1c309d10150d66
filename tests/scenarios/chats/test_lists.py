"""Lists of traces that are none: a sentence, and no traceback."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.scenarios.chats import langfuse
from hallulab.scenarios.chats import otel as spans
from hallulab.scenarios.chats.values import FormatError, list_in


def test_a_list_is_given_and_a_missing_one_is_empty() -> None:
    assert list_in({"a": [1]}, "a") == [1]
    assert list_in({"a": None}, "a") == list_in({}, "a") == []


@pytest.mark.parametrize("value", [True, 0, "x", {"a": 1}])
def test_anything_else_is_a_flaw_that_names_the_key(value: Any) -> None:
    with pytest.raises(FormatError, match=r"`observations` must be a list\. Correct it\."):
        list(
            langfuse.read_langfuse_spans({"id": "t", "sessionId": "s", "output": "b", "observations": value})
        )
    with pytest.raises(FormatError, match=r"`events` must be a list\. Correct it\."):
        list(spans.read_otel_spans({"traceId": "t", "attributes": {}, "events": value}))
