"""Your own bot behind any HTTP interface: what is sent, and where its answer has the reply.

Each conversation has a session of its own. The reply and the passages are found in JSON by JMESPath
(https://jmespath.org), in server-sent events piece by piece. A bot that answers with status 202 is asked for
its result where it says, at the same host.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin
from weakref import WeakKeyDictionary

import httpx2

from hallulab.agents.models.complaints import BUSY_STATUS, describe_redirect, put_in_one_line, read_complaint
from hallulab.agents.models.receiving import JSON
from hallulab.agents.models.unreachable import find_no_handle, name_trouble
from hallulab.chatbots.evidence import leave_evidence
from hallulab.chatbots.http_answer import HttpAnswer, receive_answer
from hallulab.chatbots.http_events import SentEvent, join_events, tells_failure
from hallulab.chatbots.http_request import (
    SAMPLE,
    HttpOptions,
    TemplateValues,
    build_body,
    build_headers,
    render,
)
from hallulab.chatbots.json_paths import search
from hallulab.chatbots.passages import read_passages
from hallulab.chatbots.pipeline import failures_as_chatbot_errors
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError, Reply, validate_reply
from hallulab.scenarios.components import read_options
from hallulab.scenarios.errors import ReplayMiss, UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import CUT, Message, Passage, Step

_log = logging.getLogger(__name__)

KIND = "http"

RECORDED = "http bot"
"""Kind of the recording entries of replies."""

_PAUSE_S = 0.5
"""First pause before a job is asked for again, or a busy bot; each is twice as long as the one before."""
_LONGEST_PAUSE_S = 8.0
_SHORTEST_PAUSE_S = 0.1
"""A bot that wants to be asked at once, again and again, would keep this machine busy."""


class HttpBot:
    """Your own bot behind any HTTP interface (1 request a reply; its model calls are not seen).

    Raises:
        UsageError: an option is unknown or wrong, a template is, or an environment variable is not set.
    """

    VERSION = 1
    SEARCHES = False
    ASKS_MODEL = False
    KIND = KIND
    OPTIONS = HttpOptions
    PROMPTS = ()

    def __init__(self, context: ChatbotContext) -> None:
        self._context = context
        self._options = read_options(f"chatbot {KIND}", HttpOptions, context.options)
        self._session = uuid.uuid4().hex
        self._cookies = httpx2.Cookies()
        """Cookies that the bot has set in this conversation."""
        self._answer: Mapping[str, Any] | None = {} if self._options.stateful else None
        """The fields of its last answer, if it keeps the conversation."""
        # So that a wrong template is told before the run.
        samples = [[Message(role="user", text=text)] for text in (SAMPLE, "When?")]
        tried = [
            self._build_request(TemplateValues.make(one, self._session, self._answer))[0] for one in samples
        ]
        if len({(str(one.url), str(one.headers), one.content) for one in tried}) == 1:
            raise UsageError(
                f"chatbot {KIND}: the request lacks what the user says: put `{{{{ message }}}}` or "
                "`{{ history }}` into `body` or `query`."
            )

    @property
    def remembers(self) -> bool:
        """True if the bot remembers more of the conversation than it is sent."""
        return self._options.stateful

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        options, recording = self._options, self._context.models.recording
        said = [[message.role, message.text] for message in history]
        key = digest([options.model_dump(mode="json"), self._context.conversation, self._context.seed, said])
        kept: Any = recording.get(RECORDED, key) if recording.replaying else None
        if kept is None and recording.replaying:
            raise ReplayMiss(
                f"the recording {recording.source} has no reply of {options.url} to this: the conversation "
                "or the bot's options have changed since. Record again with --record."
            )
        if kept is None:
            with failures_as_chatbot_errors(()):
                kept = recording.put(RECORDED, key, await self._ask(history))
        told = [f"The answer says that its text ended by `{kept['cut']}`."] if "cut" in kept else []
        cut = tuple(Step(name=CUT, text=one) for one in told)
        if kept["passages"] is None:
            query, steps = leave_evidence(history)
            return Reply(text=kept["reply"], query=query, steps=(*steps, *cut))
        passages = tuple(map(Passage.model_validate, kept["passages"]))
        return Reply(text=kept["reply"], passages=passages, steps=cut)

    async def _ask(self, history: Sequence[Message]) -> dict[str, Any]:
        """Return what a recording keeps of an answer: reply, passages, and why it was cut, if it was."""
        url, limit = self._options.url, self._context.models.timeout_s
        request, secrets = self._build_request(TemplateValues.make(history, self._session, self._answer))
        try:
            async with asyncio.timeout(limit):
                answer = await self._send_until_answered(request, secrets)
                answer = await self._wait_for_job(request, answer, secrets)
        except TimeoutError as error:
            raise ChatbotError(f"{url} gave no reply within {limit:g} s (--timeout).") from error
        if 300 <= answer.status < 400:
            to = answer.redaction.text(answer.location or "")
            told = describe_redirect(answer.status, to, url, _REDIRECTED)
            raise ChatbotError(f"{url} {answer.redaction.text(told)}")
        if not 200 <= answer.status < 300:
            words = read_complaint(answer.value) or put_in_one_line(answer.text)
            told = f": {words}" if words else "."
            raise ChatbotError(f"{url} refused the request with status {answer.status}{told}")
        text, passages = self._read(answer)
        if self._options.stateful:
            self._answer = answer.fields
        self._warn_of_missing(passages is None)
        shown = None if passages is None else [one.model_dump(mode="json") for one in passages]
        cut = {} if answer.cut_by is None else {"cut": answer.redaction.text(put_in_one_line(answer.cut_by))}
        return {"reply": text, "passages": shown, **cut}

    def _warn_of_missing(self, is_missing: bool) -> None:
        """Say once a run that none of the first answers has passages where they should be."""
        path, missed = self._options.passages, _missed.setdefault(self._context.models, {})
        if path is None:
            return
        missed[path] = missed.get(path, 0) + 1 if is_missing else _MOST_MISSED
        if is_missing and missed[path] == _MOST_MISSED:
            _log.warning(
                "%s: its first %d answers have nothing at `%s` (the option `passages`). Replies without "
                "passages are judged by the knowledge base.",
                *(self._options.url, _MOST_MISSED, path),
            )

    def _build_request(self, said: TemplateValues) -> tuple[httpx2.Request, list[str]]:
        options = self._options
        try:
            headers, secrets = build_headers(options.headers, said, options.url)
            named = {name.lower(): value for name, value in headers.items()}
            url = render(options.url, said)
            query = {name: render(value, said) for name, value in options.query.items()}
            kind = named.get("content-type", JSON)
            body = None if options.body is None else build_body(options.body, said, kind)
            httpx2.URL(url)
        except (ValueError, httpx2.InvalidURL) as error:
            raise UsageError(f"chatbot {KIND}: {error}.") from error
        own = {"Accept": f"{JSON}, text/event-stream, text/plain", "User-Agent": "hallulab"}
        own |= {"Accept-Encoding": "gzip, deflate", **({} if body is None else {"Content-Type": JSON})}
        headers = {**{name: value for name, value in own.items() if name.lower() not in named}, **headers}
        content = None if body is None else body.encode()
        request = httpx2.Request(options.method, url, params=query or None, headers=headers, content=content)
        return request, secrets

    async def _send_until_answered(self, request: httpx2.Request, secrets: Sequence[str]) -> HttpAnswer:
        """Send a request, again as long as the bot is too busy to take it."""
        pause = _PAUSE_S
        while True:
            answer = await self._send(request, secrets)
            if self._options.stateful or answer.status not in BUSY_STATUS:
                return answer
            await asyncio.sleep(_choose_pause(answer, pause))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _wait_for_job(
        self, request: httpx2.Request, answer: HttpAnswer, secrets: Sequence[str]
    ) -> HttpAnswer:
        """Return the result of a job, asked for at the same host as long as it goes on."""
        pause, place = _PAUSE_S, str(request.url)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_BODY}
        while (
            answer.status == 202
            or self._is_waiting(answer)
            or (300 <= answer.status < 400 and place != str(request.url))
        ):
            place = self._find_result(answer, place, first=place == str(request.url))
            await asyncio.sleep(_choose_pause(answer, pause))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            answer = await self._send(httpx2.Request("GET", place, headers=headers), secrets)
        return answer

    def _is_waiting(self, answer: HttpAnswer) -> bool:
        waiting = self._options.waiting
        return waiting is not None and answer.status < 300 and bool(search(waiting, answer.value))

    def _find_result(self, answer: HttpAnswer, asked: str, first: bool) -> str:
        """Return the address of a job's result; later answers need not say it again.

        Raises:
            ChatbotError: the first does not, or it is at another host, which gets none of our headers.
        """
        in_header = self._options.job is None or answer.status >= 300
        told = answer.location if in_header else search(str(self._options.job), answer.value)
        if not isinstance(told, str) or not told:
            if not first:
                return asked
            job = self._options.job
            where = "no header `Location`" if job is None else f"nothing at `{job}`"
            raise ChatbotError(
                f"{self._options.url} accepted the request (status {answer.status}) and does not say where "
                f"its result will be: there is {where}. Name the place in the option `job`."
            )
        try:
            place = urljoin(asked, told)
        except ValueError:  # no address at all
            place = told
        if _get_origin(place) != _get_origin(self._options.url):
            shown = _PRIVATE.sub("", answer.redaction.text(place))
            raise ChatbotError(
                f"{self._options.url} says that its result is at another host "
                f"({put_in_one_line(shown)[:80]}), which is not asked."
            )
        return place

    async def _send(self, request: httpx2.Request, secrets: Sequence[str]) -> HttpAnswer:
        try:
            self._cookies.set_cookie_header(request)
        except UnicodeEncodeError as error:
            raise ChatbotError(
                f"{self._options.url} set a cookie with letters beyond ASCII, which cannot be sent back."
            ) from error
        try:
            response = await self._context.models.network.handle_async_request(request)
            response.request = request
            self._cookies.extract_cookies(response)
            return await receive_answer(response, self._options.url, secrets, self._options.event is not None)
        except (httpx2.RequestError, OSError) as error:
            if (full := find_no_handle(error)) is not None:
                raise ChatbotError(full) from error
            trouble = name_trouble(error)
            why = f": {trouble.reason}" if trouble.reason else ""
            raise ChatbotError(f"{self._options.url} cannot be reached{why}. {trouble.remedy}") from error

    def _read(self, answer: HttpAnswer) -> tuple[str, tuple[Passage, ...] | None]:
        """Return the reply and the passages in an answer.

        Raises:
            ChatbotError: there is no reply, or the passages are none.
        """
        options, events = self._options, self._find_events(answer)
        if events is not None:
            text = join_events(options.url, options.event, events)
            found = [search(options.passages, one.data) for one in events] if options.passages else []
            listed = [one for one in found if isinstance(one, list)]
            # Tools are called one after another, and some services tell all again at the end.
            several = {json.dumps(item, sort_keys=True): item for one in listed for item in one}
            passages = [*several.values()] if listed else next((one for one in reversed(found) if one), None)
        else:
            self._check_whole(answer)
            text = self._read_text(answer)
            passages = None if options.passages is None else search(options.passages, answer.value)
        # Once more, because a key may have come in pieces, or with a thought amid it.
        reply = answer.redaction.text(validate_reply(options.url, text))
        return reply, None if passages is None else read_passages(options.url, passages, of_service=True)

    def _find_events(self, answer: HttpAnswer) -> Sequence[SentEvent] | None:
        """Return the events of an answer; None: it is whole. A list counts where events are expected.

        Raises:
            ChatbotError: events are expected, and it is neither a stream nor JSON.
        """
        options = self._options
        if answer.events is not None or options.event is None:
            return answer.events
        if not answer.is_json:
            self._check_whole(answer)
            shown = put_in_one_line(answer.text)[:120]
            raise ChatbotError(
                f"{options.url}: its answer is no stream of events (the option `event`): {shown!r}."
            )
        if options.reply is not None and isinstance(search(options.reply, answer.value), str):
            return None
        values = answer.value if isinstance(answer.value, list) else [answer.value]
        return [SentEvent(one) for one in values]

    def _check_whole(self, answer: HttpAnswer) -> None:
        """Check that a whole answer may hold a reply.

        Raises:
            ChatbotError: it is empty, a web page, or says that it is an error.
        """
        url = self._options.url
        if not answer.text.strip():
            raise ChatbotError(f"{url} gave an empty answer (status {answer.status}).")
        if _WHOLE_PAGE.match(answer.text):
            title = put_in_one_line(answer.text)[:80]
            shown = "" if title.startswith("<") else f" ({title!r})"
            raise ChatbotError(
                f"{url} gave a web page{shown} and no reply. If it wants a login, send what that gives "
                "in `headers`; else correct `url`."
            )
        if tells_failure(answer.value):
            words = read_complaint(answer.value) or put_in_one_line(answer.text)
            raise ChatbotError(f"{url} answered with status {answer.status} and an error: {words}")

    def _read_text(self, answer: HttpAnswer) -> str:
        url, place = self._options.url, self._options.reply
        if place is None and not answer.is_json:
            return answer.text
        found = answer.value if place is None else search(place, answer.value)
        if isinstance(found, str):
            return found
        shown = put_in_one_line(answer.text)[:120]
        if place is None:
            raise ChatbotError(f"{url}: its answer is JSON: {shown!r}. Say where the reply is in `reply`.")
        if isinstance(found, list) and found and all(isinstance(one, str) for one in found):
            raise ChatbotError(
                f"{url}: its answer has a list of texts at `{place}` (the option `reply`). Say what stands "
                f"between them: `join(' ', {place})`."
            )
        raise ChatbotError(f"{url}: its answer has no text at `{place}` (the option `reply`): {shown!r}.")


_MOST_MISSED = 3
"""Answers without passages, from a run's first one on, after which that is told."""
_missed: WeakKeyDictionary[object, dict[str, int]] = WeakKeyDictionary()
"""By run: such answers by the path of their passages; that many if one had some."""
_REDIRECTED = "If that is the bot, give it in `url`; if it is a login, send what that gives in `headers`."
_WHOLE_PAGE = re.compile(r"\s{0,64}<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_OF_BODY = frozenset({"content-type", "content-length", "transfer-encoding", "host"})
_PRIVATE = re.compile(r"(?<=//)[^/]*@|\?.*", re.DOTALL)
"""User name, password and query of an address."""


def _choose_pause(answer: HttpAnswer, usual: float) -> float:
    return usual if answer.pause is None else max(answer.pause, _SHORTEST_PAUSE_S)


def _get_origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        return "", "", None
    return parts.scheme, parts.host, parts.port
