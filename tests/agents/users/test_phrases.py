from __future__ import annotations

import pytest

from hallulab.agents.users.phrases import Phrases

PHRASES = Phrases(r"\bmy goals?\b", r"\ba plan\b|\ba note\b", "#", r"^draft:")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I told My Goal to you.", "My Goal"),
        ("İs that MY GOAL?", "MY GOAL"),
        ("A note, and my goal.", "A note"),
        ("# my goal", "#"),
        ("So:\nDraft: hello", "Draft:"),
        ("Enemy goals, data plan.", None),
        ("A draft: hello", None),
    ],
)
def test_the_first_phrase_is_found_in_any_case_as_it_is_written(text: str, found: str | None) -> None:
    assert PHRASES.find(text) == found
