"""A scripted model: answers requests in the process, at the wire, so everything above it runs for real."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import httpx2
from tenacity import wait_none

from hallulab.agents.models.endpoints import SCRIPTED, Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.transport import IN_PROCESS
from hallulab.scenarios.arguments import check_arguments
from hallulab.testing.endpoint import format_events, split_completion

Script = Callable[[dict[str, Any]], "str | Mapping[str, float] | httpx2.Response"]
"""From a request body to an answer: a text, probabilities of first tokens, or a whole HTTP response."""

PROBES = 9
"""Requests by which a command finds out what an endpoint can do that lacks something: four are sent twice,
and one offers functions."""


class ScriptedTransport(httpx2.AsyncBaseTransport):
    """Answers chat completions from a script and keeps the request bodies it saw."""

    def __init__(self, script: Script, model: str = "scripted", root: str | None = None) -> None:
        self._script = script
        self._served = {"id": model} | ({} if root is None else {"root": root})
        self.requests: list[dict[str, Any]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer from the script."""
        await asyncio.sleep(0)
        if request.method == "GET":
            return httpx2.Response(200, content=json.dumps({"data": [self._served]}), request=request)
        body = json.loads(await request.aread())
        self.requests.append(body)
        answer = self._script(body)
        if isinstance(answer, httpx2.Response):
            return answer
        whole = completion(answer, body["model"])
        if body.get("stream"):
            stream = _ScriptedStream(self, body, list(format_events(split_completion(whole))))
            return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, stream=stream)
        return httpx2.Response(200, json=whole, request=request)

    async def wait_for_piece(self, body: dict[str, Any], number: int) -> None:
        """Wait until piece `number`, from 0, of a streamed answer may come; a test may replace this."""
        await asyncio.sleep(0)


class _ScriptedStream(httpx2.AsyncByteStream):
    """The pieces of a scripted answer."""

    def __init__(self, model: ScriptedTransport, body: dict[str, Any], pieces: Sequence[bytes]) -> None:
        self._model, self._body, self._pieces = model, body, pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for number, piece in enumerate(self._pieces):
            await self._model.wait_for_piece(self._body, number)
            yield piece


class ScriptedModel(ScriptedTransport):
    """A model that answers from a script in this process, under an address that every command takes.

    ```python
    with ScriptedModel(lambda request: "It opens at 7.") as model:
        run = hallulab.simulate(experiment, model=model.name, base_url=model.base_url)
    assert len(model.requests) > 0
    ```

    Worker processes and other programs do not reach it: see `hallulab.testing.endpoint.serve_stub` for those.

    Args:
        name: what the model is called; two at once need different names.
    """

    @check_arguments
    def __init__(self, script: Script, name: str = "scripted") -> None:
        super().__init__(script, name)
        self.name = name
        self.base_url = f"{SCRIPTED}://{name}/v1"

    def __enter__(self) -> ScriptedModel:
        if self.name in IN_PROCESS:
            raise ValueError(f"a scripted model {self.name!r} answers already; give another name")
        IN_PROCESS[self.name] = self
        return self

    def __exit__(self, *error: object) -> None:
        del IN_PROCESS[self.name]


def pool_through(transport: httpx2.AsyncBaseTransport) -> Callable[..., ModelPool]:
    """Return what stands for `ModelPool` where the transport is to send all requests."""

    def made(endpoints: Mapping[str, Endpoint], **given: Any) -> ModelPool:
        return ModelPool(endpoints, **{**given, "transport": transport})

    return made


def completion(answer: str | Mapping[str, float], model: str = "scripted") -> dict[str, Any]:
    """The body of a chat completion with that text, or with those first-token probabilities."""
    text = answer if isinstance(answer, str) else max(answer, key=lambda word: answer[word])
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    if not isinstance(answer, str):
        top = [
            {"token": word, "logprob": math.log(p), "bytes": list(word.encode())}
            for word, p in answer.items()
            if p > 0
        ]
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }


def scripted_pool(
    script: Script, model: str = "scripted", root: str | None = None, **options: Any
) -> tuple[ModelPool, ScriptedTransport]:
    """A pool whose default model is scripted: four tries, no pauses between them, unless `options` say so.

    Args:
        model: what it is served under.
        root: what the endpoint says that it is, once `ModelPool.check` asks; None: it does not say.
    """
    transport = ScriptedTransport(script, model, root)
    pool = ModelPool(
        {"default": Endpoint(model, "http://127.0.0.1:9/v1")},
        transport=transport,
        **{"backoff": wait_none(), "attempts": 4, **options},
    )
    return pool, transport


def last_user(body: Mapping[str, Any]) -> str:
    """The last message of a request: what the script usually decides by."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    return str(messages[-1]["content"])
