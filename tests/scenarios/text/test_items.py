"""Numbers, contacts, references, dates and names in a text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.items import Item, find_items, name_parts

TEXT = st.text(
    alphabet=st.sampled_from("Aab Rs.T+plus 0129½٣-/@:,()\"'\n₹%é of and Act day may"), max_size=60
) | st.text(max_size=40)


def read(text: str) -> list[tuple[str, str, str]]:
    return [(item.kind, item.text, item.key) for item in find_items(text)]


@pytest.mark.parametrize(
    ("text", "kind", "piece", "key"),
    [
        ("Write to Ab.c@ex.org now.", "contact", "Ab.c@ex.org", "ab.c@ex.org"),
        ("See https://www.Ex.org/a.", "contact", "https://www.Ex.org/a", "ex.org/a"),
        ("File it at cms.rbi.org.in.", "contact", "cms.rbi.org.in", "cms.rbi.org.in"),
        ("Dial 1800-11-4000.", "contact", "1800-11-4000", "1800114000"),
        ("Dial +1 (800) 555-0199.", "contact", "+1 (800) 555-0199", "18005550199"),
        ("Dial (011) 2337-8821.", "contact", "(011) 2337-8821", "01123378821"),
        ("It costs €1.299,50.", "quantity", "€1.299,50", "1299.5 euro"),
        ("The helpline is 15100.", "contact", "15100", "15100"),
        ("It is due under section 45 of it.", "reference", "section 45", "45"),
        ("So says Directive (EU) 2024/1346.", "reference", "Directive (EU) 2024/1346", "2024/1346"),
        ("So says Directive 2013/33/EU.", "reference", "Directive 2013/33/EU", "2013/33"),
        ("It began on 1st of July 2026.", "date", "1st of July 2026", "1 july 2026"),
        ("It began on July 1, 2026.", "date", "July 1, 2026", "1 july 2026"),
        ("It began in May.", "date", "May", "may"),
        ("It takes sixty working days.", "quantity", "sixty working days", "60 day"),
        ("It takes a 60-day notice.", "quantity", "60-day", "60 day"),
        ("It takes forty-five days.", "quantity", "forty-five days", "45 day"),
        ("It is due by T plus five days.", "quantity", "T plus five days", "t+5"),
        ("It is due by T+5.", "quantity", "T+5", "t+5"),
        ("It costs Rs. 1,000.50 now.", "quantity", "Rs. 1,000.50", "1000.5 rupee"),
        ("It costs ₹50 lakh now.", "quantity", "₹50 lakh", "5000000 rupee"),
        ("It costs fifty lakh rupees.", "quantity", "fifty lakh rupees", "5000000 rupee"),
        ("It is 85 per cent.", "quantity", "85 per cent", "85 percent"),
        ("It is 85% of it.", "quantity", "85%", "85 percent"),
        ("It opens at 5 pm.", "number", "5 pm.", "17:00"),
        ("It was the 20th of them.", "number", "20th", "20"),
        ("So says the Consumer Commission.", "name", "Consumer Commission", "consum commiss"),
        ("Ask the Department of Posts' clerk.", "name", "Department of Posts", "depart post"),
        ("It is in INGRAM.", "name", "INGRAM", "ingram"),
    ],
)
def test_an_item_has_a_kind_and_a_key(text: str, kind: str, piece: str, key: str) -> None:
    assert read(text) == [(kind, piece, key)]


@pytest.mark.parametrize(
    "text",
    [
        "You may ask.",
        "Delivery is free.",
        "2. Ask for it.",
        "It says:\n3) Ask for it.",
        "Yes, I do.",
        "One of them is free at one time.",
        "",
    ],
)
def test_there_may_be_no_item(text: str) -> None:
    assert read(text) == []


def test_items_stand_in_order() -> None:
    text = "Call Rao at 1915 within 30 days."
    assert [item.text for item in find_items(text)] == ["Rao", "1915", "30 days"]


def test_a_name_has_parts_where_it_is_joined() -> None:
    name = Item("name", 4, 33, "State Commission and the Bank", "")
    assert [(part.start, part.end, part.text) for part in name_parts(name)] == [
        (4, 20, "State Commission"),
        (29, 33, "Bank"),
    ]


def test_a_single_letter_is_no_part_of_a_name() -> None:
    assert [part.text for part in name_parts(Item("name", 0, 8, "Annex and A", ""))] == ["Annex"]


@given(TEXT)
def test_items_are_slices_that_do_not_overlap(text: str) -> None:
    found = find_items(text)
    assert all(item.text == text[item.start : item.end] != "" for item in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(item.key for item in found)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("4" * 5_000, "4" * 5_000),
        (f"Rs {'4' * 1_000_001}", f"{'4' * 1_000_001} rupee"),
        (f"{'4' * 301} million", f"{'4' * 301} million"),
    ],
)
def test_a_number_too_long_to_be_counted_with_keeps_its_spelling(text: str, key: str) -> None:
    assert [item.key for item in find_items(text)] == [key]
