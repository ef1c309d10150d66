"""Check whether two run folders hold the same results: `python -m tests.same_results BEFORE AFTER`.

For changes that must not change behaviour. Replies, passages, stops, scores, flags, spans, units and the
tables of the report are compared. Identifiers, versions, times and recorded costs are not, as they may change
once.

Exit code 0: the same. 1: they differ; the first differences are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_UNLIKE = frozenset(
    {"id", "version", "versions", "calls", "conversation", "latency_s", "created", "ledger", "read_how"}
)
"""Keys that are not compared, at any depth: identifiers, fresh measurements, and abilities of endpoints."""
_SHOWN = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args(arguments)
    found = list(differences(results_of(given.before), results_of(given.after)))
    for line in found[:_SHOWN]:
        print(line)
    print("the same" if not found else f"{len(found)} differences")
    return 1 if found else 0


def results_of(folder: Path) -> dict[str, Any]:
    """Return the results of a run by what they are about, without identifiers."""
    conversations = [json.loads(line) for line in _lines(folder / "conversations.jsonl")]
    names = {
        one["id"]: "/".join(str(one[key]) for key in ("persona", "chatbot", "seed")) for one in conversations
    }
    verdicts = [json.loads(line) for line in _lines(folder / "verdicts.jsonl")]
    return {
        "conversations": {names[one["id"]]: _without(one) for one in conversations},
        "verdicts": {
            f"{names[one['conversation']]}/{one['turn']}/{one['detector']}": _without(one) for one in verdicts
        },
        "report": _without(json.loads((folder / "report.json").read_text(encoding="utf-8"))),
    }


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yield each place at which two values of JSON differ, and how."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from differences(before.get(key), after.get(key), f"{place}.{key}" if place else str(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif before != after:
        yield f"{place}: {json.dumps(before)[:100]} → {json.dumps(after)[:100]}"


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in _UNLIKE}
    if isinstance(value, list):
        return [_without(item) for item in value]
    return value


if __name__ == "__main__":
    sys.exit(main())
