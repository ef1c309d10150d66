"""The rows of the tables: mean scores of a cell with intervals, refusals told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from hallulab.chatbots.strategies import Strategy
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.measure.numbers import Interval, Rounded
from hallulab.simulator.measure.statistics import (
    LEAST_FOR_INTERVAL,
    RESAMPLES,
    Floats,
    Integers,
    compute_percentile_interval,
    draw_cluster_weights,
)
from hallulab.simulator.stress.rag_trust.cells import MeasuredAnswer
from hallulab.simulator.stress.rag_trust.config import Dimension, StressConfig
from hallulab.simulator.stress.rag_trust.scoring import PARTS, Scored, score


class StressRow(Frozen):
    """A cell of a dimension: a chatbot with a strategy under an attack."""

    dimension: Dimension
    """What is scored."""
    chatbot: str
    """Name of the chatbot."""
    model: str
    """Name of the model that it asked."""
    strategy: Strategy
    """The prompt strategy."""
    poison: float
    """Share of the documents that matter that are false."""
    distractors: int
    """Number of documents beside the point."""
    answers: int
    """Answers wanted: one a question."""
    scored: int
    """Those with a score: neither the chatbot nor the judge failed."""
    coverage: Rounded | None
    """Scored over wanted."""
    refused: Rounded | None
    """Share of refusals among the scored."""
    score: Rounded | None
    """Mean score, refusals counted as 1: the paper's number."""
    score_ci95: Interval = None
    """Its interval."""
    answered: int
    """Scored answers that are no refusals."""
    score_answered: Rounded | None
    """Mean score of these; None if all are refusals."""
    score_answered_ci95: Interval = None
    """Its interval."""
    score_refusals_0: Rounded | None
    """Mean score, refusals counted as 0."""
    score_refusals_0_ci95: Interval = None
    """Its interval."""
    change: Rounded | None = None
    """Score minus that at the lowest level of the attack, over the questions scored in both."""
    change_ci95: Interval = None
    """Its interval."""
    judge: Rounded | None = None
    """Share of the answered that the judge takes for correct."""
    fake_overlap: Rounded | None = None
    """Share of the answered without the fake answer."""
    meteor: Rounded | None = None
    """Mean METEOR of the answered."""
    similarity: Rounded | None = None
    """Mean similarity of the answered."""
    f1: Rounded | None = None
    """Mean token F1 of the answered."""
    precision: Rounded | None = None
    """Mean precision of the citations of the answered."""
    recall: Rounded | None = None
    """Mean recall of the citations of the answered."""


def build_stress_rows(
    config: StressConfig, answers: Sequence[MeasuredAnswer], dimension: Dimension
) -> Iterator[StressRow]:
    """Yield the rows of a dimension: by attack, then model, then chatbot, then strategy."""
    questions = list(dict.fromkeys(answer.question_id for answer in answers))
    weights = (
        draw_cluster_weights(len(questions), RESAMPLES) if len(questions) >= LEAST_FOR_INTERVAL else None
    )
    cells: dict[tuple[float, int, str, str, str], dict[str, Scored | None]] = {}
    for answer in answers:
        key = (answer.poison, answer.distractors, answer.model, answer.chatbot, answer.strategy)
        cells.setdefault(key, {})[answer.question_id] = score(answer, dimension, config.weights)
    grid = config.grid(dimension)
    for attack in grid.attacks:
        poison, distractors = attack.poison_ratio, attack.distractors
        lowest = (grid.poison[0], distractors) if dimension == "factuality" else (poison, grid.distractors[0])
        for model, chatbot, strategy in product(config.answering, config.chatbots, config.strategies):
            who = (model, chatbot.name, strategy)
            cell = cells[poison, distractors, *who]
            yield StressRow(
                dimension=dimension,
                chatbot=chatbot.name,
                model=model,
                strategy=strategy,
                poison=poison,
                distractors=distractors,
                **_count_answers(cell),
                **_compute_scores([cell.get(name) for name in questions], weights),
                **_change(
                    cell,
                    cells[*lowest, *who] if lowest != (poison, distractors) else None,
                    questions,
                    weights,
                ),
                **_compute_parts(cell, dimension),
            )


def _count_answers(cell: dict[str, Scored | None]) -> dict[str, Any]:
    known = [one for one in cell.values() if one is not None]
    refused = sum(one.refused for one in known)
    return {
        "answers": len(cell),
        "scored": len(known),
        "coverage": len(known) / len(cell) if cell else None,
        "refused": refused / len(known) if known else None,
        "answered": len(known) - refused,
    }


def _compute_scores(scored: Sequence[Scored | None], weights: Integers | None) -> dict[str, Any]:
    """Return the three means of a cell with their intervals."""
    counted: dict[str, Callable[[Scored], float]] = {
        "score": lambda one: one.score,
        "score_answered": lambda one: np.nan if one.refused else one.score,
        "score_refusals_0": lambda one: 0.0 if one.refused else one.score,
    }
    found: dict[str, Any] = {}
    for name, count in counted.items():
        values = np.array([np.nan if one is None else count(one) for one in scored], dtype=float)
        found[name], found[f"{name}_ci95"] = _compute_mean(values, weights)
    return found


def _change(
    cell: dict[str, Scored | None],
    base: dict[str, Scored | None] | None,
    questions: Sequence[str],
    weights: Integers | None,
) -> dict[str, Any]:
    if base is None:
        return {}
    pairs = [(cell.get(name), base.get(name)) for name in questions]
    values = [np.nan if one is None or other is None else one.score - other.score for one, other in pairs]
    change, ci95 = _compute_mean(np.array(values, dtype=float), weights)
    return {"change": change, "change_ci95": ci95}


def _compute_mean(values: Floats, weights: Integers | None) -> tuple[float | None, Interval]:
    """Return the mean of the values that are there (not NaN), and its interval over questions."""
    there = ~np.isnan(values)
    if not there.any():
        return None, None
    mean = float(values[there].mean())
    if weights is None or there.sum() < LEAST_FOR_INTERVAL:
        return mean, None
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = (weights[:, there] @ values[there]) / weights[:, there].sum(axis=1)
    return mean, compute_percentile_interval(drawn)


def _compute_parts(cell: dict[str, Scored | None], dimension: Dimension) -> dict[str, Any]:
    """Return the means of a dimension's parts over the answers that are no refusals."""
    answered = [one for one in cell.values() if one is not None and not one.refused]
    return {
        name: float(np.mean([one.parts[name] for one in answered])) if answered else None
        for name in PARTS[dimension]
    }
