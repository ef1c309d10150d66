"""`benchmarks.gate` in short: made runs of the recorded demo, blocked seldom unless they are worse."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gate import (
    build_pool,
    count_blocked,
    count_self_passes,
    make_run,
    render_recorded,
    render_share,
)
from hallulab.simulator.compare.gate_result import GateRules
from hallulab.simulator.compare.summary import RunSummary, summarize_run
from hallulab.simulator.records.folder import RunFolder


@pytest.fixture(scope="module")
def recorded(demo_replay: RunFolder) -> RunSummary:
    """The demo's summary."""
    return summarize_run(demo_replay)


def test_a_run_passes_against_itself_with_any_random_numbers(recorded: RunSummary) -> None:
    made = make_run(np.random.default_rng(0), build_pool(recorded), recorded, 20)
    assert count_self_passes(made, 5) == 5


def test_a_made_run_is_of_one_chatbot_with_that_many_personas(recorded: RunSummary) -> None:
    made = make_run(np.random.default_rng(0), build_pool(recorded), recorded, 20)
    assert (made.chatbots, len({one.persona for one in made.conversations})) == (["bot"], 20)
    assert made.detectors == ["halludetect", "metarag"]


def test_seeds_alone_block_seldom_and_a_worse_chatbot_often(recorded: RunSummary) -> None:
    pool = build_pool(recorded)
    assert count_blocked(pool, recorded, 20, 10) == 0
    assert count_blocked(pool, recorded, 20, 10, worse=2.0) == 10


def test_the_guard_blocks_what_the_test_does_not(recorded: RunSummary) -> None:
    pool = build_pool(recorded)
    assert count_blocked(pool, recorded, 20, 5, severe=0.2) == 0
    assert count_blocked(pool, recorded, 20, 5, severe=0.2, rules=GateRules()) == 5


def test_a_recorded_chatbot_is_the_bot_before_and_after_a_change(recorded: RunSummary) -> None:
    assert render_recorded(recorded).splitlines()[2] == (
        "| agent → vanilla | halludetect | 0.50 → 1.00 | 1.000 | passed |"
    )


def test_a_share_has_its_exact_interval() -> None:
    assert render_share(0, 200) == "0.0% [0.0%, 1.8%]"
    assert render_share(5, 200) == "2.5% [0.8%, 5.7%]"


@pytest.mark.slow
def test_a_run_passes_against_itself_200_times_of_200(recorded: RunSummary) -> None:
    made = make_run(np.random.default_rng(0), build_pool(recorded), recorded, 20)
    assert count_self_passes(made, 200) == 200


@pytest.mark.slow
def test_two_runs_of_one_bot_are_blocked_at_most_10_times_of_200(recorded: RunSummary) -> None:
    assert count_blocked(build_pool(recorded), recorded, 20, 200, rules=GateRules()) <= 10
