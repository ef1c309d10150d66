"""True documents of other packs."""

from __future__ import annotations

import pytest

from hallulab.scenarios.attacks.attack import choose_distractors
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario

PACK = load_scenario("pregnancy-medication")
OTHERS = {
    document.text
    for name in ("consumer-grievance-india", "migration-labour-rights")
    for document in load_scenario(name).documents
}


def test_they_come_from_the_other_packs_unchanged() -> None:
    chosen = choose_distractors(PACK, 8, 0)
    assert len({document.name for document in chosen}) == 8
    assert {document.text for document in chosen} <= OTHERS


def test_more_contain_the_fewer() -> None:
    assert (
        choose_distractors(PACK, 20, 0)[:8]
        == choose_distractors(PACK, 8, 0)
        != choose_distractors(PACK, 8, 1)
    )


def test_a_name_that_is_taken_gets_a_number() -> None:
    [first] = choose_distractors(PACK, 1, 0)
    taken = PACK.documents[0].model_copy(update={"name": first.name})
    [again] = choose_distractors(PACK.model_copy(update={"documents": (taken,)}), 1, 0)
    assert (again.name, again.text) == (f"{first.name}-2", first.text)


def test_too_many_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        choose_distractors(PACK, 97, 0)
    assert str(caught.value) == (
        "field `attack.distractors`: 97 are asked for, and the built-in packs other than "
        "pregnancy-medication have 96 documents. Give at most 96."
    )
