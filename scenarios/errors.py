"""The project's exception tree. Each error carries one sentence a user can act on.

HallulabError
├── UsageError             the user's input is at fault (exit code 2)
└── OperationalError       the world is at fault (exit code 1)
ReplayMiss                 a recording cannot be followed (exit code 1)
"""


class HallulabError(Exception):
    """Base of all errors this project raises on purpose; `str(error)` is one clear sentence."""


class UsageError(HallulabError):
    """Bad input: names the file, line or field at fault and the remedy. Exit code 2."""


class OperationalError(HallulabError):
    """Something outside the input failed: network, disk, server, weights. Exit code 1."""


class ReplayMiss(BaseException):
    """The recording that is replayed has no answer to this request, or none that can be read.

    It is no `Exception`: whoever turns failures into data (a detector that loses one of its samples, the
    runner, somebody else's chatbot) would make a quietly different run of a stale recording. It ends the
    run, with exit code 1; `str(error)` is one clear sentence.
    """
