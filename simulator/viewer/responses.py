"""Shared by the pages of the viewer: reading requests, rendering answers, and refusing."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from hallulab.scenarios.files.json_text import read_json, replace_surrogates
from hallulab.simulator.show.html import load_asset, render_part
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns

if TYPE_CHECKING:
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response


_PACKAGE = "hallulab.simulator.viewer"

_SCRIPTS = ("htmx.min.js", "viewer.js", "beside.js", "annotate.js", "talk.js")

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


async def read_form(request: Request) -> dict[str, list[str]]:
    """Return the fields of a form that a page sent, each with its values; none, if they are too many."""
    try:
        return parse_qs((await request.body()).decode(errors="replace"), max_num_fields=500)
    except ValueError:
        return {}


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object that a page sent; an empty one, if it sent something else."""
    try:
        value = read_json(await request.body())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


@cache
def read_scripts() -> dict[str, str]:
    """Return the scripts of every page by name."""
    return {name: load_asset(_PACKAGE, name) for name in _SCRIPTS}


@cache
def read_style() -> str:
    """Return the style sheet of every page."""
    return load_asset("hallulab.simulator.show", "page.css") + load_asset(_PACKAGE, "viewer.css")


def answer_page(template: str, http_status: int = 200, **values: Any) -> Response:
    """Return an answer of a page, or of a part of one, made of a template of the viewer.

    A large page is kept packed until its client takes it, which may be slow.
    """
    from starlette.responses import HTMLResponse, StreamingResponse

    text = render_part(_PACKAGE, template, style=read_style(), scripts=read_scripts(), **values)
    body = replace_surrogates(text).encode()  # half characters, as names of folders may have, become U+FFFD
    if len(body) <= LARGE:
        return HTMLResponse(body, http_status)
    # The quickest level: it is about memory, not about the way to a browser on this machine.
    return StreamingResponse(_unpack(zlib.compress(body, 1)), media_type="text/html")


async def _unpack(packed: bytes) -> AsyncIterator[bytes]:
    unpacking = zlib.decompressobj()
    while packed:
        yield unpacking.decompress(packed, PIECE)
        packed = unpacking.unconsumed_tail


def answer_json(value: Any, status: int = 200) -> Response:
    """Return an answer of JSON, without half characters."""
    from starlette.responses import Response

    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return Response(replace_surrogates(text), status, media_type="application/json")


def answer_nothing(headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer without a body: after one without headers a browser stays at its page."""
    from starlette.responses import Response

    return Response(status_code=200 if headers else 204, headers=headers)


def refuse(reason: str, status: int = 400) -> Response:
    """Return an answer that says why there is no other one."""
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(replace_surrogates(f"{reason}\n"), status)


def refuse_visit(request: Request, reason: str, status: int) -> Response:
    """Return a page that says why there is no other one, or, for a script, its text."""
    if "text/html" not in request.headers.get("accept", ""):
        return refuse(reason, status)
    title = "There is no such page" if status == 404 else "The page cannot be made"
    return answer_page("refused.html", status, title=title, reason=reason)


def missing_page() -> HTTPException:
    """Return the error for an address that leads nowhere."""
    from starlette.exceptions import HTTPException

    return HTTPException(404)


def find_run(runs: ShownRuns, id: str, update: bool = True) -> ShownRun:
    """Return the run that an address names; `update` reads some of what was added to it.

    Raises:
        HTTPException: there is none.
    """
    run = runs.get(id)
    if run is None:
        raise missing_page()
    if update:
        run.updater.update()
    return run
