"""The runner beside a bare client, in short."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from benchmarks.orchestration import RequestLog, against_stub
from hallulab.testing.tiny_pack import HashedWords


async def test_the_runner_is_measured_beside_a_bare_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "hallulab.agents.retrieval.knowledge.SentenceEmbedder", lambda name, **_: HashedWords(name)
    )
    found = await against_stub(personas=1)
    assert found.keys() == {"calls", "calls_per_second", "ratio_to_bare_client"}
    assert found["calls"] > 30


async def test_requests_are_grouped_by_the_answer_that_they_repeat() -> None:
    said = iter(["I am Ann and want a refund.", "I am Bob and want a repair.", "Ask the shop.", "Ask them."])
    ended = asyncio.Semaphore(0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (await reader.readline()).strip():
            pass
        content = json.dumps({"choices": [{"message": {"content": next(said)}}]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(content))
        writer.write(content)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        ended.release()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat/completions"
    log = RequestLog("salt")
    prompts = ["You are Ann.", "You are Bob."]
    prompts += [f"User: {words}" for words in ("I am Bob and want a repair.", "I am Ann and want a refund.")]
    bodies = [{"messages": [{"role": "user", "content": prompt}]} for prompt in prompts]
    for body in bodies:
        await log.handle_async_request(httpx2.Request("POST", url, json=body))
    await log.aclose()
    server.close()
    for _ in bodies:
        await ended.acquire()
    assert log.chains() == [[bodies[0], bodies[3]], [bodies[1], bodies[2]]]
