"""Read what an endpoint says in place of a chat completion: its complaint, its status, when to come again.

Endpoints have no common form for errors, and some send them with status 200. Their words are untrusted text:
here they become one printable line. Sources: RFC 9457, and the references of OpenAI, Anthropic, Gemini,
Mistral, OpenRouter, Cloudflare, AWS, FastAPI, TGI, Ollama, llama.cpp and vLLM.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from hallulab.agents.models.error_names import (
    BAD,
    BUSY_NAMES,
    CODES,
    DELAYS,
    HOLDERS,
    MOST_FIELDS,
    NO_ERRORS,
    PLAIN_WORDS,
    PROBLEM,
    STATUS_OF_NAME,
    WORDS,
    list_fields,
    simplify_name,
)
from hallulab.agents.models.pauses import read_seconds
from hallulab.scenarios.files.json_text import parse_json

_LONGEST = 300
"""Characters of a complaint at most."""

_LONGEST_QUOTED = 4_000
"""Characters of a text that is looked at as JSON."""

_DEEPEST = 5
"""Levels of a JSON value in which a complaint is looked for."""

_MOST_PARTS = 3
"""Complaints of a list that are told."""

WHERE = "Does the base URL end where an OpenAI-compatible API begins (usually /v1)?"
"""Advice for an answer of an unknown form."""

_ERROR_CODE = re.compile(r"[45]\d\d")
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|balance|credit|fund)|current quota|available quota|billing|credit balance"
    r"|out of credit|no credits|more credits|add \d+ credits|payment required|spending limit|arrear"
    r"|budget (?:has been )?exceeded|exceeded ?budget|over budget|余额不足|欠费|资源包"
    r"|(?:daily|monthly) (?:free )?(?:allocation|limit|quota)|(?:calls|requests) ?/ ?(?:day|month)",
    re.IGNORECASE,
)
_RATE = re.compile(r"rate.?limit|too many requests|qps|访问量过大|限流", re.IGNORECASE)
_TITLE = re.compile(r"<(?:title|h1)\b[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)
_PAGE = re.compile(r"\s{0,64}<(?:!doctype html|html|head|body|h1|center)\b", re.IGNORECASE)
_XML_WORDS = re.compile(r"<(?:\w{1,20}:)?Message>([^<]{1,300})</", re.IGNORECASE)
_TIME = r"\d[\d.]{0,12}\s?(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?)"
_TOLD_DELAY = re.compile(
    rf"(?:try again|retry|wait)(?: in| after| for)? ({_TIME}(?:\s?{_TIME}){{0,2}})(?![\w%])", re.IGNORECASE
)

RETRYABLE_STATUS = frozenset({408, 409, 424, 425, 429, 498, 499})
"""Client errors worth another try, besides 5xx. TGI fails to generate (424), Groq has no capacity (498), a
proxy lost the request (499)."""

NOT_BUSY_STATUS = frozenset({400, 403, 404, 422})
"""Statuses with which some services say that they are busy, so that only their words do."""

BUSY_STATUS = frozenset({429, 503, 529})
"""Statuses of an endpoint that is busy or loads its model."""

_UNREAD_PACKINGS = frozenset({"br", "zstd", "compress", "x-compress", "x-gzip", "bzip2", "xz", "lzma", "lz4"})
"""Packings that are not read here. Other names, such as `utf-8`, are mistakes, and nothing is packed."""

_UNABLE = frozenset({501, 505})
"""Server errors that say that the server cannot do such a thing at all."""


def is_retryable(status: int) -> bool:
    """Return whether a request that ended with this HTTP status is worth another try."""
    return status in RETRYABLE_STATUS or (status >= 500 and status not in _UNABLE)


def is_out_of_quota(body: Any, pause: float | None = None) -> bool:
    """Return whether a refusal says that no money or quota is left, which no waiting brings back.

    Gemini says so of a limit a minute, too, but tells when to come again: see `read_delay`.

    Args:
        body: the refusal.
        pause: seconds after which its headers say to come again; None: they do not say.
    """
    names = {simplify_name(str(code)) for code in _iter_codes(body)}
    if "insufficientquota" in names:
        return True
    return pause is None and read_delay(body) is None and _QUOTA.search(read_complaint(body)) is not None


def read_delay(body: Any) -> float | None:
    """Return the seconds after which to come again that a complaint tells, in a field or in its words.

    Google has a `retryDelay` ("25s") in the details, others `retry_after`, or "Please try again in 6m0s".
    """
    for error in _iter_errors(body):
        details = error.get("details")
        for holder in [error, *(details[:MOST_FIELDS] if isinstance(details, list) else ())]:
            fields = list_fields(holder) if isinstance(holder, dict) else {}
            for told in (fields[name] for name in DELAYS if name in fields):
                seconds = None if isinstance(told, bool) else read_seconds(str(told)[:30])
                if seconds is not None:
                    return seconds
    found = _TOLD_DELAY.search(read_complaint(body))
    return read_seconds(found[1]) if found else None


def find_busy_status(body: Any) -> int | None:
    """Return the status of a service that is busy, if the name of an error says so; else None."""
    names = [simplify_name(code) for code in _iter_codes(body) if isinstance(code, str)]
    found = next((part for name in names for part in BUSY_NAMES if part in name), None)
    return None if found is None else 503 if found == "overload" else 429


def read_complaint(body: Any) -> str:
    """Return an endpoint's own words about an error, in one printable line; empty if there are none."""
    return put_in_one_line(_find_words(body, _DEEPEST))


