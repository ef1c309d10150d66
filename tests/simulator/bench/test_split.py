"""What is learnt from and what is measured on have no group in common."""

from __future__ import annotations

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.simulator.bench.split import split_into_folds, split_replies
from tests.builders import labelled


def reply(group: str, split: str | None = None) -> LabelledReply:
    return labelled(id=f"{group}-{split}", group=group, meta={} if split is None else {"split": split})


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


def test_a_reply_that_names_no_split_is_learnt_from_where_others_are_for_testing() -> None:
    replies = [reply("a", "test"), reply("b", "test"), reply("c"), reply("d")]
    found = split_replies(replies, 0)
    assert (found.train, found.test) == (tuple(replies[2:]), tuple(replies[:2]))


def test_replies_that_are_all_for_testing_are_halved() -> None:
    found = split_replies([reply("a", "test"), reply("b", "test")], 0)
    assert (len(found.train), len(found.test)) == (1, 1)


def test_a_split_through_a_group_is_refused() -> None:
    with pytest.raises(UsageError, match="group a is in the test split and in another one"):
        split_replies([reply("a", "train"), reply("a", "test")], 0)


def test_one_group_cannot_be_cut() -> None:
    with pytest.raises(UsageError, match="with --train"):
        split_replies([reply("a"), reply("a")], 0)


def test_every_reply_is_tested_in_one_fold_and_no_group_is_in_two() -> None:
    replies = [reply(group) for group in "aaaabbcdefg"]
    folds = split_into_folds(replies, 3, 0)
    assert sorted(item.group for fold in folds for item in fold.test) == list("aaaabbcdefg")
    assert [fold.tested_groups & {item.group for item in fold.train} for fold in folds] == [set()] * 3
    assert [len(fold.train) + len(fold.test) for fold in folds] == [11] * 3
    assert folds[2].how == "3 folds over sources, seed 0"


def test_folds_are_balanced_by_replies() -> None:
    folds = split_into_folds([reply(group) for group in "aaaabbcdefg"], 3, 0)
    assert sorted(len(fold.test) for fold in folds) == [3, 4, 4]


def test_another_seed_makes_other_folds() -> None:
    replies = [reply(str(group)) for group in range(20)]
    assert split_into_folds(replies, 4, 0) == split_into_folds(replies, 4, 0)
    assert split_into_folds(replies, 4, 0)[0].test != split_into_folds(replies, 4, 1)[0].test


def test_fewer_groups_than_folds_are_refused() -> None:
    with pytest.raises(UsageError, match="--folds 3: the replies are of 2 groups"):
        split_into_folds([reply("a"), reply("a"), reply("b")], 3, 0)


def test_what_folds_learn_from_says_nothing_of_the_datas_own_split() -> None:
    replies = [reply("a", "calibration"), reply("b", "train"), reply("c", "test"), reply("d")]
    folds = split_into_folds(replies, 2, 0)
    assert [one.meta for fold in folds for one in fold.train] == [{}] * 4
    assert sorted(one.id for fold in folds for one in fold.train) == sorted(one.id for one in replies)
