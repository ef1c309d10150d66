"""Have waves answered by the batch API of an endpoint: upload, create, poll, download.

A batch is never submitted twice: a run that goes on asks for the batch that the wave's file names,
or that carries its token.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from hallulab.agents.models.complaints import is_retryable, put_in_one_line, read_complaint
from hallulab.agents.models.pauses import PAUSE_HEADERS
from hallulab.agents.models.receiving import LARGEST
from hallulab.agents.models.redaction import Redaction, make_redaction, remove_keys
from hallulab.agents.models.wave_files import CHAT, Service, Wave
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.opening import open_file

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Seconds between two looks at a batch: half as long again after each look, at most."""

OUTAGE_S = 3600.0
"""Seconds for which an endpoint may not answer while a batch is waited for."""

TRIES_AGAIN = 4
"""Tries of a request after the first, except of one that creates a batch."""

LARGEST_FILE = 1 << 32
"""Bytes of a batch's results at most, if its requests are so many that their answers could be more."""

_TOKEN = "hallulab_wave"  # noqa: S105 - the name of a field, no password
_BLOCK = 1 << 16
"""Bytes of a download that are looked at together."""

_HEADERS = ("Content-Type", "Location", *PAUSE_HEADERS)
"""Headers of an answer that are read."""
_ENDED = frozenset({"completed", "expired", "cancelled"})
"""States of a batch that has results, if not of all requests."""
_PAGES = 5
"""Pages of 100 batches that are searched for a token."""


class ApiRunner:
    """The batch API of OpenAI-compatible endpoints.

    Args:
        timeout_s: limit of one try of a request, in seconds; of up- and downloads for each `LARGEST` bytes.
    """

    service: Service = "api"

    def __init__(
        self,
        timeout_s: float,
        network: httpx2.AsyncBaseTransport | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._timeout_s = timeout_s
        self._network = network or httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=None))
        self._pause = pause

    async def ask(self, request: httpx2.Request) -> httpx2.Response:
        """See `BatchRunner`."""
        # Whoever reads the answer bounds its length.
        return await BoundedNetwork(self._network, self._timeout_s).handle_async_request(request)

    async def settle(self) -> None:
        """See `BatchRunner`."""

    async def check(self, base_url: str, api_key: str) -> None:
        """Check that the endpoint has a batch API.

        Raises:
            UsageError: it has none.
            OperationalError: it does not answer.
        """
        async with self._talking(base_url, api_key) as client:
            try:
                await client.batches.list(limit=1)
            except Exception as error:
                if _status(error) in (404, 405):
                    raise UsageError(
                        f"{base_url} has no batch API (status {_status(error)} at /batches). Leave out "
                        "--batch, or give an endpoint that has one."
                    ) from error
                raise

    async def run(self, wave: Wave, api_key: str) -> None:
        """See `BatchRunner`."""
        redaction = make_redaction(api_key)
        largest = min(len(wave.ids) * LARGEST, LARGEST_FILE)
        async with self._talking(wave.state.base_url, api_key, largest) as client:
            submitted = wave.state.batch
            if submitted is None and wave.taken_up:
                submitted = await self._find(client, wave)
            if submitted is None:
                submitted = await self._submit(client, wave)
            wave.note(submitted)
            batch = await self._wait(client, submitted)
            if batch.status not in _ENDED:
                wave.drop()
                errors = (batch.errors.data or []) if batch.errors else []
                told = "; ".join(filter(None, (error.message or error.code for error in errors)))
                reason = " ".join(redaction.text(told).split())[:300] or "it gives no reason"
                raise OperationalError(
                    f"batch {batch.id} of {wave.state.base_url} failed: {reason}. "
                    "Correct what it complains of, and run the command again; the run goes on."
                )
            try:
                wave.raw.unlink(missing_ok=True)  # it may be a pipe
                wave.raw.touch()
                for name in filter(None, (batch.output_file_id, batch.error_file_id)):
                    await _download(client, name, wave.raw, redaction)
            except OSError as error:
                raise OperationalError(f"cannot write {wave.raw}: {error.strerror or error}.") from error

    async def _submit(self, client: AsyncOpenAI, wave: Wave) -> str:
        with open_file(wave.input) as file:
            uploaded = await client.files.create(file=(wave.input.name, file), purpose="batch")
        # Without another try: one that was answered too late would be a second batch, which is paid, too.
        batch = await client.with_options(max_retries=0).batches.create(
            input_file_id=uploaded.id,
            endpoint=CHAT,
            completion_window="24h",
            metadata={_TOKEN: wave.state.token},
        )
        return batch.id

    async def _find(self, client: AsyncOpenAI, wave: Wave) -> str | None:
        """Return the batch that carries the wave's token: we were killed before we noted its identifier."""
        after: dict[str, Any] = {}
        for _ in range(_PAGES):
            page = await client.batches.list(limit=100, **after)
            for batch in page.data:
                if (batch.metadata or {}).get(_TOKEN) == wave.state.token:
                    return batch.id
            if not page.has_next_page():
                return None
            after = {"after": page.data[-1].id}
        return None

    async def _wait(self, client: AsyncOpenAI, submitted: str) -> Batch:
        """Return the batch when it has ended, in whatever way."""
        pause, answered = FIRST_PAUSE_S, time.monotonic()
        while True:
            try:
                batch = await client.batches.retrieve(submitted)
            except Exception as error:
                status = _status(error)
                lasting = status is not None and not is_retryable(status)
                if lasting or time.monotonic() - answered > OUTAGE_S:
                    raise
            else:
                answered = time.monotonic()
                if batch.status in _ENDED or batch.status == "failed":
                    return batch
            await self._pause(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE_S)

    @asynccontextmanager
    async def _talking(
        self, base_url: str, api_key: str, largest_file: int = LARGEST
    ) -> AsyncIterator[AsyncOpenAI]:
        """Yield a client; tell its errors in one sentence without the key.

        Args:
            largest_file: bytes of a file at most.

        Raises:
            OperationalError: the endpoint refuses, or does not answer.
        """
        from openai import AsyncOpenAI, OpenAIError

        network = BoundedNetwork(self._network, self._timeout_s, LARGEST, largest_file)
        http = httpx2.AsyncClient(transport=network, trust_env=False)
        try:
            yield AsyncOpenAI(
                base_url=base_url, api_key=api_key, timeout=None, http_client=http, max_retries=TRIES_AGAIN
            )
        except (OpenAIError, httpx2.HTTPError) as error:
            # The client says only that there was a connection error.
            cause = error.__cause__ if isinstance(error.__cause__, httpx2.HTTPError) else error
            words = read_complaint(getattr(cause, "body", None))
            said = f"status {_status(cause)}: {words}" if words and _status(cause) else str(cause)
            told = put_in_one_line(remove_keys(said, api_key)) or type(cause).__name__
            raise OperationalError(
                f"the batch API of {base_url} failed: {told}. Run the command again; the run goes on, and "
                "what was submitted is not submitted again."
            ) from None

    async def aclose(self) -> None:
        """See `BatchRunner`."""
        await self._network.aclose()


