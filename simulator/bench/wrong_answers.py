"""The kinds of wrong answers that can be built; apart from what builds them, which takes long to import."""

from typing import Literal

Wrong = Literal["invented", "misplaced"]
"""What a wrong answer is: made up, as in the paper, or out of a passage that does not answer the question."""
