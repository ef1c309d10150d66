"""Ask for an answer in pieces where somebody watches, and join them to the answer that comes in one.

A streamed chat completion is a list of server-sent events. Each `data:` line is a JSON object with pieces
(`delta`), the last one is `[DONE]`. Only texts for people are streamed: not JSON by a schema, calls of tools,
or decisions by one token. Whoever asked gets the same answer in either case.
Source: OpenAI's API reference, "Chat completion chunk object".
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx2

from hallulab.agents.models.answers import BrokenAnswer, ModelError
from hallulab.agents.models.complaints import WHERE, find_told_error
from hallulab.agents.models.joined_streams import DONE, JoinedCompletion, read_events
from hallulab.agents.models.redaction import Redaction
from hallulab.agents.models.watching import find_text_listener

TELL_EVERY_S = 0.05
"""Seconds between two times that a growing text is told."""

MOST_TOLD = 20_000
"""Characters of a growing text that are told at most. Replies have a tenth of it."""

_NOT_ABOUT_STREAMS = frozenset({401, 403, 408, 409, 413, 425, 429, 502, 503, 504})
"""Statuses of refusals that asking for the whole answer does not change."""

_OF_KEYS = "".join(map(chr, range(ord("!"), ord("~") + 1)))
"""Characters of keys: ASCII without spaces."""


class StreamingSender:
    """Sends requests, as streams of at most `largest` bytes where somebody watches and the endpoint can."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._whole: set[str] = set()
        """Addresses that were found to give whole answers only, or streams that break off."""
        self._broken: set[str] = set()
        """Addresses whose last stream broke off."""

    async def send(
        self, inner: httpx2.AsyncBaseTransport, request: httpx2.Request, redaction: Redaction
    ) -> httpx2.Response:
        """Send a request, tell whoever watches of its text, and return the answer or the joined completion.

        Args:
            request: to an endpoint, with its key.
            redaction: removes the key from what is told; the answer itself still has it.

        Raises:
            httpx2.RequestError: there is no answer.
            BrokenAnswer: a stream broke off. Where one did that was asked for, the next but one answer is
                asked for as a whole.
            ModelError: the endpoint streams unasked, in no form that is known.
        """
        listener, url = find_text_listener(), str(request.url)
        stream = None if listener is None or url in self._whole else _as_stream(request)
        if listener is None or stream is None:
            whole = await inner.handle_async_request(request)
            return await self._join_unasked(whole, request)
        response = await inner.handle_async_request(stream)
        if _is_stream(response):
            text = _GrowingText(listener, redaction)
            try:
                answer = await self._join(response, request, text.add)
            except BrokenAnswer:
                self._note_break(url)
                raise
            finally:
                text.close()
                await response.aclose()
            if answer is not None and "choices" in answer:
                if find_told_error(answer) is not None:
                    self._note_break(url)
                else:
                    self._broken.discard(url)
                text.tell_whole()
                return httpx2.Response(200, content=json.dumps(answer).encode())
        elif response.status_code < 400 or response.status_code in _NOT_ABOUT_STREAMS:
            return response
        else:
            await response.aclose()
        listener("")
        whole = await self._join_unasked(await inner.handle_async_request(request), request)
        if whole.status_code < 400:
            self._whole.add(url)
        return whole

    def _note_break(self, url: str) -> None:
        """Note that a stream broke off; after the second one running, ask for whole answers there."""
        (self._whole if url in self._broken else self._broken).add(url)

    async def _join_unasked(self, response: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
        """Return an answer, joined where the endpoint streams unasked, or because it gives nothing else."""
        if response.status_code >= 400 or not _is_stream(response):
            return response
        try:
            answer = await self._join(response, request, lambda _: None)
        finally:
            await response.aclose()
        if answer is None:
            raise ModelError(
                f"{request.url} gave a stream of events in no form that is known, or without a "
                f"`finish_reason` at its end. {WHERE}"
            )
        return httpx2.Response(200, content=json.dumps(answer).encode())

    async def _join(
        self, response: httpx2.Response, request: httpx2.Request, tell: Callable[[str], None]
    ) -> dict[str, Any] | None:
        """Return the completion of a stream, or the error that it tells; None: it is none that can be joined.

        Raises:
            BrokenAnswer: it broke off.
        """
        joined = JoinedCompletion()
        try:
            async for value in read_events(response, self._largest):
                if value == DONE:
                    return joined.build()
                tell(joined.add(value))
                if joined.has_failed:
                    break
        except (ValueError, httpx2.DecodingError):
            return None
        except (httpx2.ReadError, httpx2.RemoteProtocolError) as error:
            raise BrokenAnswer(f"{request.url}: the stream broke off before its end.") from error
        return joined.finish(str(request.url))


class _GrowingText:
    """Tells of a text as it grows: word by word, so that a key in it is whole when it is looked for."""

    def __init__(self, listener: Callable[[str], None], redaction: Redaction) -> None:
        self._listener = listener
        self._redaction = redaction
        self._text = self._told = ""
        self._told_at = -TELL_EVERY_S
        self._later: asyncio.TimerHandle | None = None
        listener("")

    def add(self, piece: str) -> None:
        """Add a piece, and tell of it now or soon."""
        if not piece or len(self._text) >= MOST_TOLD:
            return
        self._text += piece
        if self._later is None:
            wait = self._told_at + TELL_EVERY_S - time.monotonic()
            if wait > 0:
                self._later = asyncio.get_running_loop().call_later(wait, self._tell)
            else:
                self._tell()

    def close(self) -> None:
        """Tell of nothing more, but for the whole text."""
        if self._later is not None:
            self._later.cancel()

    def tell_whole(self) -> None:
        """Tell of the text, which is whole now."""
        if len(self._text) <= MOST_TOLD:
            self._tell_if_new(self._text)

    def _tell(self) -> None:
        self._later, self._told_at = None, time.monotonic()
        self._tell_if_new(self._text[:MOST_TOLD].rstrip(_OF_KEYS))

    def _tell_if_new(self, text: str) -> None:
        shown = self._redaction.text(text)
        if shown != self._told:
            self._told = shown
            self._listener(shown)


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("Content-Type", "").lower().startswith("text/event-stream")


def _as_stream(request: httpx2.Request) -> httpx2.Request | None:
    """Return a request that asks for the same answer in pieces, with the usage at their end.

    Returns:
        None: the answer is no text for people.
    """
    body = json.loads(request.read() or b"{}")
    if "messages" not in body or body.keys() & {"response_format", "tools"} or body.get("max_tokens") == 1:
        return None
    asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
    left_out = ("host", "content-length", "accept")
    headers = {name: value for name, value in request.headers.items() if name.lower() not in left_out}
    headers["Accept"] = "text/event-stream, application/json"
    content = json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode()
    return httpx2.Request(request.method, request.url, content=content, headers=headers)
