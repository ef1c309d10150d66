"""What can go wrong when a model is asked."""

from __future__ import annotations

from scenarios.errors import OperationalError


class ModelError(OperationalError):
    """A model gave no answer: unreachable, refused, timed out, request not accepted."""


class ReplayMiss(BaseException):
    """The recording that is replayed has no answer to this request, so the run cannot be repeated.

    It is no `Exception`: whoever turns failures into data (a detector that loses one of its samples, the
    runner, somebody else's chatbot) would make a quietly different run of a stale recording. It ends the
    run, with exit code 1; `str(error)` is one clear sentence.
    """


class UnparseableAnswer(ModelError):
    """A model answered, but not in the form that was asked for."""
