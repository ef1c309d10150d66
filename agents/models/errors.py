"""What can go wrong when a model is asked."""

from __future__ import annotations

from scenarios.errors import OperationalError


class ModelError(OperationalError):
    """A model gave no answer: unreachable, refused, timed out, request not accepted."""


class RefusedRequest(ModelError):
    """The endpoint answered with an error.

    Args:
        reason: one sentence.
        status: the HTTP status, from 300 on.
    """

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class UnparseableAnswer(ModelError):
    """A model answered, but not in the form that was asked for."""
