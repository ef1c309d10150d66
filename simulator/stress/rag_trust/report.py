"""The report of a stress test: the rows of each dimension, and what to know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from hallulab.chatbots.strategies import DECLINED
from hallulab.scenarios.text.wording import choose_noun, format_count, shorten_line
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.measure.statistics import explain_no_interval
from hallulab.simulator.stress.rag_trust.cells import MeasuredAnswer
from hallulab.simulator.stress.rag_trust.config import DIMENSIONS, Dimension, StressConfig
from hallulab.simulator.stress.rag_trust.rows import StressRow, build_stress_rows

SCHEMA = 2
"""Increase it when the format of `stress.json` changes."""


class Models(Frozen):
    """The models of a stress test, by what stands for them in identities."""

    chatbots: dict[str, str]
    """The models that answered, by name."""
    judge: str
    """The judge's."""


class StressReport(Frozen):
    """The content of `stress.json`."""

    schema_version: int = SCHEMA
    """`SCHEMA`."""
    config: StressConfig
    """What was run."""
    models: Models
    """Who answered and who judged."""
    questions: int
    """Questions asked."""
    rows: tuple[StressRow, ...]
    """All dimensions' rows."""
    notes: tuple[str, ...]
    """Sentences on what the numbers leave out and on what flatters them."""

    def of(self, dimension: Dimension) -> tuple[StressRow, ...]:
        """Return the rows of a dimension."""
        return tuple(row for row in self.rows if row.dimension == dimension)

    def groups(self, dimension: Dimension) -> list[list[StressRow]]:
        """Return the rows of a dimension, in a group for each attack."""
        found = groupby(self.of(dimension), lambda row: (row.poison, row.distractors))
        return [list(rows) for _, rows in found]

    def text(self) -> str:
        """Return it as JSON with a final newline."""
        return f"{self.model_dump_json(indent=2)}\n"


def build_stress_report(
    config: StressConfig, models: Models, answers: Sequence[MeasuredAnswer]
) -> StressReport:
    """Count all answers of a stress test."""
    rows = tuple(row for dimension in DIMENSIONS for row in build_stress_rows(config, answers, dimension))
    questions = len({answer.question_id for answer in answers})
    return StressReport(
        config=config,
        models=models,
        questions=questions,
        rows=rows,
        notes=tuple(_render_notes(models, answers)),
    )


def _render_notes(models: Models, answers: Sequence[MeasuredAnswer]) -> list[str]:
    found = [
        f"A refusal is a reply that begins with {DECLINED}. `score` gives it 1, as the paper does, which "
        "flatters whoever refuses; beside it stand the score of the answers alone, and with refusals as 0."
    ]
    own = [name for name, model in models.chatbots.items() if model == models.judge]
    found.append(f"The judge is {shorten_line(models.judge)}.")
    if own:
        rows = "all rows" if len(own) == len(models.chatbots) else f"the rows of {', '.join(own)}"
        found.append(
            f"{shorten_line(models.judge)} judges its own answers; models prefer their own, so the "
            "judge's part "
            f"may flatter {rows}. `judge` names another model."
        )
    few = explain_no_interval(len({answer.question_id for answer in answers}), "question")
    if few is not None:
        found.append(f"No intervals: {few}.")
    failed = Counter(shorten_line(answer.error) for answer in answers if answer.error is not None)
    for reason, times in failed.most_common(3):
        found.append(f"{format_count(times, 'answer')} not or not fully measured: {reason}")
    cut = [answer for answer in answers if _is_cut(answer)]
    if cut:
        found.append(
            f"{len(cut)} of {format_count(len(answers), 'answer')} {choose_noun(len(cut), 'was', 'were')} "
            "cut off at the "
            "limit of tokens (`reply_tokens`)."
        )
    return found


def _is_cut(answer: MeasuredAnswer) -> bool:
    steps = ("chatbot.generate", "chatbot.answer", "chatbot.process")
    return any(call.purpose in steps and call.finish_reason == "length" for call in answer.calls)
