"""Bounds for documents that are archives of parts."""

from __future__ import annotations

import io
import zipfile

LARGEST_UNPACKED = 200_000_000
"""Bytes of an archive's parts at most, unpacked."""


def check_unpacked_size(content: bytes) -> None:
    """Raise ValueError if the parts of an archive have too many bytes unpacked."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > LARGEST_UNPACKED:
        raise ValueError(f"it has {unpacked:,} bytes unpacked, more than {LARGEST_UNPACKED:,}")
