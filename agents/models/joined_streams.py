"""Join the server-sent events of a streamed chat completion to the answer that comes as a whole.

Services repeat themselves, leave things out, and call an event an error; see `JoinedCompletion`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import httpx2

from hallulab.agents.models.answers import UNREADABLE, BrokenAnswer, ModelError, join_parts
from hallulab.agents.models.complaints import find_told_error
from hallulab.agents.models.decoding import decode_untold, is_garbled
from hallulab.agents.models.finish_reasons import find_reason, says_why
from hallulab.agents.models.log_probabilities import list_tokens
from hallulab.scenarios.files.json_text import read_json

DONE = "[DONE]"
"""Data of the last event."""

_LINE_END = re.compile(rb"\r\n|\n|\r")

_TEXTS = ("content", "refusal", "reasoning", "reasoning_content")
"""Fields of a message that come in pieces."""

_KEPT = ("id", "created", "model", "system_fingerprint", "service_tier", "usage", "error")
"""Fields of a completion that events of a stream have, too."""


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
    events, joined = _Events(), JoinedCompletion()
    try:
        for value in (*events.add(text.encode()), *events.close()):
            if value == DONE:
                return joined.build()
            joined.add(value)
            if joined.has_failed:
                break
    except ValueError:
        return None
    return joined.finish(asked)


_FEWEST_TOLD_AGAIN = 12
"""Characters of a text that no answer says twice by chance."""


def join_pieces(pieces: Sequence[str]) -> str:
    """Return the text that pieces make; some services repeat it, as far as it has come, or at the end."""
    if len(pieces) < 2:
        return "".join(pieces)
    grows = all(after.startswith(before) for before, after in pairwise(pieces))
    told_again = pieces[-1] if len(pieces) > 2 else pieces[0]
    if grows and len(told_again) >= _FEWEST_TOLD_AGAIN and len(set(pieces)) > 1:
        return pieces[-1]
    if len(pieces) < 3:
        return "".join(pieces)
    before = "".join(pieces[:-1])
    return before if pieces[-1] == before and len(before) >= _FEWEST_TOLD_AGAIN else "".join(pieces)


class JoinedCompletion:
    """The pieces of a chat completion so far."""

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant"}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[Any] = []
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
        return says_why(find_reason(self._choice))

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
            tokens = list_tokens(logprobs)
            if tokens is None:
                raise ValueError("log-probabilities in another form")
            self._logprobs = self._logprobs or []
            self._logprobs += tokens
        for key, value in {**delta, "content": text}.items():
            if key in _TEXTS and value is not None:
                if not isinstance(value, str):
                    raise ValueError("a piece that is no text")
                self._texts.setdefault(key, []).append(value)
            elif key == "tool_calls" and isinstance(value, list):
                self._calls += value
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
        calls = {"tool_calls": _join_calls(self._calls)} if self._calls else {}
        choice = {**self._choice, "message": {**self._message, **calls, **texts}, **logprobs}
        return {**self._answer, "object": "chat.completion", "choices": [choice]}


def _join_calls(pieces: Sequence[Any]) -> list[Any]:
    """Return the calls of tools that pieces make: those of one `index` are one call."""
    joined: dict[str, Any] = {}
    for place, piece in enumerate(pieces):
        index = piece.get("index") if isinstance(piece, dict) else None
        key = f"alone {place}" if index is None else str(index)
        begun = joined.setdefault(key, piece)
        if begun is piece:
            continue
        before, after = begun.get("function", {}), piece.get("function", {})
        if not isinstance(before, dict) or not isinstance(after, dict):
            continue
        function = after | {name: told for name, told in before.items() if told}
        function["arguments"] = "".join(str(one.get("arguments") or "") for one in (before, after))
        joined[key] = piece | {name: told for name, told in begun.items() if told} | {"function": function}
    return list(joined.values())


async def read_events(response: httpx2.Response, largest: int) -> AsyncIterator[Any]:
    """Yield the value of each server-sent event's data; `DONE` ends them.

    Raises:
        ValueError: there are more than `largest` bytes, or data that is no JSON.
    """
    size, events = 0, _Events()
    async for read in response.aiter_bytes():
        size += len(read)
        if size > largest:
            raise ValueError("a stream that is too long")
        for value in events.add(read):
            yield value
    for value in events.close():
        yield value


class _Events:
    """The bytes of server-sent events so far.

    Lines end with `\\n`, `\\r` or both. The data of an event may have several lines, up to an empty one; data
    that is whole in one line counts at once, because some servers leave out the empty line.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._ends_in_return = False
        self._data: list[str] = []
        self._is_error = False

    def add(self, read: bytes) -> Iterator[Any]:
        """Add bytes; yield the values that are whole now.

        Raises:
            ValueError: the data of a whole event is no JSON.
        """
        self._line += read[1:] if self._ends_in_return and read.startswith(b"\n") else read
        self._ends_in_return = read.endswith(b"\r")
        if b"\n" not in read and b"\r" not in read:
            return
        *lines, last = _LINE_END.split(bytes(self._line))
        self._line = bytearray(last)
        for line in lines:
            yield from self._add_line(line)

    def close(self) -> list[Any]:
        """Return the value of the last event, if its data is whole."""
        with suppress(ValueError):
            return [*self._add_line(bytes(self._line)), *self._add_line(b"")]
        return []

    def _add_line(self, line: bytes) -> list[Any]:
        line = line.removeprefix(codecs.BOM_UTF8)
        if line.startswith((b"data:", b"{")):  # an answer or an error that is no event, all the same
            data = decode_untold(line.removeprefix(b"data:")).strip()
            if is_garbled(line, data):
                raise ModelError(UNREADABLE)
            if not self._data:
                with suppress(ValueError):
                    return [self._call_error(_read_data(data))]
            self._data.append(data)
        elif line.startswith(b"event:"):
            self._is_error = line.removeprefix(b"event:").strip().lower() == b"error"
        elif not line and self._data:
            data, self._data = "\n".join(self._data), []
            if not data:
                return []
            try:
                value = _read_data(data)
            except ValueError:
                if not self._is_error:
                    raise
                value = data
            return [self._call_error(value)]
        return []

    def _call_error(self, value: Any) -> Any:
        """Return the value of an event; `event: error` makes an error of it."""
        is_error, self._is_error = self._is_error, False
        is_known = value == DONE or (isinstance(value, dict) and "error" in value)
        return {"error": value} if is_error and not is_known else value


def _read_data(data: str) -> Any:
    """Return the value of an event's data; `DONE` for the end, which some put in quotation marks.

    Raises:
        ValueError: it is no JSON.
    """
    return DONE if data == DONE else read_json(data, str)
