"""Ask for an answer in pieces where somebody watches, and join them to the answer that comes in one.

A streamed chat completion is a list of server-sent events. Each `data:` line is a JSON object with pieces
(`delta`), the last one is `[DONE]`. Only texts for people are streamed: not JSON by a schema, calls of tools,
or decisions by one token. Whoever asked gets the same answer in either case.
Source: OpenAI's API reference, "Chat completion chunk object".
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import httpx2

from hallulab.agents.models.answers import BrokenAnswer, ModelError, join_parts
from hallulab.agents.models.complaints import WHERE, find_told_error
from hallulab.agents.models.finish_reasons import says_why
from hallulab.agents.models.redaction import Redaction
from hallulab.agents.models.watching import find_text_listener
from hallulab.scenarios.files.json_text import read_json

TELL_EVERY_S = 0.05
"""Seconds between two times that a growing text is told."""

MOST_TOLD = 20_000
"""Characters of a growing text that are told at most. Replies have a tenth of it."""

_DONE = "[DONE]"

_NOT_ABOUT_STREAMS = frozenset({401, 403, 408, 409, 413, 425, 429, 502, 503, 504})
"""Statuses of refusals that asking for the whole answer does not change."""

_LINE_END = re.compile(rb"\r\n|\n|\r")

_OF_KEYS = "".join(map(chr, range(ord("!"), ord("~") + 1)))
"""Characters of keys: ASCII without spaces."""

_TEXTS = ("content", "refusal", "reasoning", "reasoning_content")
"""Fields of a message that come in pieces."""

_KEPT = ("id", "created", "model", "system_fingerprint", "service_tier", "usage", "error")
"""Fields of a completion that events of a stream have, too."""


class StreamingSender:
    """Sends requests, as streams where somebody watches and the endpoint can.

    Args:
        largest: bytes of a stream at most.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._whole: set[str] = set()
        """Addresses that were found to give whole answers only, or streams that break off."""
        self._broken: set[str] = set()
        """Addresses whose last stream broke off."""

    async def send(
        self, inner: httpx2.AsyncBaseTransport, request: httpx2.Request, redaction: Redaction
    ) -> httpx2.Response:
        """Send a request, and tell whoever watches of its text.

        Args:
            inner: sends.
            request: to an endpoint, with its key.
            redaction: removes the key from what is told; the answer itself still has it.

        Returns:
            The endpoint's answer; of a stream, the completion that its pieces are of.

        Raises:
            httpx2.RequestError: there is no answer.
            BrokenAnswer: a stream broke off. Where one did that was asked for, the next but one answer is
                asked for as a whole.
            ModelError: the endpoint streams unasked, in no form that is known.
        """
        listener, url = find_text_listener(), str(request.url)
        body = None if listener is None or url in self._whole else _read_text_request(request)
        if listener is None or body is None:
            whole = await inner.handle_async_request(request)
            return await self._join_unasked(whole, request)
        response = await inner.handle_async_request(_as_stream(request, body))
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
            async for data in read_events(response, self._largest):
                if data.strip('"') == _DONE:
                    return joined.build()
                tell(joined.add(read_json(data, str)))
                if joined.has_failed:
                    break
        except (ValueError, httpx2.DecodingError):
            return None
        except (httpx2.ReadError, httpx2.RemoteProtocolError) as error:
            raise BrokenAnswer(f"{request.url}: the stream broke off before its end.") from error
        return joined.finish(str(request.url))


def join_text(text: str, asked: str) -> dict[str, Any] | None:
    """Return the completion of a stream that has come as a whole, or the error that it tells.

    Args:
        text: the events.
        asked: the address, for errors.

    Returns:
        None: it is none that can be joined.

    Raises:
        BrokenAnswer: it broke off.
    """
    event, joined = _Event(), JoinedCompletion()
    try:
        for line in (*_LINE_END.split(text.encode()), b""):
            data = event.add(line)
            if data is not None and data.strip('"') == _DONE:
                return joined.build()
            if data is not None:
                joined.add(read_json(data, str))
            if joined.has_failed:
                break
    except ValueError:
        return None
    return joined.finish(asked)


_FEWEST_TOLD_AGAIN = 12
"""Characters of a text that no answer says twice by chance."""


