"""What is learnt from and what is measured on have no group in common."""

from __future__ import annotations

import pytest

from scenarios.errors import UsageError
from scenarios.labelled import LabelledReply
from scenarios.transcript import Passage
from simulator.bench.split import split_replies


def reply(group: str, split: str | None = None) -> LabelledReply:
    return LabelledReply(
        id=f"{group}-{split}",
        dataset="d",
        task="qa",
        passages=(Passage(id="p#0", document="p", text="Evidence."),),
        reply="A reply.",
        label=False,
        group=group,
        meta={} if split is None else {"split": split},
    )


def test_one_half_of_the_groups_is_learnt_from() -> None:
    replies = [reply(group) for group in "aabbccdd"]
    found = split_replies(replies, 0)
    groups = [{item.group for item in part} for part in (found.train, found.test)]
    assert (len(groups[0]), len(groups[1]), groups[0] & groups[1]) == (2, 2, set())
    assert len(found.train) + len(found.test) == 8
    assert found.how == "one half of the groups, chosen with seed 0"


def test_another_seed_chooses_other_groups() -> None:
    replies = [reply(str(group)) for group in range(20)]
    assert split_replies(replies, 0).train == split_replies(replies, 0).train
    assert split_replies(replies, 0).train != split_replies(replies, 1).train


def test_the_datas_own_split_holds() -> None:
    replies = [reply("a", "train"), reply("b", "calibration"), reply("c", "test")]
    found = split_replies(replies, 0)
    assert (found.train, found.test) == (tuple(replies[:2]), tuple(replies[2:]))
    assert found.how == "the data's own split"


def test_a_split_through_a_group_is_refused() -> None:
    with pytest.raises(UsageError, match="group a is in the test split and in another one"):
        split_replies([reply("a", "train"), reply("a", "test")], 0)


def test_one_group_cannot_be_cut() -> None:
    with pytest.raises(UsageError, match="with --train"):
        split_replies([reply("a"), reply("a")], 0)
