"""The recorded realism run: 30 users in the default ways of talking, with one chatbot."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median

import pytest

from hallulab import run
from hallulab.simulator.metrics.message_sample import MessageSample
from hallulab.simulator.metrics.messages import Messages
from hallulab.simulator.metrics.realism import compare_messages
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.people import read_people
from hallulab.simulator.report.realism import read_run_messages
from tests.places import RECORDINGS, ROOT


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> list[Messages]:
    """The messages of each user."""
    folder = tmp_path_factory.mktemp("realism")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        run(
            ROOT / "examples" / "realism.yaml",
            model="qwen2.5-coder-1.5b",
            replay=RECORDINGS / "realism.jsonl.gz",
            out=folder / "run",
            quiet=True,
        )
    return list(read_run_messages(RunFolder(Path(folder / "run"))))


def test_users_ask_thank_and_end_as_often_as_people(users: list[Messages]) -> None:
    """People (isle-dev/realsim): 0.54 questions a message, thanks in 1.8%, a median of 6 messages."""
    assert len(users) == 30
    assert mean(number for one in users for number in one.counts["questions"]) == 0.5
    assert mean(number for one in users for number in one.counts["thanks"]) == 5 / 176
    assert median(len(one.texts) for one in users) == 6


def test_all_measures_are_within_the_noise_of_people_with_goals(users: list[Messages]) -> None:
    """Two numbers of users seldom differ by less than the floor; 8 measures of realsim need no text."""
    people = [MessageSample(one.conversations, None) for one in read_people([])]
    _, rows = compare_messages(MessageSample(users, None), people)
    tested = [
        [row.comparisons[at] for row in rows if row.comparisons[at].p_value is not None] for at in (0, 1)
    ]
    assert [sum(one.p_value >= 0.05 for one in own if one.p_value is not None) for own in tested] == [4, 8]
