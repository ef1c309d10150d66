"""Read what an endpoint answers, and make it harmless before other code, the client included, sees it.

Its length and depth are bounded, keys are removed, every text can be written and every number is finite. Of
the headers only those are read that say when to come again, how it is packed and where it redirects to, of
the status line only the number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import httpx2

from hallulab.agents.models.answers import (
    UNREADABLE,
    BrokenAnswer,
    ModelError,
    is_completion,
    order_choices,
    read_limit,
)
from hallulab.agents.models.complaints import (
    NOT_BUSY_STATUS,
    describe_redirect,
    find_busy_status,
    find_told_error,
    find_unread_packing,
    read_delay,
)
from hallulab.agents.models.decoding import decode_text, is_garbled
from hallulab.agents.models.joined_streams import join_text
from hallulab.agents.models.log_probabilities import gives_token_numbers, is_empty, read_first_token
from hallulab.agents.models.pauses import read_pause
from hallulab.agents.models.redaction import Redaction
from hallulab.scenarios.files.json_text import read_json

LARGEST = 16 << 20
"""Bytes of an answer at most. 4,096 tokens with twenty probabilities each take 7 million."""

_EXCERPT = 2000
"""Characters kept of an answer that is not JSON."""

_BEGINNING = 16 * _EXCERPT
"""Characters of such an answer that are searched for keys."""

JSON = "application/json"

_EVENTS = ("data:", "event:", ": ")

_VALUE = "hallulab.value"
"""Key in a response's extensions of its JSON value."""


def build_response(status: int, value: Any, headers: Mapping[str, str] | None = None) -> httpx2.Response:
    """Return an answer with a JSON value, which `read_value` returns without parsing it again.

    A chat completion is not written as text, too, because nobody reads it.
    """
    is_read = not (isinstance(value, dict) and is_completion(value))
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() if is_read else b""
    return httpx2.Response(
        status, content=content, headers={"Content-Type": JSON, **(headers or {})}, extensions={_VALUE: value}
    )


def read_object(response: httpx2.Response) -> dict[str, Any]:
    """Return the JSON object of an answer, or a complaint that quotes an answer that is none.

    Google tells an error as a list of one object.
    """
    value = read_value(response)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and "error" in value[0]:
        value = value[0]
    return value if isinstance(value, dict) else {"error": {"message": response.text[:_EXCERPT]}}


def read_value(response: httpx2.Response) -> Any:
    """Return the JSON value of an answer; None if `receive` found none in it, or one nested too deep."""
    return response.extensions.get(_VALUE)


async def read_body(response: httpx2.Response, asked: str, redaction: Redaction) -> bytes:
    """Read the body of an answer to its end, unpacked, and close it.

    Args:
        response: its body is not read yet.
        asked: its address, for errors.

    Raises:
        ModelError: it has more than `LARGEST` bytes, cannot be unpacked, or redirects.
        httpx2.RequestError: the connection broke off.
    """
    read = bytearray()
    try:
        if 300 <= response.status_code < 400:
            # Redacted first, too: an address is put into its usual form, and then a key is not found.
            to = redaction.text(response.headers.get("Location", ""))
            told = describe_redirect(response.status_code, to, asked)
            raise ModelError(f"{asked} {redaction.text(told)}")
        if (packing := find_unread_packing(response.headers)) is not None:
            raise ModelError(
                f"{asked} gave an answer packed with {redaction.text(packing)[:20]!r}, which was not asked "
                "for. Switch that off at the endpoint, or at a proxy before it."
            )
        async for chunk in response.aiter_bytes():
            read += chunk
            if len(read) > LARGEST:
                raise ModelError(
                    f"{asked} gave an answer of more than {LARGEST >> 20} MiB, which no model gives. "
                    "Correct its address."
                )
    except httpx2.DecodingError as error:
        raise ModelError(
            f"{asked} gave an answer that cannot be unpacked. Look at the endpoint, or at a proxy before it."
        ) from error
    finally:
        await response.aclose()
    return bytes(read)


