"""What `python -m benchmarks.decide` measures, in its short form; it decides as runs do."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.decide import SETTINGS, Setting, follow, measure, plan_persons
from hallulab.simulator.records.experiment_fields import BATCH
from hallulab.simulator.statistics.sequence import Decider
from tests.places import ROOT

DOCS = ROOT / "docs" / "studies" / "decide.md"
APART = Setting("two, 0.8 apart", (0.2, 1.0))
EQUAL = Setting("two equal", (0.3, 0.3))


def test_experiments_are_followed_as_a_run_decides() -> None:
    setting = Setting("three", (0.3, 1.0, 1.6))
    rates = setting.draw(4, 100, np.random.default_rng(3))
    found = follow(rates, np.array(setting.rates))

    for number, experiment in enumerate(rates):
        decider = Decider(["a", "b", "c"])
        held = 0
        for person, own in enumerate(experiment.tolist()):
            if person % BATCH == 0:
                asked = decider.next_chatbots
                if decider.end_batch().kind != "open":
                    break
            held += len(asked)
            decider.add(str(person), {name: own["abc".index(name)] for name in asked})
        decision = decider.state()
        assert (decision.kind, decision.best) == ("best", "a")
        assert (decision.persons, held) == (found.persons[number], found.conversations[number])
    assert found.right.all()


@pytest.mark.parametrize("setting", [APART, EQUAL])
def test_what_is_decided_is_right(setting: Setting) -> None:
    line = dict(zip(("right", "wrong", "ever"), measure(setting, 40, 200)[2:5], strict=True))

    assert line == {"right": "100.0", "wrong": "0.0", "ever": "0.0"}


@pytest.mark.parametrize("setting", [SETTINGS[0], SETTINGS[3]], ids=["equal", "at the margin"])
def test_few_are_ever_wrong_where_it_is_hardest(setting: Setting) -> None:
    found = follow(setting.draw(300, 150, np.random.default_rng(3)), np.array(setting.rates))

    assert 0 < found.ever_wrong.mean() <= 0.05


def test_a_wider_margin_is_reached_sooner() -> None:
    rates = EQUAL.draw(20, 150, np.random.default_rng(3))

    persons = [follow(rates, np.array(EQUAL.rates), margin).persons.mean() for margin in (0.2, 0.4)]

    assert persons[1] < persons[0] / 2


def test_a_decision_for_the_worse_one_is_wrong() -> None:
    rates = APART.draw(5, 100, np.random.default_rng(3))

    found = follow(rates, np.array([1.0, 0.2]))

    assert found.wrong.all()
    assert found.ever_wrong.all()
    assert not found.right.any()


def test_alike_is_wrong_for_those_that_differ_by_the_margin() -> None:
    rates = EQUAL.draw(5, 150, np.random.default_rng(3))

    assert follow(rates, np.array([0.3, 0.5])).wrong.all()
    assert follow(rates, np.array([0.3, 0.49])).right.all()


def test_a_fixed_design_is_as_books_have_it() -> None:
    """Two-sided 5%, 80%: 7.85 times the variance over the squared difference."""
    assert plan_persons(1.0, 0.5, 1, 0.8) == pytest.approx(31.4, abs=0.01)


def test_made_persons_have_the_rates_and_share_what_is_common() -> None:
    drawn = Setting("", (0.4, 0.8), common=2.0, own=50.0).draw(20, 500, np.random.default_rng(3))

    assert drawn.mean(axis=(0, 1)).tolist() == pytest.approx([0.4, 0.8], abs=0.03)
    assert np.corrcoef(drawn[..., 0].ravel(), drawn[..., 1].ravel())[0, 1] > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS[:12:4], ids=lambda setting: setting.name)
def test_the_page_has_what_is_measured(setting: Setting) -> None:
    assert f"| {' | '.join(measure(setting))} |" in DOCS.read_text(encoding="utf-8")


def test_settings_have_names_of_their_own() -> None:
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
