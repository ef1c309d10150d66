"""Errors of asking a model."""

from __future__ import annotations

from hallulab.scenarios.errors import OperationalError


class ModelError(OperationalError):
    """A model gave no answer: it was unreachable, refused the request or timed out."""


class RefusedRequest(ModelError):
    """The endpoint answered with an error.

    Args:
        reason: one sentence.
        status: the HTTP status, from 300 on.
    """

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class ImpossibleAnswer(ModelError):
    """An answer that the asked model cannot have given. It is not recorded."""


class UnparseableAnswer(ModelError):
    """A model's answer does not have the requested form."""
