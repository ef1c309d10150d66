"""Many conversations at once where a process may open few files: each is held, and each reply is judged."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from hallulab.testing import forked_runs
from hallulab.testing.faulty_endpoint import faulty_endpoint
from hallulab.testing.recorded_run import work_in
from tests.simulator.cli.test_surroundings import few_handles

CONVERSATIONS = 40


@pytest.mark.slow
def test_sixty_four_requests_at_once_fit_into_sixty_four_handles(tmp_path: Path) -> None:
    with work_in(tmp_path), faulty_endpoint(0.0) as endpoint:
        command = f"run --scenario {tmp_path}/pack --model stub --base-url {endpoint.url} --chatbots vanilla "
        command += f"--detectors lexical,direct-judge --count {CONVERSATIONS} --concurrency 64 --quiet"
        ended = forked_runs.run(command.split(), tmp_path / "run", partial(few_handles, 58))
    assert (ended.code, ended.err) == (0, "")
    held = [json.loads(line) for line in (tmp_path / "run" / "conversations.jsonl").read_text().splitlines()]
    verdicts = [json.loads(line) for line in (tmp_path / "run" / "verdicts.jsonl").read_text().splitlines()]
    assert [one.get("error") for one in held] == [None] * CONVERSATIONS
    assert len(verdicts) >= 2 * CONVERSATIONS
    assert {one["outcome"] for one in verdicts} == {"scored"}
