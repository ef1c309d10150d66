"""Make the files of people's messages in `simulator/report`, beside notes that say where they are from.

    python -m benchmarks.pack_human_turns FILE      MTRAG-UN: a line for each conversation, with `user_turns`
    python -m benchmarks.pack_human_turns FOLDER    a copy of github.com/isle-dev/realsim

Of MTRAG-UN the person's messages alone are kept, of realsim counts of them, and no text.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hallulab.simulator.metrics.messages import Messages
from hallulab.simulator.report import people


def pack_lines(values: Iterable[Any]) -> bytes:
    """Return a packed file with a line of JSON for each value."""
    lines = (json.dumps(value, ensure_ascii=False) for value in values)
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), 9, mtime=0)


def pack_turns(path: Path) -> bytes:
    """Return the messages of a file, packed."""
    return pack_lines({"user_turns": one.texts} for one in people.read_reference(path))


def pack_counts(folder: Path) -> bytes:
    """Return counts of realsim's messages, packed.

    Messages without text are left out, and so are copies of a conversation: some are listed in two domains.
    """
    read = [
        tuple(
            one["content"] for one in chat["conversation"] if one["role"] == "user" and one["content"].strip()
        )
        for path in sorted((folder / "real_dialogues").glob("*.json"))
        for chat in json.loads(path.read_text(encoding="utf-8"))
    ]
    return pack_lines(
        {
            field: [int(count) for count in counts]
            for field, counts in Messages(("", "", 0), texts).counts.items()
        }
        for texts in dict.fromkeys(read)
    )


if __name__ == "__main__":
    source = Path(sys.argv[1])
    target = Path(people.__file__).parent
    if source.is_dir():
        (target / people.HUMAN_COUNTS).write_bytes(pack_counts(source))
    else:
        (target / people.HUMAN_TURNS).write_bytes(pack_turns(source))
