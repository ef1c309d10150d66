"""Kinds of wrong answers that can be built; kept apart from their builder, which takes long to import."""

from typing import Literal

Wrong = Literal["invented", "misplaced"]
"""Kind of a wrong answer: made up, as in the paper, or from a passage that does not answer the question."""