def join_pieces(pieces: Sequence[str]) -> str:
    """Return the text that pieces make; some services repeat it, as far as it has come, or at the end."""
    if len(pieces) < 3:
        return "".join(pieces)
    grows = all(after.startswith(before) for before, after in pairwise(pieces))
    if grows and len(pieces[-1]) >= _FEWEST_TOLD_AGAIN and len(set(pieces)) > 1:
        return pieces[-1]
    before = "".join(pieces[:-1])
    return before if pieces[-1] == before and len(before) >= _FEWEST_TOLD_AGAIN else "".join(pieces)


class JoinedCompletion:
    """The pieces of a chat completion so far."""

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant"}
        self._texts: dict[str, list[str]] = {}
        self._logprobs: list[Any] | None = None
        self._begun = self._has_others = False
        self._index: Any = None
        self._failure: dict[str, Any] | None = None

    @property
    def has_failed(self) -> bool:
        """True if the endpoint told an error in place of a further piece."""
        return self._failure is not None

    @property
    def is_foreign(self) -> bool:
        """True if there were events, and none was a piece of a chat completion."""
        return self._has_others and not self._begun

    @property
    def is_finished(self) -> bool:
        """True if the endpoint has said why the model stopped. Some send an empty reason with each piece."""
        return says_why(self._choice.get("finish_reason"))

    def add(self, chunk: Any) -> str:
        """Add an object of the stream; return what it adds to the text.

        Raises:
            ValueError: it is in no form that we know.
        """
        if isinstance(chunk, dict) and "choices" not in chunk and find_told_error(chunk) is not None:
            self._failure = chunk
            return ""
        if chunk is None or (isinstance(chunk, dict) and "choices" not in chunk):  # `{"type": "ping"}`
            self._has_others = True
            self._answer |= {"usage": chunk["usage"]} if chunk and chunk.get("usage") is not None else {}
            return ""
        if not isinstance(chunk, dict) or not isinstance(choices := chunk.get("choices") or [], list):
            raise ValueError("an event without choices")
        self._answer |= {key: chunk[key] for key in _KEPT if chunk.get(key) is not None}
        if not choices:  # the last one, with the usage
            return ""
        ours = [one for one in choices if self._is_ours(one)]
        if not ours:
            return ""
        [choice] = ours
        if not isinstance(choice, dict) or not isinstance(delta := self._read_delta(choice), dict):
            raise ValueError("a choice without pieces")
        self._begun = True
        text = delta.get("content")
        if isinstance(text, list) and all(isinstance(part, dict | str) for part in text):
            text = join_parts(text)
        self._choice |= {
            key: value
            for key, value in choice.items()
            if value is not None
            and key not in ("delta", "logprobs")
            and (key != "finish_reason" or says_why(value) or not self.is_finished)
        }
        if (logprobs := choice.get("logprobs")) is not None:
            tokens = (logprobs.get("content") or []) if isinstance(logprobs, dict) else None
            if not isinstance(tokens, list):
                raise ValueError("log-probabilities in another form")
            self._logprobs = self._logprobs or []
            self._logprobs += tokens
        for key, value in {**delta, "content": text}.items():
            if key in _TEXTS and value is not None:
                if not isinstance(value, str):
                    raise ValueError("a piece that is no text")
                self._texts.setdefault(key, []).append(value)
            elif value is not None:
                self._message[key] = value
        return text or ""

    def _read_delta(self, choice: Mapping[str, Any]) -> Any:
        """Return a choice's pieces.

        Some servers give none in the last one, which says why the answer ends, or in one that tells something
        else, such as Azure's filter; or all of the answer in one.
        """
        delta = choice.get("delta")
        if delta is not None or "text" in choice:
            return delta
        message = choice.get("message") if says_why(choice.get("finish_reason")) else None
        return {} if message is None or self._texts.get("content") else message

    def _is_ours(self, choice: Any) -> bool:
        """Return whether a piece is of the choice whose piece came first."""
        index = choice.get("index") if isinstance(choice, dict) else None
        if self._index is None:
            self._index = index
        return index is None or index == self._index

    def finish(self, asked: str) -> dict[str, Any] | None:
        """Return the completion, or the error that was told; None: there was none that can be joined.

        Args:
            asked: the address, for errors.

        Raises:
            BrokenAnswer: it broke off.
        """
        if self.is_foreign:
            return None
        if not self.has_failed and not self.is_finished:
            raise BrokenAnswer(f"{asked}: the stream broke off before its end.")
        return self.build()

    def build(self) -> dict[str, Any]:
        """Return the completion, or an error in place of it, in the form in which it comes as a whole.

        Raises:
            ValueError: there was no piece, or no reason why they ended.
        """
        if self._failure is not None:
            if not self._begun:
                return self._failure
            self._answer["error"] = self._failure.get("error") or self._failure
        elif not self._begun:
            raise ValueError("a stream without pieces")
        elif not self.is_finished:
            raise ValueError("a stream without its end")
        texts = {key: join_pieces([one for one in pieces if one]) for key, pieces in self._texts.items()}
        logprobs = {} if self._logprobs is None else {"logprobs": {"content": self._logprobs}}
        choice = {**self._choice, "message": {**self._message, **texts}, **logprobs}
        return {**self._answer, "object": "chat.completion", "choices": [choice]}


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


