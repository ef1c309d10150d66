"""How far HPT-1 of the annotated runs is corrected by a half of the annotations.

`python -m benchmarks.corrected_gold`; the output stands in docs/studies/corrected.md. All turns of the data
set gold are annotated. A half of the annotations, drawn at random from all turns, or from those of each
chatbot, is kept, 1,000 times, and HPT-1 of each chatbot is corrected by it (PPI++). The true number is that
of all annotations. The model's answers are replayed from tests/recordings.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.detectors_table.samples import FOLDER, KEPT, sample
from benchmarks.planted_report import judged
from hallulab.agents.models.recording import Recording
from hallulab.simulator.bench.chats import LABELS, collect_annotated
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.judged_turns import JudgedTurn, collect_judged_turns
from hallulab.simulator.statistics.intervals import Floats
from hallulab.simulator.statistics.prediction_powered import compute_turn_sums, estimate_means

DETECTORS = ("halludetect", "metarag")
DRAWS = 1_000
SEED = 0
NEAR, FAR = 0.15, 0.3
"""Wanted of the mean error over chatbots, and of the largest."""


def main() -> int:
    """Measure and print; return the exit code."""
    print("| detector | kept annotations | mean error | within ±15% | largest error | within ±30% |")
    print("|---|---|---|---|---|---|")
    for detector in DETECTORS:
        turns, truth = _turns(detector)
        counted = _errors(_numbers(turns, list(truth)), truth)
        mean, largest = counted.mean(), np.abs(counted).max()
        cells = f"{mean:+.0%} | {_told(mean, NEAR)} | {largest:.0%} | {_told(largest, FAR)}"
        print(f"| `{detector}` | as counted | {cells} |")
        for title, by_chatbot in (("half of all turns", False), ("half of each chatbot's turns", True)):
            errors = corrected_errors(turns, truth, by_chatbot=by_chatbot, draws=DRAWS)
            print(f"| `{detector}` | {title} | {' | '.join(_summary(errors))} |", flush=True)
    return 0


def _turns(detector: str) -> tuple[list[JudgedTurn], dict[str, float]]:
    """Return a detector's scored turns, with all annotations, and the true HPT-1 of each chatbot."""
    recording = Recording.replay(FOLDER / f"gold.{detector}.jsonl.gz")
    evaluation = asyncio.run(judged(detector, sample("gold", KEPT, 200), recording))
    conversations, verdicts = collect_annotated([evaluation])
    counts = {
        (one.conversation, one.turn): len(one.spans or ()) for one in verdicts if one.detector == LABELS
    }
    turns = collect_judged_turns(conversations, verdicts, Annotations(counts))
    chatbots = sorted({turn.chatbot for turn in turns[LABELS]})
    numbers = _numbers(turns[LABELS], chatbots)
    return turns[detector], dict(zip(chatbots, numbers, strict=True))


def _numbers(turns: Sequence[JudgedTurn], chatbots: Sequence[str]) -> list[float]:
    """Return HPT-1 of each chatbot as counted."""
    totals = sum_turns(turns, chatbots, lambda turn: (1, turn.spans)).sum(axis=0)
    return [float(spans / number) for number, spans in totals]


def sum_turns(
    turns: Iterable[JudgedTurn], chatbots: Sequence[str], of_turn: Callable[[JudgedTurn], tuple[float, ...]]
) -> Floats:
    """Add up what `of_turn` gives: shape (personas, chatbots, values)."""
    turns = list(turns)
    rows = {person: place for place, person in enumerate(sorted({turn.person for turn in turns}))}
    columns = {name: place for place, name in enumerate(chatbots)}
    values = np.array([of_turn(turn) for turn in turns], dtype=np.float64)
    found = np.zeros((len(rows), len(columns), values.shape[1]))
    np.add.at(
        found, ([rows[turn.person] for turn in turns], [columns[turn.chatbot] for turn in turns]), values
    )
    return found


def _errors(numbers: Sequence[float], truth: Mapping[str, float]) -> Floats:
    errors: Floats = np.array(numbers) / np.array(list(truth.values())) - 1
    return errors


def corrected_errors(
    turns: Sequence[JudgedTurn], truth: Mapping[str, float], *, by_chatbot: bool, draws: int
) -> Floats:
    """Correct HPT-1 by a half of the annotations, many times; return relative errors, (draws, chatbots).

    Draws that leave a chatbot without two annotated turns are drawn again: nothing is corrected there.
    """
    random = np.random.default_rng(SEED)
    owners = np.array([list(truth).index(turn.chatbot) for turn in turns])
    found: list[Floats] = []
    while len(found) < draws:
        order = random.permutation(len(turns))
        kept = order[: len(turns) // 2]
        if by_chatbot:
            own = [order[owners[order] == place] for place in range(len(truth))]
            kept = np.concatenate([some[: (len(some) + 1) // 2] for some in own])
        if np.bincount(owners[kept], minlength=len(truth)).min() < 2:
            continue
        shown = set(kept.tolist())
        known = [
            turn if place in shown else replace(turn, annotated=None) for place, turn in enumerate(turns)
        ]
        by_people = sum_turns(known, list(truth), lambda turn: compute_turn_sums(turn.spans, turn.annotated))
        found.append(_errors([one.value for one in estimate_means(by_people)[:-1]], truth))
    return np.array(found)


def _told(error: float, wanted: float) -> str:
    return "yes" if abs(error) <= wanted else "no"


def _summary(errors: Floats) -> list[str]:
    """Return mean and largest error over chatbots: median, bounds of most draws, and the share near."""
    means, largest = errors.mean(axis=1), np.abs(errors).max(axis=1)
    low, middle, high = np.quantile(means, [0.05, 0.5, 0.95])
    bound = np.quantile(largest, 0.95)
    return [
        f"{middle:+.0%}, 90% in [{low:+.0%}, {high:+.0%}]",
        f"{(np.abs(means) <= NEAR).mean():.0%} of draws",
        f"{np.median(largest):.0%}, 95% below {bound:.0%}",
        f"{(largest <= FAR).mean():.0%} of draws",
    ]


if __name__ == "__main__":
    sys.exit(main())
