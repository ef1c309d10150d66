"""One served model behind an OpenAI-compatible endpoint: retries, shared answers and clear errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI
from tenacity.wait import wait_base

from hallulab.agents.models.abilities import Capabilities, ReadHow
from hallulab.agents.models.answers import (
    Completion,
    ModelError,
    RefusedRequest,
    read_completion,
    read_limit,
)
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.failures import explain_refusal, explain_silence
from hallulab.agents.models.fitting import Fitting, identify_asked
from hallulab.agents.models.model_list import NO_LIST, describe_no_list, read_roots
from hallulab.agents.models.model_names import (
    describe_served,
    find_aliases,
    find_served_name,
    has_further_page,
)
from hallulab.agents.models.needs import Need, is_about_request
from hallulab.agents.models.openai_client import make_openai_client, making
from hallulab.agents.models.receiving import read_object, read_value
from hallulab.agents.models.transport import (
    CallRecord,
    ModelCall,
    ModelTransport,
    WireMessage,
    asking_before_the_run,
    is_before_the_run,
)
from hallulab.agents.models.tries import Outage, Tries, is_broken_off, is_busy, is_transient
from hallulab.agents.models.unreachable import find_no_handle
from hallulab.agents.models.wire_settings import ConversationMark
from hallulab.agents.models.work import waiting_for_model
from hallulab.scenarios.files.json_text import digest

QUESTION = "Is ice cold? Answer Yes or No."
PLAIN: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 1}
"""A question, and the arguments of a request for one word."""

NO_MODEL = "no-such-model"
"""A name that only an endpoint answers to which answers to any."""

_parse_url = lru_cache(maxsize=64)(httpx2.URL)


class ModelClient:
    """One served model, asked through the openai client.

    Args:
        endpoint: where it is served.
        transport: stands beneath the client; shared by all models of a run.
        scope: equal requests of different scopes have different answers.
        attempts: tries for one request at most, the first included; None: as many as the time allows, see
            `hallulab.agents.models.tries`.
        backoff: pauses between tries; the default is exponential with jitter.
        routes: whether several models may answer under one name, as behind a bot under test.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        transport: ModelTransport,
        scope: Sequence[str] = (),
        *,
        attempts: int | None = None,
        backoff: wait_base | None = None,
        routes: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self._routes = routes
        self.root: str | None = None
        """The endpoint's `root` of this model (vLLM: a folder or a hub name). None: it gives none, or was not
        asked yet. See `hallulab.agents.served_model`."""
        self.identity = identify_asked(endpoint, scope)
        """Identity of this model in recordings, besides its requests."""
        self.fitting = Fitting(
            endpoint.settings, transport.recording, self.identity, thorough=not transport.is_patient
        )
        """Makes requests as the endpoint takes them."""
        self._transport = transport
        self._scope = tuple(scope)
        self._attempts, self._backoff = attempts, backoff
        self._outage = Outage()
        self._diagnosing = asyncio.Lock()
        self._shared: dict[str, asyncio.Future[tuple[Completion, CallRecord]]] = {}
        """Requests under way, by key."""

    @property
    def abilities(self) -> Capabilities:
        """Abilities of the endpoint; until it is asked, all are assumed."""
        return self.fitting.abilities

    @abilities.setter
    def abilities(self, found: Capabilities) -> None:
        self.fitting.abilities = found

    def describe(self, decision_samples: int = 1, under_test: bool = False) -> ReadHow:
        """Say how the model's answers are read, and what its endpoint needs."""
        return ReadHow(
            **dict(self.abilities),
            model=self.endpoint.model,
            decision_samples=decision_samples,
            asked_with=self.fitting.tell_needs(under_test),
            under_test=under_test,
        )

    def lose_log_probabilities(self) -> None:
        """Note that the endpoint took a request for log-probabilities, and gave none."""
        self.fitting.lose("log_probabilities", self._where)

    async def create(
        self,
        messages: Sequence[WireMessage],
        extra: Mapping[str, Any],
        record: CallRecord,
        mark: ConversationMark | None = None,
    ) -> Completion:
        """Return one completion. Equal requests are sent once, even while the first is under way.

        vLLM is not deterministic under concurrency; sharing answers keeps paired conversations paired. An
        endpoint that refuses `seed` gets none, but requests with different seeds stay different requests.

        Args:
            messages: the prompt.
            extra: further arguments of the request.
            record: filled with data for the ledger.
            mark: tells a bot under test which conversation it is; equal requests of two conversations are
                two. None: it is not told.

        Raises:
            ReplayMiss: the replayed recording has no answer. It ends the run.
            UsageError: the endpoint needs a key, and there is none.
            ModelError: the model gave no answer; says why in one sentence.
        """
        body = {"model": self.endpoint.model, "stream": False, "messages": list(messages), **extra}
        url = self._url("chat/completions")
        key = self._make_key(url, body, mark)
        while (shared := self._shared.get(key)) is not None:
            try:
                with waiting_for_model():
                    completion, first = await asyncio.shield(shared)
            except asyncio.CancelledError:
                if not shared.cancelled():
                    raise
                continue  # the first request was cancelled, so ask again
            record.latency_s = first.latency_s
            record.replayed = True
            return completion
        future: asyncio.Future[tuple[Completion, CallRecord]] = asyncio.get_running_loop().create_future()
        self._shared[key] = future
        try:
            credentials = self.endpoint.read_credentials
            call = ModelCall(
                credentials, key, body, record, keeps_refusal=False, routes=self._routes, mark=mark
            )
            answer = await self._ask(url, call)
            limit = read_limit(extra)
            if limit is not None:
                limit += self.endpoint.settings.thoughts
            completion = read_completion(answer, tools_offered="tools" in extra, limit=limit)
        except BaseException as error:
            if isinstance(error, Exception):
                future.set_exception(error)
                future.exception()  # marks it as retrieved: perhaps nobody waits
            else:
                future.cancel()
            raise
        finally:
            # From here on the recording has the answer.
            del self._shared[key]
        future.set_result((completion, record))
        return completion

    def _make_key(
        self, url: httpx2.URL, body: Mapping[str, Any], mark: ConversationMark | None = None
    ) -> str:
        """Return what answers to a request are known by. Needs of the endpoint on the wire are not in it."""
        extra = self.endpoint.settings.extra
        told = [] if mark is None else [["conversation", mark.key]]
        place = url.path.rsplit("/v1/", 1)[-1]
        return digest([*self._scope, place, body, *([extra] if extra else []), *told])

    async def _ask(self, url: httpx2.URL, call: ModelCall) -> dict[str, Any]:
        """Ask through the client, unless the answer is known, and try again while that makes sense.

        Returns:
            A chat completion.
        """
        known = self._transport.find(call)
        if known is not None and 200 <= known["status"] < 300:
            return dict(known["body"])
        if known is None and self._transport.replaying:
            self.fitting.require_recorded(call.body, self._where)
        tries = self._tries(call.record)
        try:
            return await self._ask_as_needed(url, call, tries, final=known is not None)
        except APIStatusError as error:
            self._transport.keep_refusal(call, error.response)
            raise self._refusal(error, call.record) from error
        except APIConnectionError as error:
            if tries.refused is not None and isinstance(error, APITimeoutError):
                # The last try only had what was left of the time.
                raise self._refusal(tries.refused, call.record) from error
            raise explain_silence(error, self._where) from error

    def _refusal(self, error: APIStatusError, record: CallRecord) -> RefusedRequest:
        return explain_refusal(error, self._where, record, self._transport.timeout_s)

    async def _ask_as_needed(
        self, url: httpx2.URL, call: ModelCall, tries: Tries, final: bool
    ) -> dict[str, Any]:
        """Ask, and where the endpoint refuses, find out how it wants to be asked.

        Args:
            final: whether a refusal is known already, and stays one.

        Raises:
            LackingAbility: the question must be another one.
            APIStatusError: the endpoint refuses the request however it is sent.
        """
        mark = call.mark
        fields = {} if mark is None else mark.fields

        async def send(needs: Sequence[Need]) -> None:
            other = None if mark is None else mark.start_another()
            body = self.fitting.build(call.body, needs) | ({} if other is None else other.fields)
            await self._post(url, replace(call, body=body, is_trial=True, mark=other), tries, is_overloaded)

        def is_overloaded(error: BaseException) -> bool:
            # Other faults of a server may be refusals, which is what a trial finds out.
            about_request = isinstance(error, APIStatusError) and is_about_request(error.status_code)
            return is_transient(error) and not about_request

        while True:
            known = self.fitting.state

            def is_passing(error: BaseException) -> bool:
                # A server's own fault may be a refusal: that is found out before the request is tried again.
                # A bot may have heard a message whose answer did not come.
                if mark is not None and mark.stateful:
                    return False
                return is_transient(error) and (final or not self.fitting.expects(error, call.body))

            try:
                sent = replace(call, body=self.fitting.build(call.body) | fields)
                return await self._post(url, sent, tries, is_passing)
            except APIStatusError as error:
                if final:
                    raise
                with waiting_for_model():  # so that a wave is sent, which another one may wait for here
                    await self._diagnosing.acquire()
                try:
                    if self.fitting.state == known:
                        if not self.fitting.expects(error, call.body):
                            raise
                        told = None if is_before_the_run() else self._where
                        found = await self.fitting.explain(error, call.body, send, told)
                        if not found and not is_transient(error):
                            raise
                    refusal = self._refusal(error, call.record)
                    self.fitting.require(call.body, str(refusal), refusal.status)
                finally:
                    self._diagnosing.release()

    async def _post(
        self, url: httpx2.URL, call: ModelCall, tries: Tries, again: Callable[[BaseException], bool]
    ) -> dict[str, Any]:
        """Send a request; return the answer."""
        # `chat.completions.create` sends the same, but takes a millisecond more for what nobody reads here:
        # it converts each message and makes pydantic models of the answer.
        send = partial(self._openai.post, str(url), body=dict(call.body), cast_to=httpx2.Response)
        return read_object(await self._send(send, call, tries, again))

    async def _send(
        self,
        send: Callable[[], Awaitable[httpx2.Response]],
        call: ModelCall,
        tries: Tries,
        again: Callable[[BaseException], bool],
    ) -> httpx2.Response:
        """Send a request until it is answered, or has failed for good, as an `OpenAIError`."""
        async for attempt in tries.run(again):
            with attempt, making(call):
                response = await send()
                self._outage.note_answer()
                return response
        raise AssertionError("tenacity either returns or raises")

    @cached_property
    def _openai(self) -> AsyncOpenAI:
        return make_openai_client(self._transport)

    @property
    def timeout_s(self) -> float:
        """Limit of all tries of a request, in seconds."""
        return self._transport.timeout_s

    def _tries(self, record: CallRecord) -> Tries:
        return Tries(self._transport.timeout_s, record, self._outage, self._backoff, self._attempts)

    @property
    def _where(self) -> str:
        where = f" at {self.endpoint.base_url}" if self.endpoint.base_url else ""
        return f"model {self.endpoint.model!r}{where}"

    def _url(self, path: str) -> httpx2.URL:
        base = self.endpoint.base_url or "/v1"  # which is what recordings know of an address of ours
        try:
            url = _parse_url(f"{base.rstrip('/')}/{path}")
            query = self.endpoint.settings.query
            return url.copy_merge_params(query) if query else url
        except httpx2.InvalidURL as error:
            raise ModelError(
                f"{self.endpoint.base_url} is no address ({error}). Correct --base-url."
            ) from error

    def check_key(self) -> None:
        """Check that there is a key if the endpoint needs one. A replay needs none.

        Raises:
            UsageError: the key is missing.
        """
        if not self._transport.replaying:
            self.endpoint.read_credentials()

    async def check(self) -> None:
        """Check that the endpoint serves this model, and set `root`.

        An endpoint without a list of models is asked for an answer instead, and so is one whose list lacks it
        (deployments of Azure, `MODEL:PROVIDER`): that counts if another name is refused. A near name of the
        model (`llama3.2:latest` for `llama3.2`) is the endpoint's name of it.

        Raises:
            ModelError: it cannot be reached or does not serve this model.
        """
        try:
            told = await self._list_models()
            roots = read_roots(told)
            aliases = find_aliases(told["data"])
        except NO_LIST as error:
            if (sentence := find_no_handle(error)) is not None:
                raise ModelError(f"{self._where} was not asked: {sentence}") from error
            # A server's own fault (500) may be of the list alone.
            fails = isinstance(error, APIConnectionError) or (
                is_busy(error) and getattr(error, "status_code", 0) != 500
            )
            if not fails and await self._answers():
                return
            raise ModelError(describe_no_list(error, self.endpoint)) from error
        name = find_served_name(self.endpoint.model, [*roots, *aliases])
        is_whole = bool(roots) and not has_further_page(told)
        if name is None and await self._answers() and not (is_whole and await self._answers(NO_MODEL)):
            return
        if name is None:
            raise ModelError(
                f"{self.endpoint.base_url} does not serve model {self.endpoint.model!r}; "
                f"{describe_served(self.endpoint.model, list(roots))}. Correct --model."
            )
        self.fitting.model = None if name == self.endpoint.model else name
        self.root = roots[aliases.get(name, name)]

    async def _answers(self, model: str | None = None) -> bool:
        """Return whether the endpoint answers a question to a model; None: to this one."""
        asked = [{"role": "user", "content": QUESTION}]
        body = {"model": model or self.endpoint.model, "stream": False, "messages": asked, **PLAIN}
        url = self._url("chat/completions")
        key = self._make_key(url, body)
        call = ModelCall(self.endpoint.read_credentials, key, body, keeps_refusal=False)
        try:
            with asking_before_the_run():
                await self._ask(url, call)
        except ModelError:
            return False
        return True

    async def _list_models(self) -> Any:
        """Ask for the list of models; again while the endpoint is busy, and a few times if it breaks off.

        Silence until the time limit, or nobody at the address, ends it at once.

        Raises:
            APIConnectionError: there is no answer.
            APIStatusError: the endpoint refuses, or stays busy.
            ModelError: the answer cannot be read.
        """
        call = ModelCall(self.endpoint.read_credentials)
        send = partial(self._openai.get, str(self._url("models")), cast_to=httpx2.Response)
        with asking_before_the_run():
            return read_value(await self._send(send, call, self._tries(call.record), is_broken_off))
