"""Which threshold a detector decides by, and what it says of it."""

from __future__ import annotations

import pytest

from detectors.base.thresholds import choose_threshold


@pytest.mark.parametrize(
    ("given", "tuned", "corrected", "chosen"),
    [
        (0.3, 0.45, True, (0.3, "given")),
        (None, 0.45, True, (0.45, "tuned")),
        (None, None, True, (0.5, "tuned")),
        (None, None, False, (0.5, "published")),
    ],
)
def test_a_threshold_says_where_it_comes_from(
    given: float | None, tuned: float | None, corrected: bool, chosen: tuple[float, str]
) -> None:
    assert choose_threshold(given, tuned, 0.5, corrected=corrected) == chosen
