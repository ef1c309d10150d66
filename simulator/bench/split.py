"""Split labelled replies into folds, and judge each fold after learning from the others."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hallulab.agents.progress import bars
from hallulab.detectors.base.protocol import Detector, TrainableDetector
from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import format_count, shorten_line
from hallulab.simulator.bench.evaluate import Evaluation, evaluate, join_folds
from hallulab.simulator.engine.replies import ReplyJudge

SPLIT = "split"
"""Key of `meta` for the part of the data that a reply is in."""
TEST = "test"
"""Its value for replies to measure on."""


@dataclass(frozen=True)
class Split:
    """Two sets of replies without a group in common."""

    train: tuple[LabelledReply, ...]
    test: tuple[LabelledReply, ...]
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

    All values of `meta["split"]` but `test` are learnt from, and replies without one.

    Raises:
        UsageError: there are not two groups to cut between, or the data's own split cuts through one.
    """
    marked = {reply.group for reply in replies if reply.meta.get(SPLIT) == TEST}
    groups = sorted({reply.group for reply in replies})
    train = tuple(reply for reply in replies if reply.meta.get(SPLIT) != TEST)
    if marked and train:
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
            f"--folds {folds}: the replies are of {format_count(len(sizes), 'group')}, and no group may be "
            "in two folds. Give a smaller number."
        )
    groups = random.Random(seed).sample(sorted(sizes), len(sizes))  # noqa: S311 - a seeded choice
    # The largest first: small groups even out what large ones leave uneven.
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


class CrossValidation:
    """Train detectors for each split, and judge the replies.

    Detectors that learn judge each split's tested replies, in this process. Others judge all replies once.

    Args:
        splits: one, or one a fold.
        tested: some of the replies that the splits measure on.
        concurrency: replies judged at once by a detector without batches, in each process.
    """

    def __init__(
        self, splits: Sequence[Split], tested: Sequence[LabelledReply], concurrency: int, quiet: bool
    ) -> None:
        self._tested, self._concurrency = tested, concurrency
        self._quiet = quiet
        self._parts: list[tuple[Split, list[int]]] = []
        for split in splits:
            groups = split.tested_groups
            places = [place for place, reply in enumerate(tested) if reply.group in groups]
            if places:
                self._parts.append((split, places))
        self.not_trained: dict[str, str] = {}
        """Detectors that use the model they come with, and why this data could not train them."""

    async def evaluate(
        self, detectors: Sequence[Detector], seed: int, juries: Sequence[ReplyJudge] | None = None
    ) -> list[Evaluation]:
        """Evaluate the detectors, and return the results in their order.

        Those that learn go first, so errors in training come before any model is asked.

        Args:
            juries: who judges for each, unless it learns here; None: this process.

        Raises:
            UsageError: a detector learns from one fold's training part and not from another's, or raised
                something else.
        """
        found: dict[str, Evaluation] = {}
        by_name = (
            {} if juries is None else {one.name: jury for one, jury in zip(detectors, juries, strict=True)}
        )
        with bars(self._quiet) as shown:
            for detector in sorted(detectors, key=lambda one: not isinstance(one, TrainableDetector)):
                judged = partial(shown.advance, shown.add_task(detector.name, total=len(self._tested)))
                jury = by_name.get(detector.name)
                if isinstance(detector, TrainableDetector):
                    found[detector.name] = await self._evaluate_learner(detector, seed, judged, jury)
                else:
                    found[detector.name] = await self._evaluate_once(detector, judged, jury)
        return [found[detector.name] for detector in detectors]

    async def _evaluate_once(
        self, detector: Detector, judged: Callable[[int], object], jury: ReplyJudge | None
    ) -> Evaluation:
        return await evaluate(detector, self._tested, self._concurrency, judged, jury=jury)

    async def _evaluate_learner(
        self, detector: TrainableDetector, seed: int, judged: Callable[[int], object], jury: ReplyJudge | None
    ) -> Evaluation:
        evaluations: list[Evaluation] = []
        if not any(split.train for split, _ in self._parts):
            self.not_trained[detector.name] = "this data is for measuring."
            return await self._evaluate_once(detector, judged, jury)
        for split, places in self._parts:
            seconds = self._train(detector, split, seed, first=not evaluations)
            if seconds is None:
                return await self._evaluate_once(detector, judged, jury)
            replies = [self._tested[place] for place in places]
            evaluations.append(await evaluate(detector, replies, self._concurrency, judged, seconds))
        if len(evaluations) == 1:
            return evaluations[0]
        return join_folds(evaluations, [places for _, places in self._parts])

    def _train(self, detector: TrainableDetector, split: Split, seed: int, *, first: bool) -> float | None:
        """Train, and return the seconds; None if the detector keeps its own model for all splits."""
        started = time.perf_counter()
        try:
            detector.fit(split.train, seed)
        except UsageError as error:
            if not first:
                raise
            self.not_trained[detector.name] = str(error)
            return None
        except HallulabError:
            raise
        except Exception as error:
            reason = shorten_line(f"{type(error).__name__}: {error}").rstrip(".")
            raise UsageError(f"detector {detector.name}: its `fit` raised {reason}.") from error
        return time.perf_counter() - started
