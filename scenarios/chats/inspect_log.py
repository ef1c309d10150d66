"""Logs of Inspect: an archive `.eval` with a file a sample, or one JSON file with `samples`."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, require_object, skip_wrong
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import get_text, read_json_values
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import open_to_read
from hallulab.scenarios.files.json_text import parse_json

LARGEST_SAMPLE = 200_000_000
"""Bytes of a sample at most."""
_MOST_SAMPLES = 100_000
_SAMPLES = "samples/"
_ARCHIVE = b"PK\x03\x04"


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversation of each sample.

    Raises:
        UsageError: the log is damaged, too large, or packed in a way that Python does not know.
    """
    with open_to_read(path) as file:
        packed = file.read(len(_ARCHIVE)) == _ARCHIVE
    values = _read_archive(path) if packed else ((place, value) for place, _, value in read_json_values(path))
    for number, (place, value) in enumerate(values, start=1):
        with skip_wrong(reading, place):
            sample = require_object(value)
            id, epoch = sample.get("id"), sample.get("epoch")
            own = None if id in (None, "") else f"{id}" if epoch in (None, 1) else f"{id}-epoch-{epoch}"
            model, said = get_text(sample.get("output"), "model"), sample.get("messages")
            one = build_said(said, "messages", reading, f"sample-{number}", own, model)
            yield ReadChat(f"{path}, {place}", one)


def _read_archive(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each sample of an archive."""
    with open_to_read(path) as packed:
        try:
            with zipfile.ZipFile(packed) as archive:
                samples = [
                    one
                    for one in archive.infolist()
                    if one.filename.startswith(_SAMPLES) and one.filename.endswith(".json")
                ]
                if len(samples) > _MOST_SAMPLES:
                    raise UsageError(f"{path}: has more than {_MOST_SAMPLES:,} samples. Split the log.")
                for member in samples:
                    if member.file_size > LARGEST_SAMPLE:
                        raise UsageError(
                            f"{path}: a sample has more than {LARGEST_SAMPLE:,} bytes. Leave it out."
                        )
                    with archive.open(member) as sample:
                        # What the archive says of a size may be wrong.
                        data = sample.read(LARGEST_SAMPLE + 1)
                    yield f"line 1, {member.filename[:200]!r}", parse_json(data.decode("utf-8-sig"))
        except NotImplementedError as error:
            raise UsageError(
                f"{path}: is packed by a method that Python 3.11 does not know. Write it as JSON: "
                "inspect log convert --to json."
            ) from error
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
            raise UsageError(f"{path}: a damaged log of Inspect ({error}). Copy it again.") from error


def recognize(start: FileStart) -> bool:
    """Return whether the file is an archive of samples, or its first object is a sample."""
    value = start.value
    if value is not None:
        return {"epoch", "messages"} <= value.keys()
    return start.data.startswith(_ARCHIVE) and start.path.suffix.lower() == ".eval"


INFO = ChatFormat(
    name="inspect-log",
    about="logs of Inspect",
    endings=(".eval", ".json"),
    read=read,
    recognize=recognize,
    rank=0,
)