def _read_text_request(request: httpx2.Request) -> Mapping[str, Any] | None:
    """Return the body of a request whose answer is a text for people; None: it is another one."""
    content = request.read()
    body = json.loads(content) if content else {}
    if "messages" not in body or body.keys() & {"response_format", "tools"} or body.get("max_tokens") == 1:
        return None
    return dict(body)


def _as_stream(request: httpx2.Request, body: Mapping[str, Any]) -> httpx2.Request:
    """Return a request that asks for the same answer in pieces, with the usage at their end."""
    asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
    left_out = ("host", "content-length", "accept")
    headers = {name: value for name, value in request.headers.items() if name.lower() not in left_out}
    headers["Accept"] = "text/event-stream, application/json"
    content = json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode()
    return httpx2.Request(request.method, request.url, content=content, headers=headers)


async def read_events(response: httpx2.Response, largest: int) -> AsyncIterator[str]:
    """Yield the data of each server-sent event.

    Lines end with `\\n`, `\\r` or both. The data of an event may have several lines, up to an empty one; data
    that is whole in one line is yielded at once, because some servers leave out the empty line.

    Raises:
        ValueError: there are more than `largest` bytes.
    """
    begun, size, event, ends_in_return = bytearray(), 0, _Event(), False
    async for read in response.aiter_bytes():
        size += len(read)
        if size > largest:
            raise ValueError("a stream that is too long")
        begun += read[1:] if ends_in_return and read.startswith(b"\n") else read
        ends_in_return = read.endswith(b"\r")
        if b"\n" not in read and b"\r" not in read:
            continue
        *lines, last = _LINE_END.split(bytes(begun))
        begun = bytearray(last)
        for line in lines:
            if (data := event.add(line)) is not None:
                yield data
    for line in (bytes(begun), b""):
        if (data := event.add(line)) is not None and _is_whole(data):
            yield data


class _Event:
    """The lines of one server-sent event so far."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self._is_error = False

    def add(self, line: bytes) -> str | None:
        """Add a line; return the event's data if that is whole now. `event: error` makes an error of it."""
        line = line.removeprefix(codecs.BOM_UTF8)
        if line.startswith(b"data:"):
            data = line.removeprefix(b"data:").decode("utf-8", "replace").strip()
            if not self._data and _is_whole(data):
                return self._call_error(data)
            self._data.append(data)
        elif line.startswith(b"event:"):
            self._is_error = line.removeprefix(b"event:").strip().lower() == b"error"
        elif not line and self._data:
            data = "\n".join(self._data)
            self._data = []
            return self._call_error(data)
        return None

    def _call_error(self, data: str) -> str:
        is_error, self._is_error = self._is_error, False
        if not is_error or data == _DONE:
            return data
        told = json.loads(data) if _is_whole(data) else data
        is_known = isinstance(told, dict) and "error" in told
        return data if is_known else json.dumps({"error": told})


def _is_whole(data: str) -> bool:
    """Return whether data is an object as a whole, or the end of the stream."""
    if data == _DONE:
        return True
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
