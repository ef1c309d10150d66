"""Read an endpoint's answer and make it harmless before other code sees it.

Its length and depth are bounded, keys are removed, every text can be written and every number is finite. Of
the headers only `Retry-After` is read, of the status line only the number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from hallulab.agents.models.errors import ModelError
from hallulab.agents.models.redaction import Redaction
from hallulab.scenarios.files.json_values import read_json

LARGEST = 16 << 20
"""Bytes of an answer at most. 4,096 tokens with twenty probabilities each take 7 million."""

_EXCERPT = 2000
"""Characters kept of an answer that is not JSON."""

_BEGINNING = 16 * _EXCERPT
"""Characters of such an answer that are searched for keys."""


@dataclass(frozen=True)
class HttpReply:
    """An answer of an endpoint."""

    status: int
    """The HTTP status."""
    value: Any
    """The JSON value, or None if it is not JSON."""
    text: str
    """The beginning of the answer."""
    retry_after: float | None
    """Seconds after which the endpoint wants to be asked again, or None if it does not say."""


async def receive(response: httpx2.Response, asked: httpx2.URL, redaction: Redaction) -> HttpReply:
    """Read an answer to its end.

    Args:
        response: the response, its body not yet read.
        asked: its address, for errors.
        redaction: removes the keys.

    Raises:
        ModelError: it has more than `LARGEST` bytes, or cannot be unpacked.
    """
    read = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            read += chunk
            if len(read) > LARGEST:
                raise ModelError(
                    f"{asked} gave an answer of more than {LARGEST >> 20} MiB, which no model gives. "
                    "Correct --base-url."
                )
    except httpx2.DecodingError as error:
        raise ModelError(f"{asked} gave an answer that cannot be unpacked. Correct --base-url.") from error
    finally:
        await response.aclose()
    text = read.decode(json.detect_encoding(read), "replace")
    # Cut after the redaction, because half a key would not be found. The first cut is for speed and may leave
    # half a key, so the characters within its reach are dropped.
    begins = redaction.text(text[:_BEGINNING])
    excerpt = begins[: max(0, len(begins) - redaction.reach) if len(text) > _BEGINNING else None][:_EXCERPT]
    return HttpReply(response.status_code, _value(text, redaction), excerpt, _retry_after(response.headers))


def _value(text: str, redaction: Redaction) -> Any:
    try:
        return redaction.value(read_json(text, redaction.text))
    except ValueError:
        return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers["Retry-After"])
    except (KeyError, ValueError):
        return None
    return seconds if 0 <= seconds < math.inf else None
