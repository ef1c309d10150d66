"""Turn documents of the kinds of `kinds` into text, in a process of its own with bounds of memory and time.

Runs as a script, with the bytes of memory
that it may take at most. `hallulab.scenarios.packs.conversion` starts it and asks:

| from | message |
|---|---|
| us | a line `{"suffix", "bytes", "seconds"}`, then so many bytes: the document |
| worker | a line `{"bytes"}`, then so many bytes of JSON: `{"text", "title", "notes"}`, or `{"error"}` |

`seconds` is the processor time that the process may have taken in all when the document is read.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import signal
import sys
import warnings
from contextlib import suppress

from hallulab.scenarios.packs.kinds import KINDS

LARGEST_TEXT = 50_000_000
"""Bytes of a text at most."""

OUT_OF_MEMORY = 3
"""Exit code where the memory does not suffice."""

LONGEST_REASON = 1000
"""Characters of an error at most."""

_PR_SET_PDEATHSIG = 1


def main(memory: int) -> None:
    """Convert document after document until standard input ends."""
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # A package that prints would break the protocol, one that asks would eat a document.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # They end our process, if a group gets them, and it ends this one.
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_AS, memory)
    logging.disable()
    warnings.simplefilter("ignore")
    try:
        while line := asked.readline():
            request = json.loads(line)
            _set_limit(resource.RLIMIT_CPU, math.ceil(request["seconds"]))
            answer, text = _convert(request["suffix"], asked.read(request["bytes"]))
            told.write(json.dumps(answer).encode("ascii") + b"\n")
            told.write(text)
            told.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # a parser's memory is not given back for the next document


def _convert(suffix: str, content: bytes) -> tuple[dict[str, object], bytes]:
    """Return an answer and the JSON that follows it."""
    try:
        found = KINDS[suffix].read(content)
        text = json.dumps(found._asdict(), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the packages raise nearly any exception for a damaged file
        message = " ".join(str(error)[:LONGEST_REASON].split()).rstrip(".")
        return {"error": f"{type(error).__name__}: {message}".removesuffix(": ")}, b""
    if len(text) > LARGEST_TEXT:
        return {"error": f"its text has more than {LARGEST_TEXT:,} bytes"}, b""
    return {"bytes": len(text)}, text


def _set_limit(kind: int, most: int) -> None:
    """Set a limit of this process, where the system has such a one: macOS has none of memory."""
    _, hard = resource.getrlimit(kind)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main(int(sys.argv[1]))