def put_in_one_line(text: str) -> str:
    """Return an endpoint's text on one line, printable and shortened."""
    begin = text[: 8 * _LONGEST]
    page = _TITLE.search(begin) if _PAGE.match(begin) else _XML_WORDS.search(begin)
    begin = html.unescape(page[1]) if page else begin
    printable = "".join(letter if letter.isprintable() else " " for letter in begin)
    return " ".join(printable.split())[:_LONGEST]


@dataclass(frozen=True)
class ToldError:
    """An error that an endpoint told with a status of success."""

    status: int | None
    """The HTTP status that such an error has; None: it is not known which error it is."""
    words: str
    """The endpoint's words; perhaps none."""
    body: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The answer, as it would be with that status."""


def find_told_error(body: Any) -> ToldError | None:
    """Return the error that an answer with status 200 tells; None if it tells none."""
    if isinstance(body, list):
        body = body[0] if body and isinstance(body[0], dict) else {}
    if not isinstance(body, dict):
        return None
    choices = body.get("choices")
    if isinstance(choices, list) and choices:
        first = choices[0] if isinstance(choices[0], dict) else {}
        holders = [first.get("error"), body.get("error")]
        found = next((holder for holder in holders if is_an_error(holder)), None)
        base = body.get("base_resp")
        if found is None and isinstance(base, dict) and base.get("status_code") not in (0, None):
            return ToldError(None, read_complaint(base), {"base_resp": base})  # MiniMax withheld an answer
        if found is None:
            return None
        alone = {"error": found}
        status = _find_status(alone)
        if status is not None and status >= 500 and status not in BUSY_STATUS:
            status = None  # the answer had begun, so it broke off: perhaps it does so each time
        return ToldError(status, read_complaint(found), alone)
    if not _tells_an_error(body):
        return None
    words = read_complaint(body)
    status = _find_status(body) or (429 if _RATE.search(words) else None)
    return ToldError(status, words, body)


def describe_no_completion(status: int, body: Any, text: str) -> str:
    """Say what an answer is that is no chat completion: the end of a sentence that names the address.

    Args:
        status: the HTTP status, below 400.
        body: its JSON object, or what stands for it.
        text: its text, perhaps cut.
    """
    if status == 202:
        return (
            "accepted the request (status 202) and gave no reply. hallulab asks for the result of a job "
            "later only of a bot of the kind `http`."
        )
    if not text.strip():
        return f"gave an empty answer (status {status}). {WHERE}"
    if _PAGE.match(text):
        title = put_in_one_line(text) if _TITLE.search(text) else ""
        return f"gave a web page{f' ({title[:80]!r})' if title else ''} and no chat completion. {WHERE}"
    if text.lstrip().startswith(("data:", "event:")):
        return "gave a stream of events that it does not call one (its content type is no text/event-stream)."
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and isinstance(first.get("text"), str) and "message" not in first:
        return (
            "gave a completion of a text, and no chat completion. Give the base URL of an API that answers "
            "chats at /chat/completions."
        )
    if choices == []:
        withheld = any(
            "filter" in str(name).lower() or simplify_name(str(name)) == "promptfeedback" for name in body
        )
        why = ": its content filter withheld the answer" if withheld else ""
        return f"gave a chat completion without choices{why}."
    return f"gave an answer that is no chat completion: {text[:120]!r}. {WHERE}"


def is_broken(status: int, body: Any, text: str) -> bool:
    """Return whether an answer that is no chat completion may be one when it is asked for again.

    Args:
        status: the HTTP status.
        body: its JSON value; None: it is no JSON.
        text: its text.
    """
    begun = text.strip()
    without = isinstance(body, dict) and body.get("choices") == []
    return status == 200 and (not begun or without or (body is None and begun.startswith("{")))


def describe_redirect(
    status: int, location: str, asked: str, remedy: str = "Give that address as the base URL."
) -> str:
    """Say where an answer redirects to: the end of a sentence that names the address.

    The address is told without user name, password and query, which may hold secrets, and as a base URL.
    """
    try:
        parts = urlsplit(urljoin(asked, location))
        port = f":{parts.port}" if parts.port else ""
        to = f"{parts.scheme}://{parts.hostname}{port}{parts.path}" if parts.hostname else ""
    except ValueError:
        to = ""
    if not location or not to:
        return f"gave no reply but status {status}. Correct the base URL."
    told = to.rstrip("/").removesuffix("/chat/completions").removesuffix("/models")
    return f"redirects (status {status}) to {put_in_one_line(told)}. {remedy}"


def find_unread_packing(headers: httpx2.Headers) -> str | None:
    """Return how an answer is packed, as it says, if in a way that is not read here; else None."""
    packed = [one.strip() for one in headers.get("content-encoding", "").split(",")]
    return next((one for one in packed if one.lower() in _UNREAD_PACKINGS), None)


def _find_words(body: Any, depth: int) -> str:
    """Return the words of a complaint in any of the forms."""
    if isinstance(body, str):
        text = body.strip()
        if depth and text.startswith(("{", "[")) and len(text) <= _LONGEST_QUOTED:
            with suppress(ValueError):  # routers quote what their upstream said
                return _find_words(parse_json(text), depth - 1) or text
        return text
    if depth == 0 or not body:
        return ""
    if isinstance(body, list):
        parts = [words for item in body[:_MOST_PARTS] if (words := _find_words(item, depth - 1))]
        return "; ".join(dict.fromkeys(parts))
    if not isinstance(body, dict):
        return ""
    fields = list_fields(body)
    found = [
        (name, words)
        for name in (*HOLDERS, *WORDS, *PLAIN_WORDS)
        if (words := _find_words(fields.get(name), depth - 1))
    ]
    if not found:
        inner = (_find_words(value, depth - 1) for value in fields.values() if isinstance(value, dict))
        named = (fields[name] for name in CODES if isinstance(fields.get(name), str))
        lists = [(name, texts[0]) for name, texts in body.items() if isinstance(texts, list) and texts]
        told = [f"{name}: {text.strip()}" for name, text in lists if isinstance(text, str)]
        # `{"seed": ["is not allowed"]}`
        return "; ".join(told[:_MOST_PARTS]) or next((words for words in (*inner, *named) if words), "")
    name, words = found[0]
    if isinstance(fields[name], str):
        # RFC 9457 has a title and a detail; others a kind and a message.
        further = next((more for _, more in found[1:] if more != words), "")
        words = f"{further}: {words}" if name == "detail" and further else _append(words, further)
    raw = fields["metadata"].get("raw") if isinstance(fields.get("metadata"), dict) else None
    words = _append(words, _find_words(raw, depth - 1))
    place = fields.get("loc")
    if isinstance(place, list) and place:
        return f"{'.'.join(str(part) for part in place[:8])}: {words}"
    return words


def _append(words: str, further: str) -> str:
    return f"{words}: {further}" if further and further not in words else words


def is_an_error(holder: Any) -> bool:
    """Return whether a field `error` tells one: it is not empty, and neither a code nor a word of success."""
    if isinstance(holder, dict):
        code = holder.get("code")
        return code not in (0, "0", 200, "200") and (bool(read_complaint(holder)) or code is not None)
    if isinstance(holder, str):
        return simplify_name(holder.strip(" .!")) not in NO_ERRORS and bool(read_complaint(holder))
    return holder is True or (isinstance(holder, list) and bool(read_complaint(holder)))


def _tells_an_error(body: Mapping[str, Any]) -> bool:
    """Return whether an answer without choices is about an error."""
    fields = list_fields(body)
    base = fields.get("baseresp")
    if isinstance(base, dict):
        return base.get("status_code") not in (0, None)
    if says_it_failed(body):
        return True
    if any(fields.get(name) for name in WORDS) or (fields.get("detail") and fields.keys() <= PROBLEM):
        return True
    return bool(fields.get("message") or fields.get("msg")) and (_find_status(body) or 0) >= 400


def says_it_failed(body: Any) -> bool:
    """Return whether a JSON object says of itself that it is an error, whatever else is in it."""
    fields = list_fields(body) if isinstance(body, dict) else {}
    if any(is_an_error(fields.get(name)) for name in ("error", "errors", "fault")):
        return True
    if any(str(fields.get(name)).lower() in BAD for name in ("status", "object", "type")):
        return True
    if fields.get("success") is False or fields.get("ok") is False:
        return True
    codes = [str(fields.get(name)) for name in ("code", "status", "statuscode", "errorcode")]
    return bool(fields.get("message") or fields.get("msg")) and any(map(_ERROR_CODE.fullmatch, codes))


def _iter_errors(body: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a complaint that may hold its code, the inner ones first."""
    found: list[Mapping[str, Any]] = []
    left: list[tuple[Any, int]] = [(body, 0)]
    while left and len(found) < MOST_FIELDS:
        value, depth = left.pop()
        if isinstance(value, list):
            left += [(item, depth + 1) for item in value[:_MOST_PARTS] if depth < _DEEPEST]
        elif isinstance(value, dict):
            found.append(value)
            fields = list_fields(value)
            inner = [*HOLDERS, "detail"]
            left += [(fields[name], depth + 1) for name in inner if name in fields and depth < _DEEPEST]
    return found[::-1]


def _iter_codes(body: Any) -> list[Any]:
    return [
        fields[name]
        for error in _iter_errors(body)
        for fields in (list_fields(error),)
        for name in CODES
        if name in fields and isinstance(fields[name], (str, int)) and not isinstance(fields[name], bool)
    ]


def _find_status(body: Any) -> int | None:
    """Return the HTTP status that an error tells by a number, or by its name."""
    codes = _iter_codes(body)
    for code in codes:
        number = int(code) if isinstance(code, int) or (len(code) == 3 and code.isdecimal()) else 0
        if 400 <= number <= 599:
            return number
    for code in codes:
        name = simplify_name(code) if isinstance(code, str) else ""
        for part, status in STATUS_OF_NAME:
            if part in name:
                return status
    return None
