"""Waves at the batch API of an endpoint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from hallulab.agents.models import batch_api
from hallulab.agents.models.batch_api import ApiRunner
from hallulab.agents.models.redaction import make_redaction
from hallulab.agents.models.wave_files import Asked, Wave, WaveResult, WaveStore
from hallulab.scenarios.errors import OperationalError, UsageError
from tests.kit.batch_api import BatchApi, serve_batch_api

KEY = "sk-very-secret"


@pytest.fixture
def api() -> Iterator[BatchApi]:
    with serve_batch_api() as served:
        yield served


class Pauses:
    """Notes how long it is asked to wait, and does not."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def questions(api: BatchApi, *texts: str) -> list[Asked]:
    return [
        Asked(
            f"{api.url}/chat/completions", {"model": "stub", "messages": [{"role": "user", "content": text}]}
        )
        for text in texts
    ]


async def run(wave: Wave, pauses: Pauses | None = None) -> None:
    runner = ApiRunner(5.0, pause=pauses or Pauses())
    try:
        await runner.run(wave, KEY)
    finally:
        await runner.aclose()


def results(store: WaveStore, wave: Wave) -> list[WaveResult]:
    return [result for _, result in store.close(wave, make_redaction(KEY))]


async def test_a_wave_is_submitted_and_looked_at_until_it_has_ended(api: BatchApi, tmp_path: Path) -> None:
    api.looks = 14
    store, pauses = WaveStore(tmp_path, fresh=False), Pauses()
    wave = store.write("api", api.url, questions(api, "a", "b"))
    await run(wave, pauses)
    assert [result.status for result in results(store, wave)] == [200, 200]
    assert [line["custom_id"] for line in api.batches[0]] == [one.id for one in questions(api, "a", "b")]
    assert pauses.seconds[:3] == [1.0, 1.5, 2.25]
    assert pauses.seconds[-2:] == [60.0, 60.0]
    assert wave.state.batch == "batch_0"


async def test_a_batch_that_was_noted_or_carries_the_token_is_not_submitted_again(
    api: BatchApi, tmp_path: Path
) -> None:
    wave = WaveStore(tmp_path, fresh=False).write("api", api.url, questions(api, "a"))
    token = wave.state
    await run(wave)
    for state in (wave.state, token):  # the second one: killed before the identifier was written
        (tmp_path / "wave-0001.json").write_text(state.model_dump_json())
        [taken_up] = WaveStore(tmp_path, fresh=False).open
        await run(taken_up)
        assert taken_up.state.batch == "batch_0"
    assert len(api.batches) == 1


@pytest.mark.parametrize("ended", ["expired", "cancelled"])
async def test_what_a_batch_has_is_taken_even_if_it_ended_early(
    api: BatchApi, tmp_path: Path, ended: str
) -> None:
    api.ended_as = ended
    store = WaveStore(tmp_path, fresh=False)
    first, second = questions(api, "a"), questions(api, "xyz")
    wave = store.write("api", api.url, [*first, *second])
    api.change = lambda asked, line: line if asked["custom_id"] == first[0].id else None
    await run(wave)
    assert len(results(store, wave)) == 1


async def test_a_batch_that_failed_is_told_and_asked_again_next_time(api: BatchApi, tmp_path: Path) -> None:
    api.ended_as, api.complaint = "failed", f"{KEY} has too many tokens"
    wave = WaveStore(tmp_path, fresh=False).write("api", api.url, questions(api, "a"))
    with pytest.raises(
        OperationalError, match=r"batch batch_0 of http://\S+ failed: \[key\] has too many .* Correct"
    ):
        await run(wave)
    assert not wave.input.exists()
    assert WaveStore(tmp_path, fresh=False).open == []


async def test_a_key_that_answers_repeat_is_in_no_file(api: BatchApi, tmp_path: Path) -> None:
    api.change = lambda asked, line: {
        **line,
        "response": {"status_code": 401, "body": {"error": {"message": KEY}}},
    }
    wave = WaveStore(tmp_path, fresh=False).write("api", api.url, questions(api, "a", "b"))
    await run(wave)
    told = [json.loads(line) for line in wave.raw.read_text().splitlines()]
    assert [line["response"]["body"]["error"]["message"] for line in told] == ["[key]", "[key]"]


async def test_an_endpoint_that_refuses_is_told_without_the_key(api: BatchApi, tmp_path: Path) -> None:
    api.refuses, api.complaint = 403, f"no batches for {KEY}"
    wave = WaveStore(tmp_path, fresh=False).write("api", api.url, questions(api, "a"))
    with pytest.raises(
        OperationalError, match=r"the batch API of .* failed: .*no batches for \[key\]"
    ) as error:
        await run(wave)
    assert KEY not in str(error.value)
    assert wave.input.exists()


