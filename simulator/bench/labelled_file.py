"""Write labelled replies as a file in our own format (docs/labelled-data.md), for `hallulab bench`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hallulab.scenarios.labelled import LabelledReply
from hallulab.simulator.runs.folder import write_atomically


def write_labelled(path: Path, replies: Sequence[LabelledReply]) -> None:
    """Write one reply a line. The file is written whole or not at all.

    Raises:
        OperationalError: it cannot be written.
    """
    lines = [json.dumps(_build_line(reply), ensure_ascii=False) for reply in replies]
    write_atomically(path, "".join(line + "\n" for line in lines))


def _build_line(reply: LabelledReply) -> dict[str, Any]:
    line: dict[str, Any] = {
        "id": reply.id,
        "task": reply.task,
        "question": reply.question,
        "passages": [passage.model_dump(include={"id", "document", "text"}) for passage in reply.passages],
        "reply": reply.reply,
        "label": reply.label,
        "group": reply.group,
        "meta": reply.meta,
    }
    if reply.history:
        line["history"] = [message.model_dump() for message in reply.history]
    if reply.spans is not None:
        line["spans"] = [span.model_dump() for span in reply.spans]
    return line
