"""Ask models in waves: all requests that wait at the same time go out as one file in OpenAI's batch format.

It stands where the network stands, beneath `hallulab.agents.models.transport`, so nothing above knows of it.
A wave is sent when every piece of work waits for a model (`hallulab.agents.models.work`).
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

import httpx2

from hallulab.agents.models.endpoints import NO_KEY, normalize_url
from hallulab.agents.models.pauses import PAUSE_HEADERS
from hallulab.agents.models.receiving import LARGEST
from hallulab.agents.models.redaction import make_redaction
from hallulab.agents.models.transport import PatientTransport
from hallulab.agents.models.wave_files import Asked, Service, Wave, WaveResult, WaveStore
from hallulab.agents.models.work import PATIENCE_S, WorkUnderWay, waiting_for_model
from hallulab.scenarios.errors import get_first_error
from hallulab.scenarios.files.json_text import read_json
from hallulab.scenarios.text.wording import format_count

MOST_REQUESTS = 50_000
"""Requests of one batch at most, as OpenAI limits them; a wave of more is several batches."""

MOST_BYTES = 190_000_000
"""Bytes of one batch at most, likewise."""

MOST_WAVES = 4
"""Waves that a request is in at most, if it fails again and again: each is paid for."""

_CHAT_PATH = "/chat/completions"


class BatchRunner(Protocol):
    """Answers waves, and before them single questions."""

    service: Service

    async def ask(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request at once."""

    async def settle(self) -> None:
        """Get ready for waves: no model is asked one by one any more."""

    async def run(self, wave: Wave, api_key: str) -> None:
        """Have a wave answered, and write what comes into `wave.raw`.

        Raises:
            OperationalError: it cannot be answered as a whole.
        """

    async def aclose(self) -> None:
        """Close what is open."""


class _Addressee(NamedTuple):
    """Whose requests go out together."""

    base_url: str
    model: str
    api_key: str


_Waiting = dict[str, tuple[Asked, _Addressee, asyncio.Future[WaveResult]]]

_PLAIN_HEADERS = frozenset(
    {"accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"}
)
"""Headers of our own; others may hold keys."""


