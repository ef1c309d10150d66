"""Have waves answered by `vllm run-batch`: a child process a wave, with the flags of our server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2

from hallulab.agents.machine.cache import Listener, disk_errors
from hallulab.agents.machine.supervised import start_supervised
from hallulab.agents.models.batch_api import BoundedNetwork
from hallulab.agents.models.receiving import LARGEST
from hallulab.agents.models.wave_files import Service, Wave
from hallulab.agents.serving.prepare import PreparedModel
from hallulab.agents.serving.server import STARTUP_TIMEOUT, ServedModel, end_of_log, new_log, serve_prepared
from hallulab.scenarios.errors import OperationalError

BATCH_URL = "http://localhost/v1"
"""Stands for the address of a model that only answers waves. Nobody is asked there."""


class VllmRunner:
    """Answers waves by a child process of vLLM, and before them single questions by our server.

    The server starts with the first question, so a run that goes on and knows the answers starts none.

    Args:
        timeout_s: limit of an answer to a question, in seconds; waves have none.
    """

    service: Service = "vllm"

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._prepared: PreparedModel | None = None
        self._extra_flags: tuple[str, ...] = ()
        self._on_progress: Listener | None = None
        self._server = AsyncExitStack()
        self._base_url: str | None = None
        self._starting = asyncio.Lock()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def serving(
        self, prepared: PreparedModel, extra_flags: Sequence[str], on_progress: Listener
    ) -> AsyncIterator[ServedModel]:
        """Take a model; at the end, its server is stopped."""
        self._prepared, self._extra_flags, self._on_progress = prepared, tuple(extra_flags), on_progress
        logs = prepared.cache / "logs"
        try:
            yield ServedModel(base_url=BATCH_URL, model=prepared.name, revision=prepared.revision, log=logs)
        finally:
            await self.settle()

    async def ask(self, request: httpx2.Request) -> httpx2.Response:
        """See `BatchRunner`. Which model it is needs no server."""
        assert self._prepared is not None
        if request.method == "GET":
            served = [{"id": name, "root": self._prepared.source} for name in self._prepared.names]
            return httpx2.Response(200, content=json.dumps({"data": served}))
        async with self._starting:
            base_url = self._base_url or await self._start()
        url = f"{base_url}{str(request.url).removeprefix(BATCH_URL)}"
        async with httpx2.AsyncHTTPTransport() as http:
            network = BoundedNetwork(http, self._timeout_s, LARGEST)
            async with httpx2.AsyncClient(transport=network, trust_env=False, timeout=None) as client:
                return await client.post(
                    url, content=request.read(), headers={"Content-Type": "application/json"}
                )

    async def _start(self) -> str:
        assert self._prepared is not None
        assert self._on_progress is not None
        running = await self._server.enter_async_context(
            serve_prepared(
                self._prepared,
                port=None,
                extra_flags=self._extra_flags,
                startup_timeout=STARTUP_TIMEOUT,
                on_progress=self._on_progress,
            )
        )
        self._base_url = running.served.base_url
        return self._base_url

    async def settle(self) -> None:
        """See `BatchRunner`: stop the server, because each wave takes the whole machine."""
        await self._server.aclose()
        self._base_url = None

    async def run(self, wave: Wave, api_key: str) -> None:
        """See `BatchRunner`."""
        prepared = self._prepared
        assert prepared is not None
        command = prepared.batch_command(wave.input, wave.raw, self._extra_flags)
        async with self._turn:
            wave.raw.unlink(missing_ok=True)
            with disk_errors(prepared.cache):
                log = new_log(prepared.cache / "logs", f"{prepared.name}-wave-{wave.number}")
                with log.open("wb") as output:
                    process = start_supervised(
                        command, output=output, environ=prepared.environ(dict(os.environ))
                    )
            try:
                code = await asyncio.to_thread(process.wait)
            finally:
                # Closing our end stops it, even if the waiting is interrupted.
                if process.stdin is not None:
                    process.stdin.close()
                await asyncio.to_thread(process.wait)
        if code != 0 or not wave.raw.is_file():
            raise OperationalError(
                f"`vllm run-batch` ended with exit code {code} and no results. {end_of_log(log)}"
            )

    async def aclose(self) -> None:
        """See `BatchRunner`."""
        await self.settle()
