"""What the pages of the viewer share: reading what a page sent, and refusing it."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.files.json_text import read_json, replace_surrogates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


LARGE = 1 << 18
"""Bytes of a page above which it is kept packed."""

PIECE = 1 << 16
"""Bytes of such a page that are sent at a time."""


def register_turns() -> None:
    """Let addresses have `{turn:turn}`: the index of a turn, of nine digits at most.

    Larger ones are in no conversation, and neither the index nor Python takes all of them.
    """
    from starlette.convertors import IntegerConvertor, register_url_convertor

    class TurnConvertor(IntegerConvertor):
        regex = "[0-9]{1,9}"

    register_url_convertor("turn", TurnConvertor())


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object that a page sent; an empty one, if it sent something else."""
    try:
        value = read_json(await request.body())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def answer_page(text: str) -> Response:
    """Return an answer of HTML. Half characters, as names of folders may have, become U+FFFD.

    A large page is kept packed until its client takes it, which may be slow.
    """
    from starlette.responses import HTMLResponse, StreamingResponse

    body = replace_surrogates(text).encode()
    if len(body) <= LARGE:
        return HTMLResponse(body)
    return StreamingResponse(_unpack(zlib.compress(body, 1)), media_type="text/html")


async def _unpack(packed: bytes) -> AsyncIterator[bytes]:
    unpacking = zlib.decompressobj()
    while packed:
        yield unpacking.decompress(packed, PIECE)
        packed = unpacking.unconsumed_tail


def answer_json(value: Any, status: int = 200) -> Response:
    """Return an answer of JSON, likewise."""
    from starlette.responses import Response

    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return Response(replace_surrogates(text), status, media_type="application/json")


def refuse(reason: str, status: int = 400) -> Response:
    """Return an answer that says why there is no other one."""
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(replace_surrogates(f"{reason}\n"), status)


def refuse_address() -> Response:
    """Return the answer for an address that leads nowhere."""
    return refuse("There is no such page.", 404)
