"""A pool whose sessions say what each call is for while it is under way, so that somebody can watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hallulab.agents.models.answers import Completion
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.session import Session
from hallulab.agents.models.transport import WireMessage
from hallulab.agents.models.watching import calling_for


class WatchedPool(ModelPool):
    """A pool whose calls can be watched (`hallulab.agents.models.watching`). It asks what any pool asks."""

    def session(self, role: str, seed: int = 0, model: str | None = None) -> Session:
        """See `ModelPool.session`."""
        return WatchedSession(self, role, seed, self.get(model), [])


@dataclass
class WatchedSession(Session):
    """A session whose calls can be watched."""

    def on(self, model: str | None) -> Session:
        """See `Session.on`."""
        return WatchedSession(self.pool, self.role, self.seed, self.pool.get(model), self.calls)

    async def complete(
        self, step: str, messages: Sequence[WireMessage], extra: Mapping[str, Any]
    ) -> Completion:
        """See `Session.complete`."""
        with calling_for(f"{self.role}.{step}"):
            return await super().complete(step, messages, extra)
