"""Labels of goals: the reply that is right for a goal, known before anybody replies.

In `personas.yaml` a goal is a text, or keys with values: the goal and its label (docs/scenario-packs.md). A
chatbot's replies to labelled goals are right or wrong without a judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from hallulab.scenarios.transcript import Frozen

Expected = Literal["answer", "decline", "ask-back"]
"""The right reply: an answer, a refusal for want of information, or a question to the user."""

Because = Literal["nowhere", "contradiction", "depends"]
"""Why a goal has no plain answer: it is in no document, two (or parts of one) contradict each other, or it
depends on something that only the user knows."""

EXPECTED_BECAUSE: Mapping[Because, Expected] = {
    "nowhere": "decline",
    "contradiction": "decline",
    "depends": "ask-back",
}


class GoalLabel(Frozen):
    """The right reply to a goal, and why."""

    expect: Expected
    because: Because | None = None
    """Required unless an answer is expected."""
    documents: tuple[str, ...] = ()
    """Names of the documents that have the answer, contradict each other, or say what it depends on."""
    needs: str | None = Field(default=None, min_length=1)
    """The fact that the user must be asked for."""
    says: tuple[str, ...] = ()
    """Words of the documents that contradict each other, such as `15 days` and `21 days`."""

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if (None if self.because is None else EXPECTED_BECAUSE[self.because]) != (
            None if self.expect == "answer" else self.expect
        ):
            raise ValueError(
                f"`because` does not fit `expect: {self.expect}`; give `decline` with `nowhere` or "
                "`contradiction`, `ask-back` with `depends`, and `answer` with none"
            )
        if (self.because == "depends") is (self.needs is None):
            raise ValueError("give `needs`, the fact to ask for, with `because: depends`, and only there")
        if self.because == "nowhere" and self.documents:
            raise ValueError("`documents` must be left out with `because: nowhere`: none has the answer")
        if self.because == "contradiction" and not (self.documents and len(set(self.says)) > 1):
            raise ValueError(
                "give `documents` and `says` with `because: contradiction`: the documents, and at least two "
                "wordings of theirs that contradict each other"
            )
        if self.because != "contradiction" and self.says:
            raise ValueError("give `says` with `because: contradiction` only")
        return self


class LabelledGoal(GoalLabel):
    """A goal of `personas.yaml` with its label."""

    goal: str = Field(min_length=1)


class _LabelledGoals(Frozen):
    goals: dict[int, LabelledGoal]
    """By place among all goals, so that an error names it."""


def split_labels(goals: Sequence[Any]) -> tuple[list[Any], tuple[GoalLabel | None, ...]]:
    """Split goals of `personas.yaml` into texts and labels.

    Returns:
        All goals as texts (whatever is no mapping stays), and the label of each, None without one; the labels
        are empty if no goal has one.

    Raises:
        ValidationError: a label is wrong.
    """
    given = {place: goal for place, goal in enumerate(goals) if isinstance(goal, Mapping)}
    labelled = _LabelledGoals.model_validate({"goals": given}).goals
    texts = [labelled[place].goal if place in labelled else goal for place, goal in enumerate(goals)]
    labels = {
        place: GoalLabel.model_validate(one.model_dump(exclude={"goal"})) for place, one in labelled.items()
    }
    return texts, tuple(map(labels.get, range(len(goals)))) if labels else ()


def join_labels(goals: Sequence[str], labels: Sequence[GoalLabel | None]) -> list[str | dict[str, Any]]:
    """Return goals as `personas.yaml` has them; see `split_labels`.

    >>> join_labels(["Learn the fee", "Learn the limit"], [None, GoalLabel(expect="answer")])
    ['Learn the fee', {'goal': 'Learn the limit', 'expect': 'answer'}]
    """
    if not labels:
        return list(goals)
    return [
        goal if label is None else {"goal": goal, **label.model_dump(mode="json", exclude_defaults=True)}
        for goal, label in zip(goals, labels, strict=True)
    ]
