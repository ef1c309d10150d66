"""Pack recordings for the repository: `python -m benchmarks.pack_recordings FROM TO`.

Every `.jsonl` with content in the folder FROM becomes a `.jsonl.gz` in TO, without what no replay reads:
identifiers and times of requests, bytes of tokens (they follow from the tokens), and the likely tokens of a
decision that are none of its options. A decision then takes about 65 bytes instead of 200.

Log-probabilities are rounded to five decimals. So the numbers of a replay may differ from the recorded ones
in the fifth.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.command import build_parser
from hallulab.scenarios.files.json_text import read_lines

OPTIONS = frozenset({"yes", "no", "not", "fact", "talk"})
"""Options that detectors offer (`Session.choose`), in lower case."""

_UNREAD = ("id", "created", "system_fingerprint", "service_tier")
_DIGITS = 5


def main() -> None:
    """Pack the recordings and print the bytes saved."""
    parser = build_parser("pack_recordings", __doc__)
    parser.add_argument("source", type=Path, metavar="FROM", help="folder with recordings")
    parser.add_argument("target", type=Path, metavar="TO", help="folder for the packed ones")
    given = parser.parse_args()
    given.target.mkdir(parents=True, exist_ok=True)
    for path in sorted(path for path in given.source.glob("*.jsonl") if path.stat().st_size):
        packed = given.target / f"{path.name}.gz"
        entries = pack(path, packed)
        size = packed.stat().st_size
        print(f"{packed.name}: {size / 1024:,.0f} KiB, {size / max(entries, 1):.0f} bytes an entry")


def pack(source: Path, target: Path) -> int:
    """Write the packed recording, the same bytes each time; return the number of entries.

    Raises:
        UsageError: a line of the recording is not JSON.
    """
    lines = [
        json.dumps(lean(entry), ensure_ascii=False, separators=(",", ":")) for _, entry in read_lines(source)
    ]
    data = "".join(line + "\n" for line in lines).encode()
    target.write_bytes(gzip.compress(data, compresslevel=9, mtime=0))
    return len(lines)


def lean(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry without what no replay reads."""
    if entry["kind"] != "model":
        return dict(entry)
    answer = entry["answer"]
    body = {key: value for key, value in answer["body"].items() if key not in _UNREAD}
    if "usage" in body:
        body["usage"] = {key: value for key, value in body["usage"].items() if key != "total_tokens"}
    if "choices" in body:
        body["choices"] = [_choice(choice) for choice in body["choices"]]
    return {**entry, "answer": {**answer, "latency_s": round(answer["latency_s"], 2), "body": body}}


def _choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(choice)
    if "logprobs" in choice:
        tokens = choice["logprobs"]["content"]
        found["logprobs"] = {"content": [_decision(token) for token in tokens]}
    return found


def _decision(token: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the token and those likely ones that are options; keep all where none is."""
    likely = token.get("top_logprobs", [])
    options = [one for one in likely if one["token"].strip().lower() in OPTIONS]
    return {**_token(token), "top_logprobs": [_token(one) for one in options or likely]}


def _token(token: Mapping[str, Any]) -> dict[str, Any]:
    return {"token": token["token"], "logprob": round(token["logprob"], _DIGITS)}


if __name__ == "__main__":
    main()
