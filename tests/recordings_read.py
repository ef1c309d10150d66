"""All answers of models in the recordings of the repository."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from tests.places import ROOT

RECORDINGS = ROOT / "tests" / "recordings"


def read_answers() -> Iterator[dict[str, Any]]:
    """Yield the body of each recorded chat completion."""
    for path in sorted(RECORDINGS.rglob("*.jsonl*")):
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        for line in text.splitlines():
            answer = json.loads(line).get("answer")
            body = answer.get("body") if isinstance(answer, dict) else None
            if isinstance(body, dict) and isinstance(body.get("choices"), list):
                yield body
