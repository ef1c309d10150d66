"""What can go wrong when a model is asked."""

from __future__ import annotations

from scenarios.errors import OperationalError


class ModelError(OperationalError):
    """A model gave no answer: unreachable, refused, timed out, request not accepted."""


class UnparseableAnswer(ModelError):
    """A model answered, but not in the form that was asked for."""
