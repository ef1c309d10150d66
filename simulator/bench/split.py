"""Choose the labelled replies that detectors learn from, and those that they are measured on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import format_count

SPLIT = "split"
"""Key of `meta` for the part of the data that a reply is in."""
TEST = "test"
"""Its value for replies to measure on."""


@dataclass(frozen=True)
class Split:
    """Two sets of replies without a group in common."""

    train: tuple[LabelledReply, ...]
    """Replies to learn from."""
    test: tuple[LabelledReply, ...]
    """Replies to measure on."""
    how: str
    """Source of the cut, for people."""

    @property
    def tested_groups(self) -> set[str]:
        """The groups measured on."""
        return {reply.group for reply in self.test}


def choose_replies(replies: Sequence[LabelledReply], limit: int | None, seed: int) -> list[LabelledReply]:
    """Draw at most `limit` of the replies by the seed; None: return all, in their order."""
    if limit is None or limit >= len(replies):
        return list(replies)
    return random.Random(seed).sample(list(replies), limit)  # noqa: S311 - a seeded choice of data


def split_replies(replies: Sequence[LabelledReply], seed: int) -> Split:
    """Split by `meta["split"]` where the data has it, else draw one half of the groups for each side.

    All values of `meta["split"]` but `test` are learnt from.

    Raises:
        UsageError: there are not two groups to cut between, or the data's own split cuts through one.
    """
    marked = {reply.group for reply in replies if reply.meta.get(SPLIT) == TEST}
    groups = sorted({reply.group for reply in replies})
    if marked and any(reply.meta.get(SPLIT) not in (TEST, None) for reply in replies):
        train = tuple(reply for reply in replies if reply.meta.get(SPLIT) != TEST)
        both = sorted(marked & {reply.group for reply in train})
        if both:
            raise UsageError(
                f"group {both[0]} is in the test split and in another one. Put it in one of them."
            )
        test = tuple(reply for reply in replies if reply.meta.get(SPLIT) == TEST)
        return Split(train, test, "the data's own split")
    if len(groups) < 2:
        raise UsageError(
            "all replies are of one group, so none can be kept for measuring. Give the data to learn from "
            "with --train."
        )
    chosen = set(random.Random(seed).sample(groups, len(groups) // 2))  # noqa: S311 - a seeded choice
    return Split(
        tuple(reply for reply in replies if reply.group in chosen),
        tuple(reply for reply in replies if reply.group not in chosen),
        f"one half of the groups, chosen with seed {seed}",
    )


def split_into_folds(replies: Sequence[LabelledReply], folds: int, seed: int) -> list[Split]:
    """Make one split a fold: its groups are measured on, all others learnt from. No group is in two folds.

    Groups go to folds in the seed's order, the largest first, each to the fold with the fewest replies so
    far. The data's own split is ignored, and removed from the replies to learn from.

    Raises:
        UsageError: there are fewer groups than folds.
    """
    sizes = Counter(reply.group for reply in replies)
    if len(sizes) < folds:
        raise UsageError(
            f"--folds {folds}: the replies are of {format_count(len(sizes), 'group')}, and no group may "
            "be in two "
            "folds. Give a smaller number."
        )
    groups = random.Random(seed).sample(sorted(sizes), len(sizes))  # noqa: S311 - a seeded choice
    filled = [0] * folds
    fold_of: dict[str, int] = {}
    for group in sorted(groups, key=lambda group: sizes[group], reverse=True):
        fold_of[group] = filled.index(min(filled))
        filled[fold_of[group]] += sizes[group]
    return [
        Split(
            tuple(_remove_mark(reply) for reply in replies if fold_of[reply.group] != fold),
            tuple(reply for reply in replies if fold_of[reply.group] == fold),
            f"{folds} folds over sources, seed {seed}",
        )
        for fold in range(folds)
    ]


def _remove_mark(reply: LabelledReply) -> LabelledReply:
    """Return the reply without its mark. Else detectors would choose thresholds on one split alone."""
    if SPLIT not in reply.meta:
        return reply
    return reply.model_copy(update={"meta": {key: reply.meta[key] for key in reply.meta if key != SPLIT}})
