"""Many conversations at once where a process may open few files: each is held, and each reply is judged."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.kit import forked_runs
from tests.kit.faulty_endpoint import faulty_endpoint
from tests.kit.forked_runs import Ended
from tests.kit.hard_conditions import spare_handles
from tests.kit.recorded_run import work_in

CONVERSATIONS = 40


def run_with_few_handles(folder: Path, url: str) -> Ended:
    """Run in a fork of this process, which must not have searched: lancedb's threads are not forked."""
    command = f"run --scenario {folder}/pack --model stub --base-url {url} --chatbots vanilla "
    command += f"--detectors lexical,direct-judge --count {CONVERSATIONS} --concurrency 64 --quiet"
    with work_in(folder):
        return forked_runs.run(command.split(), folder / "run", partial(spare_handles, 58))


@pytest.mark.slow
def test_sixty_four_requests_at_once_fit_into_sixty_four_handles(tmp_path: Path) -> None:
    with faulty_endpoint(0.0) as endpoint, forked_runs.driver() as driver:
        ended = driver.submit(run_with_few_handles, tmp_path, endpoint.url).result()
    assert (ended.code, ended.err) == (0, "")
    held, verdicts = (
        [json.loads(line) for line in (tmp_path / "run" / name).read_text().splitlines()]
        for name in ("conversations.jsonl", "verdicts.jsonl")
    )
    assert [one.get("error") for one in held] == [None] * CONVERSATIONS
    assert len(verdicts) >= 2 * CONVERSATIONS
    assert {one["outcome"] for one in verdicts} == {"scored"}
