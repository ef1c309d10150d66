"""What comes back from an endpoint, made harmless before anybody else sees it.

Its length and depth are bounded, keys are out of it, every text can be written, every number is one. Of its
headers only `Retry-After` is read, of its status the number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from agents.models.errors import ModelError
from agents.models.redaction import Redaction
from scenarios.files.json_values import read_json

LARGEST = 16 << 20
"""Bytes of an answer. One of 4,096 tokens, with twenty probabilities each, has 7 million."""

_EXCERPT = 2000
"""Characters that are kept of an answer that is no JSON."""

_BEGINNING = 16 * _EXCERPT
"""Characters in which keys are looked for then."""


@dataclass(frozen=True)
class Received:
    """An answer of an endpoint."""

    status: int
    """The HTTP status."""
    value: Any
    """The JSON value, or None where it is none."""
    text: str
    """How the answer begins."""
    retry_after: float | None
    """Seconds after which the endpoint wants to be asked again, or None where it does not say."""


async def receive(response: httpx2.Response, asked: httpx2.URL, redaction: Redaction) -> Received:
    """Read an answer to its end.

    Args:
        response: what came, its body not yet read.
        asked: where it comes from, as the error names it.
        redaction: takes the keys out.

    Raises:
        ModelError: it has more than `LARGEST` bytes, or is not packed as it says.
    """
    read = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            read += chunk
            if len(read) > LARGEST:
                raise ModelError(
                    f"{asked} gave an answer of more than {LARGEST >> 20} MiB, and so none of a model. "
                    "Correct --base-url."
                )
    except httpx2.DecodingError as error:
        raise ModelError(f"{asked} gave an answer that cannot be unpacked. Correct --base-url.") from error
    finally:
        await response.aclose()
    text = read.decode(json.detect_encoding(read), "replace")
    # Cut after the redaction: half a key would not be found. The first cut, for speed, may leave one.
    begins = redaction.text(text[:_BEGINNING])
    excerpt = begins[: max(0, len(begins) - redaction.reach) if len(text) > _BEGINNING else None][:_EXCERPT]
    return Received(response.status_code, _value(text, redaction), excerpt, _retry_after(response.headers))


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