@pytest.mark.parametrize("status", [404, 405])
async def test_an_endpoint_without_a_batch_api_is_told_before_anything_starts(
    api: BatchApi, status: int
) -> None:
    runner = ApiRunner(5.0)
    await runner.check(api.url, KEY)
    api.refuses = status
    with pytest.raises(UsageError, match=rf"has no batch API \(status {status} at /batches\)\. Leave out"):
        await runner.check(api.url, KEY)
    await runner.aclose()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> ApiRunner:
    """Each request has one try of 0.3 s."""
    monkeypatch.setattr(batch_api, "TRIES_AGAIN", 0)
    return ApiRunner(0.3, pause=Pauses())


@pytest.mark.parametrize("path", ["/files", "/batches", "/batch_0", "/content"])
async def test_an_answer_that_drips_without_end_ends_with_the_timeout(
    api: BatchApi, tmp_path: Path, path: str, impatient: ApiRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.endless, api.looks = (path, b" "), 0
    monkeypatch.setattr(batch_api, "OUTAGE_S", -1.0)
    wave = WaveStore(tmp_path, fresh=False).write("api", api.url, questions(api, "a"))
    with pytest.raises(
        OperationalError,
        match=r"^the batch API of \S+ failed: no answer within 0\.3 s\. Run the command again",
    ):
        await impatient.run(wave, KEY)
    await impatient.aclose()
    assert wave.input.exists()
    assert wave.state.batch == (None if path in ("/files", "/batches") else "batch_0")


async def test_a_look_for_the_token_ends_with_the_timeout(
    api: BatchApi, tmp_path: Path, impatient: ApiRunner
) -> None:
    api.endless = "/batches", b" "
    WaveStore(tmp_path, fresh=False).write("api", api.url, questions(api, "a"))
    [taken_up] = WaveStore(tmp_path, fresh=False).open
    with pytest.raises(OperationalError, match=r"no answer within 0\.3 s"):
        await impatient.run(taken_up, KEY)
    await impatient.aclose()


async def test_a_check_and_a_question_before_the_waves_end_with_the_timeout(
    api: BatchApi, impatient: ApiRunner
) -> None:
    api.endless = "", b" "
    with pytest.raises(OperationalError, match=r"no answer within 0\.3 s"):
        await impatient.check(api.url, KEY)
    for method, path in (("GET", "models"), ("POST", "chat/completions")):
        answer = await impatient.ask(httpx2.Request(method, f"{api.url}/{path}"))
        with pytest.raises(httpx2.ReadTimeout, match=r"no answer within 0\.3 s"):
            await answer.aread()
    await impatient.aclose()


@pytest.mark.parametrize(
    ("path", "part", "told"),
    [
        ("/content", b"a" * 50 + b"\n", "2,000"),
        ("/content", b"a" * 50, "1,000"),
        ("/files", b" " * 50, "1,000"),
    ],
)
async def test_an_answer_without_end_is_refused_and_a_batch_is_kept(
    api: BatchApi, tmp_path: Path, path: str, part: bytes, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_api, "LARGEST", 1000)
    monkeypatch.setattr(batch_api, "_BLOCK", 100)
    monkeypatch.setattr(batch_api, "TRIES_AGAIN", 0)
    api.endless = path, part
    wave = WaveStore(tmp_path, fresh=False).write("api", api.url, questions(api, "a", "b"))
    with pytest.raises(
        OperationalError, match=rf"failed: an? (answer|line) of more than {told} bytes\. Run the"
    ):
        await run(wave)
    assert (tmp_path / "wave-0001.json").exists()


async def test_results_of_many_requests_are_bounded_together(
    api: BatchApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_api, "LARGEST_FILE", 100)
    wave = WaveStore(tmp_path, fresh=False).write("api", api.url, questions(api, "a", "b"))
    with pytest.raises(OperationalError, match="an answer of more than 100 bytes"):
        await run(wave)


async def test_an_upload_has_the_timeout_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def note(until: float) -> asyncio.Timeout:
        limits.append(round(until - asyncio.get_running_loop().time(), -2))
        return asyncio.Timeout(until)

    monkeypatch.setattr(batch_api, "LARGEST", 100)
    monkeypatch.setattr(batch_api.asyncio, "timeout_at", note)
    answering = httpx2.MockTransport(lambda request: httpx2.Response(200, content=b"{}"))
    runner = ApiRunner(1000.0, answering)
    for size in (99, 250):
        await runner.ask(httpx2.Request("POST", "http://x/v1/files", content=b"a" * size))
    assert limits == [1000.0, 3000.0]
