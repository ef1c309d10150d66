"""The project's exception tree. Each error carries one sentence that a user can act on.

HallulabError
├── UsageError             the user's input is at fault (exit code 2)
├── NotComparable          runs cannot be held against each other (exit code 3)
└── OperationalError       the world is at fault (exit code 1)
ReplayMiss                 a recording cannot be followed (exit code 1)
"""

from typing import ClassVar


class HallulabError(Exception):
    """Base of all errors that this project raises on purpose; `str(error)` is one clear sentence."""

    EXIT_CODE: ClassVar[int] = 1
    """Exit code of a command that ends with it."""


class UsageError(HallulabError):
    """Bad input: names the file, line or field at fault and the remedy. Exit code 2."""

    EXIT_CODE = 2


class NotComparable(HallulabError):
    """Runs have too little in common: says what. Exit code 3."""

    EXIT_CODE = 3


class OperationalError(HallulabError):
    """Something outside the input failed: network, disk, server, weights. Exit code 1."""


NO_HANDLE = "this process has too many open files. Lower --concurrency, or raise the limit (ulimit -n)."
"""Message of an OperationalError where no file can be opened any more."""


class ReplayMiss(BaseException):
    """The replayed recording has no readable answer to this request.

    It ends the run with exit code 1; `str(error)` is one clear sentence. It is no `Exception`, because much
    code turns those into data (the runner, a detector that loses one of its samples, other people's
    chatbots). With a stale recording, that would quietly make a different run.
    """


def get_first_error(error: BaseException) -> BaseException:
    """Return the first error of tasks that failed together, the one that a user is told; else the error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