async def receive(response: httpx2.Response, asked: httpx2.URL, redaction: Redaction) -> httpx2.Response:
    """Read an answer to its end; return what other code may see of it.

    Args:
        response: the response, its body not yet read.
        asked: its address, for errors.

    Returns:
        The JSON value, or the beginning of an answer that is not JSON, with the status, or that of an error
        that comes with a status of success, and `Retry-After` in seconds.

    Raises:
        ModelError: it has more than `LARGEST` bytes, cannot be unpacked, or redirects.
        BrokenAnswer: it breaks off, or tells an error without saying which, with a status of success.
    """
    status = response.status_code
    try:
        read = await read_body(response, str(asked), redaction)
    except (httpx2.ReadError, httpx2.RemoteProtocolError) as error:
        raise BrokenAnswer(f"{asked}: the connection broke off before the answer was whole.") from error
    text = decode_text(read, response.headers)
    try:
        value = order_choices(_read_json(text, redaction))
    except ValueError:
        value = _read_mislabelled(text, status, str(asked), redaction)
    if isinstance(value, dict) and is_completion(value) and is_garbled(read, text):
        raise ModelError(UNREADABLE)
    told = find_told_error(value) if status < 300 else None
    if told is not None and told.status is None:
        words = told.words or "it does not say which"
        raise BrokenAnswer(f"{asked} answered with status {status} and an error: {words}")
    if told is not None and told.status is not None:
        status, value = told.status, told.body
    if status in NOT_BUSY_STATUS:
        status = find_busy_status(value) or status
    pause = read_pause(response.headers)
    if pause is None and status >= 400:
        pause = read_delay(value)
    headers = {} if pause is None else {"Retry-After": str(pause)}
    if value is not None:
        return build_response(status, value, headers)
    # Cut after the redaction, because half a key would not be found. The first cut is for speed and may leave
    # half a key, so the characters within its reach are dropped.
    begins = redaction.text(text[:_BEGINNING])
    excerpt = begins[: max(0, len(begins) - redaction.reach) if len(text) > _BEGINNING else None][:_EXCERPT]
    return httpx2.Response(status, text=excerpt, headers=headers)


def _read_mislabelled(text: str, status: int, asked: str, redaction: Redaction) -> Any:
    """Return the value of a stream of events that is not called one; None: it is none.

    Raises:
        BrokenAnswer: it breaks off.
    """
    if not text.lstrip().startswith(_EVENTS):
        return None
    found = join_text(text, asked)
    # An error's stream is the error alone.
    if found is None or (status >= 300 and "choices" in found):
        return None
    return _read_json(json.dumps(found), redaction)  # a key may have come in pieces


def _read_json(text: str, redaction: Redaction) -> Any:
    return redaction.value(read_json(text, redaction.text))


LONGEST_TOKEN = 256
"""Characters of a token at most. Tokenizers have tokens of up to 128 spaces."""

_MOST_PROBABLE = 1.5
"""Probabilities of tokens that exclude each other add up to so much at most: servers round, and rescale."""


def find_answer_flaw(body: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Return what is wrong with an answer to a request that no model can have given; None if nothing is."""
    choice, limit = found["choices"][0], read_limit(body)
    text = choice["message"].get("content")
    if limit is not None and isinstance(text, str) and len(text) > LONGEST_TOKEN * limit:
        return f"{len(text):,} characters where {limit:,} tokens were asked for"
    logprobs = choice.get("logprobs")
    if not body.get("logprobs") or is_empty(logprobs) or gives_token_numbers(logprobs):
        return None
    first = read_first_token(logprobs)
    if first is None:
        return "no log-probabilities of tokens, but something else"
    total = math.fsum(math.exp(likely.logprob) for likely in first)
    return f"probabilities of a token that add up to {total:.2f}" if total > _MOST_PROBABLE else None
