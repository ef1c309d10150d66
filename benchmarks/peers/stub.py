"""The endpoint that all tools ask: `python -m benchmarks.peers.stub [SECONDS]`, about so many an answer.

It answers as user, as bot and where a tool asks for a decision. `GET /stats` tells how much it was asked.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import zlib
from typing import Any

from hallulab.testing.endpoint import StubProtocol, completion, http_response, serve

WORDS = [
    f"{first}{last}" for first in ("ba", "ce", "di", "fo", "gu", "ha", "ki") for last in ("ron", "lem", "tas")
]
GOES_ON = {"rationale": "The goal is not reached yet.", "result": "no"}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Answer as a user who asks, as a bot who tells, or that a goal is not reached yet."""
    asked = json.dumps(request["messages"])
    said = random.Random(zlib.crc32(asked.encode())).choices(WORDS, k=40)
    text = f"Can you tell me how {' '.join(said)}?" if request["model"] == "user" else f"{' '.join(said)}."
    if "simulated_input" in asked:  # DeepEval
        text = json.dumps({"simulated_input": text})
    elif "rationale" in asked or "rationale" in json.dumps(request.get("response_format")):  # MLflow
        text = json.dumps(GOES_ON)
    elif request.keys() & {"logprobs", "response_format", "tools"}:  # hallulab
        return completion(request) | {"model": request["model"]}
    whole = completion({"messages": [{"content": ""}]}) | {"model": request["model"]}
    whole["choices"][0]["message"]["content"] = text
    return whole


class CountingProtocol(StubProtocol):
    """Counts the requests that are answered."""

    answer = staticmethod(answer)
    asked = 0

    def respond(self, head: bytes, body: bytes) -> None:
        """See `StubProtocol.respond`."""
        if b"/chat/completions" in head.split(b"\r\n", 1)[0]:
            CountingProtocol.asked += 1
            # Equally long answers would keep all conversations in step.
            self.seconds = CountingProtocol.seconds * random.uniform(0.5, 1.5)
            super().respond(head, body)
        elif head.startswith(b"get /stats"):
            self._transport.write(http_response(json.dumps(CountingProtocol.asked).encode()))
        else:
            listed = [{"id": name, "object": "model"} for name in ("user", "bot")]
            self._transport.write(http_response(json.dumps({"object": "list", "data": listed}).encode()))


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]) if sys.argv[1:] else 0.0, CountingProtocol))