class BatchTransport(PatientTransport):
    """Collects requests to models and sends them in waves; before `sending_waves`, one by one.

    Args:
        patience_s: see `hallulab.agents.models.work.PATIENCE_S`.
    """

    timeout_s = math.inf

    def __init__(self, runner: BatchRunner, patience_s: float = PATIENCE_S) -> None:
        self.runner = runner
        self.work = WorkUnderWay(patience_s)
        """The pieces of work that are waited for."""
        self._opened: WaveStore | None = None
        self._urls: frozenset[str] = frozenset()
        self._waiting: _Waiting = {}
        self._asked = asyncio.Event()

    def open(self, folder: Path, fresh: bool) -> None:
        """Keep the waves in a folder, and take up those that are there; see `WaveStore`.

        Raises:
            UsageError: see `WaveStore`.
        """
        self._opened = WaveStore(folder, fresh)

    @property
    def _store(self) -> WaveStore:
        assert self._opened is not None, "waves have a folder before anything is asked"
        return self._opened

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request; see `httpx2.AsyncBaseTransport`."""
        base_url = normalize_url(str(request.url)).removesuffix(_CHAT_PATH)
        if request.method != "POST" or (self._urls and base_url not in self._urls):
            return await self.runner.ask(request)
        asked = Asked(str(request.url), json.loads(request.read()))
        result = self._store.get(asked.id)
        if result is None and self._urls:
            key = request.headers.get("Authorization", f"Bearer {NO_KEY}").removeprefix("Bearer ")
            addressee = _Addressee(base_url, str(asked.body.get("model")), key)
            result = await self._wait(asked, addressee)
        if result is not None:
            return httpx2.Response(result.status, json=result.body, request=request)
        return self._keep(asked, request, await _read_whole(await self.runner.ask(request)))

    def _keep(self, asked: Asked, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Keep the answer to a question before the waves, if it is a JSON object without a key."""
        secrets = [value for name, value in request.headers.items() if name.lower() not in _PLAIN_HEADERS]
        try:
            body = read_json(response.text)
        except ValueError:
            return response
        if isinstance(body, dict) and not make_redaction(*secrets).finds(response.text):
            self._store.keep(asked.id, WaveResult(response.status_code, body))
        return response

    async def _wait(self, asked: Asked, addressee: _Addressee) -> WaveResult:
        """Wait for what comes of a request."""
        if asked.id not in self._waiting:
            future: asyncio.Future[WaveResult] = asyncio.get_running_loop().create_future()
            self._waiting[asked.id] = (asked, addressee, future)
            self._asked.set()
        # A cancelled caller must not take the answer from another that waits for an equal request.
        with waiting_for_model():
            return await asyncio.shield(self._waiting[asked.id][2])

    @asynccontextmanager
    async def sending_waves(
        self, base_urls: Iterable[str], tell: Callable[[str], None]
    ) -> AsyncIterator[None]:
        """Send requests to these addresses in waves while the block runs; others still go one by one.

        Args:
            tell: gets a line for people when a wave is handed over, and when it is answered.

        Raises:
            OperationalError: a wave was not answered as a whole. The block is cancelled then.
        """
        self._store.begin()
        await self.runner.settle()
        self._urls = frozenset(map(normalize_url, base_urls))
        try:
            async with asyncio.TaskGroup() as tasks:
                sender = tasks.create_task(self._send_waves(tell))
                yield
                sender.cancel()
        except BaseExceptionGroup as group:
            raise get_first_error(group) from group

    async def _send_waves(self, tell: Callable[[str], None]) -> None:
        while True:
            await self._asked.wait()
            await self.work.until_all_wait()
            waiting, self._waiting = self._waiting, {}
            self._asked.clear()
            async with asyncio.TaskGroup() as tasks:
                for wave, key, part in self._share_out(waiting):
                    tasks.create_task(self._answer(wave, key, part, tell))

    def _share_out(self, waiting: _Waiting) -> Iterator[tuple[Wave, str, _Waiting]]:
        """Yield waves with their keys and requests: those under way at an API, and new ones."""
        for wave in list(self._store.open):
            # Its file may be a stranger's: what is asked of one address, with its key, goes to no other.
            to = (wave.state.base_url, wave.state.model)
            part = {id: waiting.pop(id) for id in wave.ids & waiting.keys() if waiting[id][1][:2] == to}
            if part:
                yield wave, next(iter(part.values()))[1].api_key, part
        groups: dict[_Addressee, list[Asked]] = defaultdict(list)
        for asked, addressee, _ in waiting.values():
            groups[addressee].append(asked)
        for addressee, requests in groups.items():
            for some in _cut(requests):
                wave = self._store.write(self.runner.service, addressee.base_url, some)
                yield wave, addressee.api_key, {one.id: waiting[one.id] for one in some}

    async def _answer(self, wave: Wave, key: str, part: _Waiting, tell: Callable[[str], None]) -> None:
        """Have a wave answered, and give each request its result."""
        requests = format_count(len(wave.ids), "request")
        tell(f"wave {wave.number}: {requests} handed over, {datetime.now():%H:%M:%S}")
        await self.runner.run(wave, key)
        tell(f"wave {wave.number}: answered, {datetime.now():%H:%M:%S}")
        for id, result in self._store.close(wave, make_redaction(key)):
            if id in part:
                _, _, future = part.pop(id)
                future.set_result(result)
        for _, _, future in part.values():
            future.set_result(
                WaveResult.complaint(f"the output of {wave.input.name} has no line for this request")
            )

    async def aclose(self) -> None:
        """Close what the runner has open."""
        await self.runner.aclose()


async def _read_whole(response: httpx2.Response) -> httpx2.Response:
    """Return an answer that is read to its end, or beyond what `ModelTransport` takes."""
    read = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            read += chunk
            if len(read) > LARGEST:
                break
    finally:
        await response.aclose()
    headers = {name: response.headers[name] for name in PAUSE_HEADERS if name in response.headers}
    return httpx2.Response(response.status_code, content=bytes(read), headers=headers)


def _cut(requests: Sequence[Asked]) -> Iterator[list[Asked]]:
    """Yield the requests in parts that a batch may have."""
    part: list[Asked] = []
    size = 0
    for request in requests:
        length = len(request.line().encode())
        if part and (len(part) == MOST_REQUESTS or size + length > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(request)
        size += length
    yield part