class BoundedNetwork(httpx2.AsyncBaseTransport):
    """Sends requests within limits and without what the client tells of this machine; connections stay open.

    Args:
        timeout_s: seconds until the whole answer is there, for each `LARGEST` bytes of request or answer.
        largest: bytes of an answer at most.
        largest_file: bytes of a file's content at most.
    """

    def __init__(
        self,
        network: httpx2.AsyncBaseTransport,
        timeout_s: float,
        largest: float = math.inf,
        largest_file: float = math.inf,
    ) -> None:
        self._network = network
        self._timeout_s = timeout_s
        self._largest, self._largest_file = largest, largest_file

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request; see `httpx2.AsyncBaseTransport`."""
        for name in list(request.headers):
            if name.lower().startswith(("x-stainless", "openai-")):
                del request.headers[name]
        request.headers["User-Agent"] = "hallulab"
        parts = 1 + int(request.headers.get("Content-Length", 0)) // LARGEST
        until = asyncio.get_running_loop().time() + parts * self._timeout_s
        async with self._in_time(until, request):
            response = await self._network.handle_async_request(request)
        headers = {name: response.headers[name] for name in _HEADERS if name in response.headers}
        body = _Body(self._read(request, response, until), response)
        return httpx2.Response(response.status_code, headers=headers, stream=body, request=request)

    async def _read(
        self, request: httpx2.Request, response: httpx2.Response, until: float
    ) -> AsyncIterator[bytes]:
        """Yield the body of an answer, unpacked.

        Raises:
            httpx2.RequestError: it does not come in time, or has too many bytes.
        """
        largest = self._largest_file if request.url.path.endswith("/content") else self._largest
        chunks, size = aiter(response.aiter_bytes()), 0
        while True:
            async with self._in_time(until, request):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            if (size + len(chunk)) // LARGEST > size // LARGEST:
                until = asyncio.get_running_loop().time() + self._timeout_s
            size += len(chunk)
            if size > largest:
                raise httpx2.ReadError(f"an answer of more than {largest:,} bytes", request=request)
            yield chunk

    @asynccontextmanager
    async def _in_time(self, until: float, request: httpx2.Request) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(until):
                yield
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {self._timeout_s:g} s", request=request) from error


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, which closes the response that it is read from."""

    def __init__(self, chunks: AsyncIterator[bytes], response: httpx2.Response) -> None:
        self._chunks, self._response = chunks, response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        """Close the connection, or give it back."""
        await self._response.aclose()


async def _download(client: AsyncOpenAI, name: str, path: Path, redaction: Redaction) -> None:
    """Add the lines of a file at the API to a file here, without keys."""
    rest = b""
    async with client.files.with_streaming_response.content(name) as response:
        with path.open("ab") as file:
            async for chunk in response.iter_bytes(_BLOCK):
                *lines, rest = (rest + chunk).split(b"\n")
                file.writelines(_make_safe(line, redaction) for line in lines)
                if len(rest) > LARGEST:
                    raise httpx2.ReadError(f"a line of more than {LARGEST:,} bytes")
            file.write(_make_safe(rest, redaction))


def _make_safe(line: bytes, redaction: Redaction) -> bytes:
    return redaction.text(line.decode(errors="replace")).encode() + b"\n"


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that an error of the client is about; None: there was no answer."""
    return getattr(error, "status_code", None)
