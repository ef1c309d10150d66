"""An endpoint on loopback that keeps the header of every request: who was sent a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hallulab.testing.endpoint import StubProtocol, serve_protocol

KEY = "sk-Canary-4f9A"
VARIABLE = "STRANGER_WANTS_KEY"


@dataclass
class Recorded:
    """What came to an endpoint."""

    url: str
    """Its address."""
    heads: list[bytes] = field(default_factory=list)
    """First line and headers of each request, in lower case."""

    @property
    def got_key(self) -> bool:
        """Whether the key came."""
        return any(KEY.lower().encode() in head for head in self.heads)


@contextmanager
def recording_endpoint() -> Iterator[Recorded]:
    """Serve while the block runs."""
    recorded = Recorded("")

    class Recording(StubProtocol):
        def respond(self, head: bytes, body: bytes) -> None:
            recorded.heads.append(head)
            super().respond(head, body)

    with serve_protocol(Recording) as url:
        recorded.url = url
        yield recorded
