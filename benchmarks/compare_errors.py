"""How often `hallulab compare` errs, and what it finds: `python -m benchmarks.compare_errors`.

The output stands in docs/compare.md. Runs are made up: two bots, a detector, two turns a conversation. Each
persona has a rate of hallucinations of its own (a gamma distribution, mean 0.8), which both runs share, and
the hallucinations of a turn are drawn from it (Poisson). Seeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.command import build_parser, format_head, format_row
from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.compare.runs import compare_runs
from hallulab.simulator.compare.setup import ComponentSetup, RunSetup
from hallulab.simulator.compare.summary import (
    ConversationSummary,
    RunSummary,
    TurnSummary,
    VerdictSummary,
)

TRIALS = 200
PERSONAS = (13, 36)
WORSE = 0.5
"""How much more a turn the worse bot hallucinates."""
TURNS, TOKENS = 2, 40
BOTS = ("one", "other")

People = Mapping[str, float]
"""Persona → its rate."""

DESIGNS: dict[str, tuple[Sequence[int], Sequence[int], bool]] = {
    "same seeds": ((0, 1), (0, 1), True),
    "other seeds": ((0, 1), (2, 3), True),
    "two seeds against one": ((0, 1), (2,), True),
    "other personas": ((0, 1), (0, 1), False),
}
"""Name → seeds of the reference and of the run, and whether the personas are the same."""


def make_run(
    random: np.random.Generator, people: Mapping[str, People], seeds: Sequence[int], more: float
) -> RunSummary:
    """Make up a run.

    Args:
        random: draws it.
        people: bot → whom it talks to.
        seeds: of each conversation.
        more: what is added to the rate of every bot.
    """
    chats = []
    for bot, rates in people.items():
        for persona, rate in rates.items():
            for seed in seeds:
                turns = tuple(_make_turn(int(found)) for found in random.poisson(rate + more, TURNS))
                chats.append(
                    ConversationSummary(
                        id=f"{bot}-{persona}-{seed}",
                        scenario="s",
                        persona=persona,
                        chatbot=bot,
                        seed=seed,
                        turns=turns,
                    )
                )
    setup = RunSetup(scenario="s", detectors={"d": ComponentSetup(version="1")})
    return RunSummary(name="made", setup=setup, conversations=tuple(chats))


def _make_turn(found: int) -> TurnSummary:
    verdict = VerdictSummary(flagged=found > 0, spans=found, tokens=min(TOKENS, 8 * found))
    return TurnSummary(user="", reply="", passages="", tokens=TOKENS, verdicts={"d": verdict})


def draw_people(random: np.random.Generator, number: int, name: str) -> People:
    """Draw so many personas with a rate each."""
    return {f"{name}{place}": float(rate) for place, rate in enumerate(random.gamma(2, 0.4, number))}


def compare_made(
    random: np.random.Generator, design: str, personas: int, more: float
) -> Sequence[DifferenceLine]:
    """Compare two made-up runs."""
    seeds, others, same = DESIGNS[design]
    before = {bot: draw_people(random, personas, "p") for bot in BOTS}
    after = before if same else {bot: {**draw_people(random, personas, "q"), "p0": 0.8} for bot in BOTS}
    runs = make_run(random, before, seeds, 0.0), make_run(random, after, others, more)
    return compare_runs(runs).runs[0].differences


def measure_shares(design: str, personas: int, more: float, trials: int) -> tuple[float, float]:
    """Return the shares of the trials in which any line is told apart, and in which any is worse."""
    random = np.random.default_rng([personas, len(design)])
    found = [compare_made(random, design, personas, more) for _ in range(trials)]
    apart = [any(line.is_significant for line in lines) for lines in found]
    worse = [any(line.worse for line in lines) for lines in found]
    return float(np.mean(apart)), float(np.mean(worse))


def render_rows(trials: int, personas: Sequence[int] = PERSONAS) -> list[list[str]]:
    """Return the rows of the table."""
    rows = []
    for design in DESIGNS:
        for number in personas:
            apart, wrong = measure_shares(design, number, 0.0, trials)
            _, found = measure_shares(design, number, WORSE, trials)
            rows.append([design, str(number), f"{apart:.1%}", f"{wrong:.1%}", f"{found:.0%}"])
    return rows


def main() -> None:
    """Print the table."""
    parser = build_parser("compare_errors", __doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    heads = [
        "runs",
        "personas",
        "equal bots told apart",
        "called worse",
        f"bots worse by {WORSE} found worse",
    ]
    print("\n".join(format_head(heads)))
    for row in render_rows(parser.parse_args().trials):
        print(format_row(row))


if __name__ == "__main__":
    main()
