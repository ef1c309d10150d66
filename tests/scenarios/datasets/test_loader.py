from __future__ import annotations

import pytest

from hallulab.scenarios.datasets.loader import locate_quotations


@pytest.mark.parametrize(
    ("quotations", "expected"),
    [
        ((), ()),
        (("abc", "abc"), ((0, 3), (4, 7))),
        (("def", "abc"), ((8, 11), (0, 3))),
        (("abc", "abc def"), ((0, 3), (4, 11))),
        (("abc", "abc", "abc"), ((0, 3), (4, 7), None)),
        (("ghi", ""), (None, None)),
    ],
)
def test_the_nth_equal_quotation_is_the_nth_place(
    quotations: tuple[str, ...], expected: tuple[tuple[int, int] | None, ...]
) -> None:
    assert locate_quotations("abc abc def", quotations) == expected


def test_places_of_equal_quotations_do_not_overlap() -> None:
    assert locate_quotations("aaa", ("aa", "aa")) == ((0, 2), None)
