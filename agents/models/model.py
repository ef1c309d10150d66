"""The served models of a run: `ModelPool`. Roles ask them through a `Session` of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import httpx2
from tenacity.wait import wait_base

from hallulab.agents.concurrency import gather_results
from hallulab.agents.models.abilities import Capabilities, ReadHow
from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint, normalize_url
from hallulab.agents.models.probe import abilities_of
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.replicas import Limits, Replica, Replicas
from hallulab.agents.models.session import Session
from hallulab.agents.models.transport import ModelTransport
from hallulab.scenarios.errors import UsageError

if TYPE_CHECKING:
    from hallulab.agents.models.client import ModelClient

DEFAULT_MODEL = "default"
"""Name of the pool's main model."""

ROOT = "root"
"""Kind of the recording entries that hold `ModelClient.root`, by the model's served name."""

ABILITIES = "abilities"
"""Kind of those that hold `ModelClient.abilities` as they were found out, by `ModelClient.identity`."""


class ModelPool:
    """The models of a run by name. They share one transport: one limit on concurrency, one recording.

    Args:
        endpoints: by name; `default` must be among them.
        recording: where answers are kept or come from.
        concurrency: requests under way at once, over all models.
        timeout_s: limit of all tries of a request and the pauses between them, in seconds.
        attempts: tries for one request at most; None: as many as `timeout_s` allows.
        backoff: pauses between tries.
        transport: sends the requests, for tests; by default the network.
        decision_samples: how often a model is asked for a decision if its endpoint gives no
            log-probabilities.
        base_urls: the addresses of several endpoints that serve the default model; its own is the first.
        limits: what each endpoint of the default model is asked at most.
        timed: whether the seconds of calls are kept; else they are 0.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        *,
        recording: Recording | None = None,
        concurrency: int = 16,
        timeout_s: float = 300.0,
        attempts: int | None = None,
        backoff: wait_base | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        decision_samples: int = 1,
        base_urls: Sequence[str] = (),
        limits: Limits | None = None,
        timed: bool = True,
    ) -> None:
        if DEFAULT_MODEL not in endpoints:
            raise ValueError(f"a pool needs a model named {DEFAULT_MODEL!r}")
        self.recording = Recording() if recording is None else recording
        self.timeout_s = timeout_s
        """Limit of all tries of a request and the pauses between them, in seconds."""
        self.decision_samples = decision_samples
        """Printed words per decision without log-probabilities; with several, an option's share counts."""
        replicas = None
        if limits is not None or len(base_urls) > 1:
            urls = base_urls or (endpoints[DEFAULT_MODEL].base_url,)
            replicas = Replicas(urls, limits=limits)
        self.replicas: tuple[Replica, ...] = replicas.replicas if replicas and len(base_urls) > 1 else ()
        """The endpoints of the default model and what they did, if there are several."""
        gate = asyncio.Semaphore(concurrency)
        self._transport = ModelTransport(self.recording, gate, timeout_s, transport, replicas, timed)
        # openai comes with it, which takes half a second.
        from hallulab.agents.models.client import ModelClient

        self._connect = partial(ModelClient, transport=self._transport, attempts=attempts, backoff=backoff)
        self._clients = {name: self._connect(endpoint) for name, endpoint in endpoints.items()}
        self._others: dict[Endpoint, ModelClient] = {}
        self._asked: Collection[str] = self._clients.keys()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its models."""
        return tuple(self._clients)

    def get(self, name: str | None = None) -> ModelClient:
        """Return the model of that name; None: the default one.

        Raises:
            UsageError: there is no such model.
        """
        client = self._clients.get(name or DEFAULT_MODEL)
        if client is None:
            known = ", ".join(sorted(self._clients))
            raise UsageError(f"no model named {name!r} under `models`; there are: {known}.")
        return client

    def bind(self, base_url: str) -> None:
        """Say where the models are served that have no address yet: our server is up.

        Its answers are waited for while it works, however long (`hallulab.agents.models.token_watch`).
        """
        for client in self._clients.values():
            if not client.endpoint.base_url:
                client.endpoint = replace(client.endpoint, base_url=base_url)
                self._transport.watch(base_url)

    def at(self, endpoint: Endpoint) -> ModelClient:
        """Return the client of a model without a name in the pool, such as a bot under test; made once.

        Recorded answers belong to this address: two servers never answer for each other, even if their models
        have the same name.
        """
        if endpoint not in self._others:
            # Headers, as they are written, and a query may tell bots at one address apart.
            query = {f"?{name}": value for name, value in endpoint.settings.query.items()}
            parts = sorted({**endpoint.settings.headers, **query}.items())
            scope = (endpoint.base_url, *(f"{name}: {value}" for name, value in parts))
            self._others[endpoint] = self._connect(endpoint, scope=scope, routes=True)
        return self._others[endpoint]

    def session(self, role: str, seed: int = 0, model: str | None = None) -> Session:
        """Make a session with a fresh ledger for one piece of work of `role`."""
        return Session(self, role, seed, self.get(model), [])

    def check_keys(self) -> None:
        """See `ModelClient.check_key`, for every model."""
        for client in self._clients.values():
            client.check_key()

    @property
    def read_how(self) -> tuple[ReadHow, ...]:
        """How the answers of each model that is asked are read, without duplicates; and what bots need."""
        asked = [client for name, client in self._clients.items() if name in self._asked]
        models = [client.describe(self.decision_samples) for client in asked]
        return tuple(dict.fromkeys([*models, *self.list_bots()]))

    def list_bots(self) -> tuple[ReadHow, ...]:
        """Return what the endpoints of bots under test were found to need, if anything."""
        bots = [client.describe(under_test=True) for client in self._others.values()]
        return tuple(dict.fromkeys(bot for bot in bots if bot.asked_with))

    async def check(self, names: Collection[str] | None = None) -> None:
        """Check models (`ModelClient.check`), and find out what their endpoints can do, side by side.

        A replay asks nothing: its recording says what was served and what was found out.

        Args:
            names: those that are going to be asked; None: all.

        Raises:
            ModelError: an endpoint cannot be reached or does not serve its model.
        """
        asked = {name: client for name, client in self._clients.items() if names is None or name in names}
        self._asked = frozenset(asked)
        await gather_results(map(self._identify, asked.values()))
        await gather_results(map(self._find_abilities, asked.values()))

    async def _identify(self, client: ModelClient) -> None:
        """Check that a model is served, and find out which it is."""
        served = client.endpoint.model
        if not self.recording.replaying:
            await client.check()
            await self._check_replicas(client)
            if client.root is not None:
                client.root = self.recording.put(ROOT, served, client.root)
        else:
            client.root = self.recording.get(ROOT, served)

    async def _find_abilities(self, client: ModelClient) -> None:
        known = self.recording.get(ABILITIES, client.identity)
        if known is not None:
            client.abilities = Capabilities.model_validate(known)
            return
        client.abilities = await abilities_of(client)
        if client.abilities.asked and not self.recording.replaying:
            self.recording.put(ABILITIES, client.identity, client.abilities.model_dump(mode="json"))

    async def _check_replicas(self, client: ModelClient) -> None:
        """Check that the other endpoints serve the same model as the first."""
        first = client.endpoint
        if not self.replicas or normalize_url(first.base_url) != self.replicas[0].base_url:
            return
        for replica in self.replicas[1:]:
            other = self._connect(replace(first, base_url=replica.base_url))
            await other.check()
            if other.root != client.root:
                told = [
                    f"{url} ({root or 'it does not say'})"
                    for url, root in ((first.base_url, client.root), (replica.base_url, other.root))
                ]
                raise ModelError(
                    f"{' and '.join(told)} serve different models as {first.model!r}. "
                    "Give endpoints that serve the same one."
                )

    @property
    def network(self) -> httpx2.AsyncBaseTransport:
        """Transport of requests, also of those to bots that are no models."""
        return self._transport.inner

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()
