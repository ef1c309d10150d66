"""Waves at the batch API of an endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hallulab.agents.models.batch_api import ApiRunner
from hallulab.agents.models.redaction import make_redaction
from hallulab.agents.models.wave_files import Asked, Wave, WaveResult, WaveStore
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.testing.batch_api import BatchApi, serve_batch_api

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
