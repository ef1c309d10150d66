"""A real vLLM with SmolLM2-135M: needs the network once, and minutes."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import filelock
import pytest
from openai import AsyncOpenAI

from hallulab.agents.serving.server import is_free, serve
from hallulab.scenarios.errors import OperationalError

pytestmark = pytest.mark.live

MODEL = "smollm2-135m"


@pytest.fixture(autouse=True)
def one_server_at_a_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small machines hold one server of ours at a time, whoever runs these tests."""
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    with filelock.FileLock(Path(tempfile.gettempdir()) / "hallulab-live.lock"):
        yield


async def test_it_answers_follows_a_schema_and_gives_token_probabilities() -> None:
    async with serve(MODEL) as served, AsyncOpenAI(base_url=served.base_url, api_key="none") as client:
        plain = await client.chat.completions.create(
            model=served.model,
            messages=[{"role": "user", "content": "What is the capital of France?"}],
            temperature=0,
            max_tokens=30,
        )
        schema = {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 40}},
            "required": ["city"],
        }
        formed = await client.chat.completions.create(
            model=served.model,
            messages=[{"role": "user", "content": "Name the capital of France."}],
            temperature=0,
            max_tokens=60,
            extra_body={
                "response_format": {"type": "json_schema", "json_schema": {"name": "City", "schema": schema}}
            },
        )
        token = await client.chat.completions.create(
            model=served.model,
            messages=[{"role": "user", "content": "Is Paris in France? Answer Yes or No."}],
            temperature=0,
            max_tokens=1,
            logprobs=True,
            top_logprobs=5,
        )
    assert "Paris" in (plain.choices[0].message.content or "")
    assert list(json.loads(formed.choices[0].message.content or "")) == ["city"]
    logprobs = token.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert len(logprobs.content[0].top_logprobs) == 5
    assert served.revision == ("sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53+bf16")


async def test_a_flag_that_vllm_refuses_shows_why() -> None:
    with pytest.raises(
        OperationalError, match=r"(?s)ended with exit code 1 .*The end of its log.*max_model_len"
    ):
        async with serve(MODEL, extra_flags=("--max-model-len", "99999999")):
            raise AssertionError


def test_killing_the_command_ends_the_whole_server() -> None:
    script = f"from hallulab.agents.serving.command import serve_command\nserve_command({MODEL!r})"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        # Workers first: the last of the family to go is the supervisor, which waits for all of them.
        family = [os.pidfd_open(child) for child in _descendants(process.pid)]
        process.send_signal(signal.SIGKILL)
        process.wait(120)
    assert len(family) >= 4
    for member in family:
        readable, _, _ = select.select([member], [], [], 60)
        os.close(member)
        assert readable
    assert is_free(int(url.split(":")[2].removesuffix("/v1")))


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *_descendants(child)]
    return found


async def test_seeded_requests_with_long_prompts_do_not_kill_it() -> None:
    async with (
        serve(MODEL) as served,
        AsyncOpenAI(base_url=served.base_url, api_key="none", max_retries=0) as client,
    ):

        async def ask(number: int) -> None:
            text = f"{number} " + "the court hears complaints about goods and services " * (60 + number)
            await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": text}],
                max_tokens=8,
                temperature=0.7,
                seed=number,
            )

        await asyncio.gather(*(ask(number) for number in range(32)))
