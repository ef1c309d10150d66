"""Endpoints that answer anything: a call ends with a result or with one sentence, and a run goes on.

Most examples ask one model through everything between an agent and the network. The others are whole runs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tenacity import wait_none

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.simulator.metrics.failures import find_failures
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import completion
from hallulab.testing.tiny_pack import URL, flags, make_pack, words_for_vectors
from tests.agents.models.endpoints import HASTY_POOL, QUESTION
from tests.fuzz.anything import documents
from tests.fuzz.honest import Honest, emptied
from tests.fuzz.promises import check_whole, ended, examples

KEY = "sk-canary/0-Xy_9"

TIMEOUT_S = 20.0
"""Limit of a try. Who is told to come again in 100 seconds gives up at once."""

STATUS = st.one_of(
    st.sampled_from([200] * 8 + [201, 204, 302, 400, 401, 404, 413, 422, 429, 500, 503]),
    st.integers(200, 599),
)
HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "Content-Type", "Location", "x-request-id"]),
    st.sampled_from(["100", "-1", "nan", "1e308", KEY, "", "text/html; charset=utf-16", "application/json"]),
    max_size=2,
)


class _Judged(BaseModel):
    verdict: bool
    reasons: list[str]


LIKELY = completion({"Yes": 0.25, "No": 0.75})
SAID = completion("The courier pays.")
STRUCTURED = completion('{"verdict": true, "reasons": ["a"]}')
ECHOED = completion(f"Authorization: Bearer {KEY}")
BODIES = st.sampled_from([SAID, LIKELY, STRUCTURED, ECHOED]).flatmap(documents)


@st.composite
def answers(draw: st.DrawFn) -> httpx2.Response:
    """A response of an endpoint."""
    return httpx2.Response(draw(STATUS), headers=draw(HEADERS), content=draw(BODIES))


@pytest.fixture(autouse=True, scope="module")
def _keyed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FUZZED_ENDPOINT", KEY)
        yield


@examples(600)
@given(response=answers(), way=st.sampled_from(["text", "choose", "structured"]))
def test_a_call_ends_with_a_result_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, response: httpx2.Response, way: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "answers.jsonl"
    path.unlink(missing_ok=True)
    told, calls = asyncio.run(_asked(way, Recording.record(path), httpx2.MockTransport(lambda _: response)))
    assert KEY not in told + calls
    told.encode()
    if path.exists():
        check_whole(path)
        assert KEY not in path.read_text(encoding="utf-8")
        silent = httpx2.MockTransport(_nobody)
        again, _ = asyncio.run(_asked(way, Recording.replay(path), silent))
        assert again == told


def _nobody(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError("a replay asks nobody")


async def _asked(way: str, recording: Recording, transport: httpx2.AsyncBaseTransport) -> tuple[str, str]:
    """What the caller is told, as text, and the ledger."""
    pool = _pool(transport, recording)
    session = pool.session("chatbot")
    try:
        if way == "text":
            told: Any = await session.text("reply", QUESTION)
        elif way == "choose":
            told = await session.choose("goal", QUESTION, ("Yes", "No"))
        else:
            told = (await session.structured("judge", QUESTION, _Judged)).model_dump()
    except ModelError as error:
        told = f"error: {error}"
        assert "\n" not in told
        assert len(told) < 1000
    finally:
        await pool.close()
        recording.close()
    calls = [call.model_dump_json() for call in session.calls]
    assert len(calls) == 1 or (
        way == "choose" and len(calls) == 2
    )  # an unlikely option is asked for by its word
    return json.dumps(told, ensure_ascii=False), "".join(calls)


def _pool(transport: httpx2.AsyncBaseTransport, recording: Recording) -> ModelPool:
    endpoint = Endpoint("m", URL, "FUZZED_ENDPOINT")
    return ModelPool(
        {"default": endpoint},
        transport=transport,
        backoff=wait_none(),
        recording=recording,
        attempts=2,
        timeout_s=TIMEOUT_S,
    )


@examples(60)
@given(response=answers())
def test_the_check_before_a_run_ends_with_nothing_or_one_sentence(response: httpx2.Response) -> None:
    async def checked() -> str:
        pool = _pool(httpx2.MockTransport(lambda _: response), Recording())
        try:
            await pool.check()
        except ModelError as error:
            return str(error)
        finally:
            await pool.close()
        return ""

    told = asyncio.run(checked())
    assert "\n" not in told
    assert KEY not in told
    assert len(told) < 1000


ASKING = ("--api-key-env", "FUZZED_ENDPOINT", "--timeout", f"{TIMEOUT_S:g}")


class Hostile(Honest):
    """An endpoint that works, but for some of its answers.

    Args:
        odd: number of the completion, from 1 → what is answered in its place.
    """

    def __init__(self, odd: dict[int, httpx2.Response]) -> None:
        super().__init__()
        self._odd = odd

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        return self._odd.get(self.asked, answer) if request.method == "POST" else answer


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The pack, its vectors in a cache, and all that a run imports."""
    folder = tmp_path_factory.mktemp("answers")
    with pytest.MonkeyPatch.context() as patched, words_for_vectors():
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        made = make_pack(folder / "pack")
        assert _run(made, folder / "run", Hostile({})).code == 0
        yield made


def _run(pack: Path, out: Path, endpoint: Hostile, *more: str | Path) -> Any:
    with (
        patch("hallulab.agents.models.transport.make_network", lambda: endpoint),
        patch("hallulab.simulator.engine.models.ModelPool", HASTY_POOL),
    ):
        return ended(*flags(pack, "--out", out, *ASKING, *more))


@examples(40)
@given(odd=st.dictionaries(st.integers(1, 12), answers(), min_size=1, max_size=4))
def test_a_run_ends_and_what_it_wrote_can_be_read(pack: Path, odd: dict[int, httpx2.Response]) -> None:
    out = emptied(pack.parent / "answered")
    said = _run(pack, out, Hostile(odd), "--record", out / "recorded.jsonl")
    written = [path for path in out.rglob("*") if path.is_file()]
    for path in written:
        check_whole(path)
        assert KEY.encode() not in path.read_bytes()
    assert KEY not in said.out + said.err
    run = RunFolder(out)
    held = {conversation.id: conversation for conversation in run.read_conversations()}
    assert len(held) == 1
    assert said.code == (0 if find_failures(RunFolder(out)).failed is None else 1)
    assert all(verdict.conversation in held for verdict in run.read_journals().verdicts)
    assert ended("report", out).code == said.code
    again = _run(pack, out, Hostile({}))
    assert again.code == 0
    assert {conversation.stop_reason for conversation in run.read_conversations()} != {"error"}
