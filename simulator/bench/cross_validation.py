"""Train detectors on each split, and judge its tested replies."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from hallulab.agents.machine.progress import bars
from hallulab.detectors.base.protocol import Detector, TrainableDetector
from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import shorten_line
from hallulab.simulator.bench.evaluate import Evaluation, evaluate, join_folds
from hallulab.simulator.bench.split import Split


class CrossValidation:
    """Train detectors for each split, and judge the replies.

    Detectors that learn judge each split's tested replies. Others judge all replies once.

    Args:
        splits: one, or one a fold.
        tested: some of the replies that the splits measure on.
        concurrency: replies judged at once by a detector without batches.
        quiet: no progress bars.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        tested: Sequence[LabelledReply],
        concurrency: int,
        quiet: bool,
    ) -> None:
        self._tested, self._concurrency = tested, concurrency
        self._quiet = quiet
        places = [_find_places(split, tested) for split in splits]
        self._parts = [(split, found) for split, found in zip(splits, places, strict=True) if found]
        self.not_trained: dict[str, str] = {}
        """Detectors that use the model they come with, and why this data could not train them."""

    async def evaluate(self, detectors: Sequence[Detector], seed: int) -> list[Evaluation]:
        """Evaluate the detectors, and return the results in their order.

        Those that learn go first, so errors in training come before any model is asked.

        Raises:
            UsageError: a detector learns from one fold's training part and not from another's, or raised
                something else.
        """
        found: dict[str, Evaluation] = {}
        with bars(self._quiet) as shown:
            for detector in sorted(detectors, key=lambda one: not isinstance(one, TrainableDetector)):
                judged = partial(shown.advance, shown.add_task(detector.name, total=len(self._tested)))
                if isinstance(detector, TrainableDetector):
                    found[detector.name] = await self._of_learner(detector, seed, judged)
                else:
                    found[detector.name] = await evaluate(detector, self._tested, self._concurrency, judged)
        return [found[detector.name] for detector in detectors]

    async def _of_learner(
        self, detector: TrainableDetector, seed: int, judged: Callable[[int], object]
    ) -> Evaluation:
        evaluations: list[Evaluation] = []
        if not any(split.train for split, _ in self._parts):
            self.not_trained[detector.name] = "this data is for measuring."
            return await evaluate(detector, self._tested, self._concurrency, judged)
        for split, places in self._parts:
            seconds = self._train(detector, split, seed, first=not evaluations)
            if seconds is None:
                return await evaluate(detector, self._tested, self._concurrency, judged)
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


def _find_places(split: Split, tested: Sequence[LabelledReply]) -> list[int]:
    """Return the positions of the tested replies that the split measures on."""
    groups = split.tested_groups
    return [place for place, reply in enumerate(tested) if reply.group in groups]
