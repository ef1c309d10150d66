"""The report of a stress test: rows of mean scores with intervals for each dimension, refusals apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, product
from typing import Any

import numpy as np

from hallulab.chatbots.pipeline import DECLINED, Strategy
from hallulab.scenarios.text.wording import choose_noun, format_count, shorten_line
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.failures import MUCH, Reasons, capitalise, format_reason
from hallulab.simulator.rag_trust.config import DIMENSIONS, Dimension, MeasuredAnswer, RagTrustConfig
from hallulab.simulator.rag_trust.scores import PARTS, Scored, score_answer
from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    Floats,
    Interval,
    Rounded,
    compute_plain_interval,
    compute_share_interval,
    explain_no_interval,
)


class RagTrustRow(Frozen):
    """A chatbot with a strategy under an attack, in a dimension; docs/metrics.md explains the fields."""

    dimension: Dimension
    chatbot: str
    model: str
    strategy: Strategy
    poison: float
    distractors: int
    answers: int
    scored: int
    coverage: Rounded | None
    refused: Rounded | None
    score: Rounded | None
    score_ci95: Interval = None
    answered: int
    score_answered: Rounded | None
    score_answered_ci95: Interval = None
    score_refusals_0: Rounded | None
    score_refusals_0_ci95: Interval = None
    change: Rounded | None = None
    change_ci95: Interval = None
    judge: Rounded | None = None
    fake_overlap: Rounded | None = None
    meteor: Rounded | None = None
    similarity: Rounded | None = None
    f1: Rounded | None = None
    precision: Rounded | None = None
    recall: Rounded | None = None


def build_rows(
    config: RagTrustConfig, answers: Sequence[MeasuredAnswer], dimension: Dimension
) -> Iterator[RagTrustRow]:
    """Yield the rows of a dimension: by attack, then model, then chatbot, then strategy."""
    questions = list(dict.fromkeys(answer.question_id for answer in answers))
    cells: dict[tuple[float, int, str, str, str], dict[str, Scored | None]] = {}
    for answer in answers:
        key = (answer.poison, answer.distractors, answer.model, answer.chatbot, answer.strategy)
        cells.setdefault(key, {})[answer.question_id] = score_answer(answer, dimension, config.weights)
    grid = config.get_grid(dimension)
    for attack in grid.attacks:
        poison, distractors = attack.poison_ratio, attack.distractors
        lowest = (grid.poison[0], distractors) if dimension == "factuality" else (poison, grid.distractors[0])
        for model, chatbot, strategy in product(config.answering, config.chatbots, config.strategies):
            who = (model, chatbot.name, strategy)
            cell = cells[poison, distractors, *who]
            yield RagTrustRow(
                dimension=dimension,
                chatbot=chatbot.name,
                model=model,
                strategy=strategy,
                poison=poison,
                distractors=distractors,
                **_count_answers(cell, dimension),
                **_compute_scores([cell.get(name) for name in questions]),
                **_compute_change(
                    cell, cells[*lowest, *who] if lowest != (poison, distractors) else None, questions
                ),
            )


def _count_answers(cell: dict[str, Scored | None], dimension: Dimension) -> dict[str, Any]:
    """Return the counts of a cell, and the means of its parts over the answers that are no refusals."""
    known = [one for one in cell.values() if one is not None]
    answered = [one for one in known if not one.refused]
    return {
        "answers": len(cell),
        "scored": len(known),
        "coverage": len(known) / len(cell) if cell else None,
        "refused": (len(known) - len(answered)) / len(known) if known else None,
        "answered": len(answered),
        **{
            name: float(np.mean([one.parts[name] for one in answered])) if answered else None
            for name in PARTS[dimension]
        },
    }


def _compute_scores(scored: Sequence[Scored | None]) -> dict[str, Any]:
    """Return the three means of a cell with their intervals."""
    counted: dict[str, Callable[[Scored], float]] = {
        "score": lambda one: one.score,
        "score_answered": lambda one: np.nan if one.refused else one.score,
        "score_refusals_0": lambda one: 0.0 if one.refused else one.score,
    }
    found: dict[str, Any] = {}
    for name, count in counted.items():
        values = np.array([np.nan if one is None else count(one) for one in scored], dtype=float)
        found[name], found[f"{name}_ci95"] = _compute_mean(values, compute_share_interval)
    return found


def _compute_change(
    cell: dict[str, Scored | None], base: dict[str, Scored | None] | None, questions: Sequence[str]
) -> dict[str, Any]:
    if base is None:
        return {}
    pairs = [(cell.get(name), base.get(name)) for name in questions]
    values = [np.nan if one is None or other is None else one.score - other.score for one, other in pairs]
    change, ci95 = _compute_mean(np.array(values, dtype=float), compute_plain_interval)
    return {"change": change, "change_ci95": ci95}


def _compute_mean(
    values: Floats, compute_bounds: Callable[[float, Floats], Interval]
) -> tuple[float | None, Interval]:
    """Return the mean of the values that are there (not NaN), and its interval over questions."""
    there = values[~np.isnan(values)]
    if not len(there):
        return None, None
    mean = float(there.mean())
    if len(there) < LEAST_FOR_INTERVAL:
        return mean, None
    return mean, compute_bounds(mean, (there.sum() - there) / (len(there) - 1))


SCHEMA = 2
"""Increase it when the format of `stress.json` changes."""


class Models(Frozen):
    """The models of a stress test, by what stands for them in identities."""

    chatbots: dict[str, str]
    judge: str


class RagTrustReport(Frozen):
    """The content of `stress.json`."""

    schema_version: int = SCHEMA
    config: RagTrustConfig
    models: Models
    questions: int
    rows: tuple[RagTrustRow, ...]
    notes: tuple[str, ...]
    """Sentences on what the numbers leave out and on what flatters them."""
    warnings: tuple[str, ...] = ()
    failed: str | None = None
    """Why `hallulab rag-trust` exits with 1: the judge failed on every answer; None: it does not."""

    def get_rows(self, dimension: Dimension) -> tuple[RagTrustRow, ...]:
        """Return the rows of a dimension."""
        return tuple(row for row in self.rows if row.dimension == dimension)

    def group_rows(self, dimension: Dimension) -> list[list[RagTrustRow]]:
        """Return the rows of a dimension, in a group for each attack."""
        found = groupby(self.get_rows(dimension), lambda row: (row.poison, row.distractors))
        return [list(rows) for _, rows in found]

    def text(self) -> str:
        """Return it as JSON with a final newline."""
        return f"{self.model_dump_json(indent=2)}\n"


def build_report(config: RagTrustConfig, models: Models, answers: Sequence[MeasuredAnswer]) -> RagTrustReport:
    """Count all answers of a stress test."""
    rows = tuple(row for dimension in DIMENSIONS for row in build_rows(config, answers, dimension))
    questions = len({answer.question_id for answer in answers})
    warnings, failed = _find_failures(answers)
    return RagTrustReport(
        config=config,
        warnings=warnings,
        failed=failed,
        models=models,
        questions=questions,
        rows=rows,
        notes=tuple(_render_notes(models, answers, rows)),
    )


def _find_failures(answers: Sequence[MeasuredAnswer]) -> tuple[tuple[str, ...], str | None]:
    """Return what failed where it is much, and why the command fails; None: it does not.

    Where no question was answered, there is no report.
    """
    warnings, failed = [], None
    for name in dict.fromkeys(answer.chatbot for answer in answers):
        own = [answer for answer in answers if answer.chatbot == name]
        lost = [answer.error or "" for answer in own if answer.reply is None]
        if len(lost) > MUCH * len(own):
            warnings.append(_describe_share(f"{name} gave no answer to", lost, len(own), "question"))
    asked = [answer for answer in answers if answer.reply is not None and not answer.refused]
    lost = [answer.error for answer in asked if answer.error is not None]
    if len(lost) > MUCH * len(asked):
        warnings.append(_describe_share("the judge failed on", lost, len(asked), "answer"))
        failed = warnings[-1] if len(lost) == len(asked) else None
    return tuple(map(capitalise, warnings)), failed


def _describe_share(what: str, errors: Sequence[str], whole: int, noun: str) -> str:
    reasons = Reasons()
    for error in errors:
        reasons.add(error)
    part = len(errors)
    why = format_reason(*reasons.find_commonest(), part)
    return f"{what} {part} of {format_count(whole, noun)} ({part / whole:.0%}).{why}"


def _render_notes(
    models: Models, answers: Sequence[MeasuredAnswer], rows: Sequence[RagTrustRow]
) -> list[str]:
    found = [
        f"A refusal is a reply that begins with {DECLINED}. `score` gives it 1, as the paper does, which "
        "flatters whoever refuses; beside it stand the score of the answers alone, and with refusals as 0."
    ]
    own = [name for name, model in models.chatbots.items() if model == models.judge]
    found.append(f"The judge is {shorten_line(models.judge)}.")
    if own:
        which = "all rows" if len(own) == len(models.chatbots) else f"the rows of {', '.join(own)}"
        found.append(
            f"{shorten_line(models.judge)} judges its own answers; models prefer their own, so the judge's "
            f"part may flatter {which}. `judge` names another model."
        )
    few = explain_no_interval(len({answer.question_id for answer in answers}), "question")
    if few is not None:
        found.append(f"No intervals: {few}.")
    elif any(
        getattr(row, name) is not None and getattr(row, f"{name}_ci95") is None
        for row in rows
        for name in ("score", "score_answered", "score_refusals_0", "change")
    ):
        found.append(
            f"There is no interval over fewer than {LEAST_FOR_INTERVAL} questions, nor where all have the "
            "same score between 0 and 1, or the same change."
        )
    failed = Counter(shorten_line(answer.error) for answer in answers if answer.error is not None)
    for reason, times in failed.most_common(3):
        found.append(f"{format_count(times, 'answer')} not or not fully measured: {reason}")
    steps = ("chatbot.generate", "chatbot.answer", "chatbot.process")
    cut = [
        answer
        for answer in answers
        if any(call.purpose in steps and call.finish_reason == "length" for call in answer.calls)
    ]
    if cut:
        found.append(
            f"{len(cut)} of {format_count(len(answers), 'answer')} {choose_noun(len(cut), 'was', 'were')} "
            "cut off at the limit of tokens (`reply_tokens`)."
        )
    return found
