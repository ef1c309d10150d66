"""Make `simulator/report/human_turns.jsonl.gz`: `python -m benchmarks.pack_human_turns FILE`.

FILE has a line for each conversation of MTRAG-UN, with `user_turns`, the person's messages, which alone are
kept. `simulator/report/human_turns-license.txt` says where they are from.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from hallulab.simulator.report.realism import HUMAN_TURNS, read_reference


def packed(path: Path) -> bytes:
    """Return the packed file."""
    lines = (json.dumps({"user_turns": one.texts}, ensure_ascii=False) for one in read_reference(path))
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), 9, mtime=0)


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "simulator" / "report" / HUMAN_TURNS
    target.write_bytes(packed(Path(sys.argv[1])))
