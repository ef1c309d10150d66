"""The papers' examples through the real 1.5B model: recorded for CI, and live.

To record again after a prompt has changed: delete `tests/recordings/vignettes.jsonl`, serve the model and run
the live tests of this file with HALLULAB_LIVE_URL=http://127.0.0.1:PORT/v1 and HALLULAB_RECORD=1 set.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.chatbots.guarded.policy import load_policy
from hallulab.scenarios.transcript import Judgement
from hallulab.scenarios.turn_views import TurnView
from tests.detectors import vignettes
from tests.detectors.vignettes import GROUNDED, HELPLINE, IBUPROFEN, NOTICE, RECORDING, REFUGEE, TRIPURA


@pytest.fixture(params=["recorded", pytest.param("live", marks=pytest.mark.live)])
async def pool(request: pytest.FixtureRequest) -> AsyncIterator[ModelPool]:
    if request.param == "recorded":
        recording, url = Recording.replay(RECORDING), "http://127.0.0.1:9/v1"
    else:
        url = _live_url(request)
        recording = Recording.record(RECORDING) if os.environ.get("HALLULAB_RECORD") else Recording()
    models = vignettes.recorded_pool(recording, url)
    yield models
    await models.close()
    recording.close()


def _live_url(request: pytest.FixtureRequest) -> str:
    if given := os.environ.get("HALLULAB_LIVE_URL"):
        return given
    try:
        return str(request.getfixturevalue("live_model"))
    except pytest.FixtureLookupError:
        pytest.skip("no served model: set HALLULAB_LIVE_URL")


def flagged(judgement: Judgement, view: TurnView) -> list[str]:
    assert judgement.outcome == "scored", judgement.error
    assert judgement.spans is not None
    assert all(span.text == view.reply[span.start : span.end] for span in judgement.spans)
    return [span.text for span in judgement.spans]


async def test_halludetect_flags_the_invented_address_and_phone_numbers(pool: ModelPool) -> None:
    judgement = await vignettes.judged(pool, "halludetect", TRIPURA)
    found = flagged(judgement, TRIPURA)
    assert any("The address is:State Consumer Dispute Redressal Commission" in text for text in found)
    assert any("0381-232-0325 or 0381-232-0326" in text for text in found)
    assert all((span.score or 0) >= 4 and span.reason for span in judgement.spans or ())


async def test_halludetect_lets_the_offer_and_the_real_helpline_pass(pool: ModelPool) -> None:
    judgement = await vignettes.judged(pool, "halludetect", TRIPURA)
    found = flagged(judgement, TRIPURA)
    assert not any("feel free to ask" in text or "1800-11-4000" in text for text in found)
    assert judgement.units[-1].text.endswith("feel free to ask.")
    assert judgement.units[-1].score == 1.0


async def test_halludetect_does_not_flag_the_email_that_the_user_gave(pool: ModelPool) -> None:
    judgement = await vignettes.judged(pool, "halludetect", NOTICE)
    assert (judgement.flagged, flagged(judgement, NOTICE)) == (False, [])


THRESHOLDS = load_policy("metarag").resolve("probability").thresholds
GENERAL, SENSITIVE = THRESHOLDS.general, THRESHOLDS.sensitive
"""The thresholds of the built-in policy for the default model."""


async def test_metarag_flags_ibuprofen_at_the_general_threshold(pool: ModelPool) -> None:
    """The evidence contradicts it: S = 0.92 in the paper."""
    judgement = await vignettes.judged(pool, "metarag", IBUPROFEN, tau=GENERAL)
    assert judgement.score == pytest.approx(0.855, abs=0.005)
    assert any("safe throughout pregnancy" in unit.text for unit in judgement.units)
    [place] = [(span.start, span.end) for span in judgement.spans or ()]
    assert "safe throughout pregnancy" in IBUPROFEN.reply[place[0] : place[1]]


async def test_metarag_flags_refugee_protection_at_the_identity_threshold(pool: ModelPool) -> None:
    """The evidence does not tell: S = 0.5 in the paper, between a general and a stricter threshold."""
    flags = [
        (await vignettes.judged(pool, "metarag", REFUGEE, tau=GENERAL, identity_thresholds=own)).flagged
        for own in ({}, {"asylum": SENSITIVE})
    ]
    assert flags == [False, True]
    judgement = await vignettes.judged(pool, "metarag", REFUGEE)
    assert judgement.score == pytest.approx(0.544, abs=0.005)


async def test_metarag_lets_a_grounded_fact_pass(pool: ModelPool) -> None:
    judgement = await vignettes.judged(pool, "metarag", GROUNDED, tau=SENSITIVE)
    assert (judgement.outcome, judgement.flagged) == ("scored", False)


@pytest.mark.parametrize("name", vignettes.TRUE_BESIDE)
async def test_halludetect_lets_a_true_sentence_beside_each_example_pass(pool: ModelPool, name: str) -> None:
    judgement = await vignettes.judged(pool, "halludetect", vignettes.TRUE_BESIDE[name])
    assert (judgement.outcome, judgement.flagged) == ("scored", False)


@pytest.mark.parametrize("name", vignettes.TRUE_BESIDE)
async def test_metarag_lets_a_true_sentence_beside_each_example_pass_at_the_strictest_threshold(
    pool: ModelPool, name: str
) -> None:
    judgement = await vignettes.judged(pool, "metarag", vignettes.TRUE_BESIDE[name], tau=SENSITIVE)
    assert (judgement.outcome, judgement.flagged) == ("scored", False)


async def test_a_contact_given_to_the_wrong_body_is_flagged_and_named(pool: ModelPool) -> None:
    judgement = await vignettes.judged(pool, "halludetect", HELPLINE)
    [span] = judgement.spans or ()
    assert "15100" in span.text
    assert "15100" in span.reason
    assert "1915" in span.reason


async def test_reasons_name_the_wrong_item(pool: ModelPool) -> None:
    judgement = await vignettes.judged(pool, "halludetect", TRIPURA)
    reasons = [span.reason for span in judgement.spans or ()]
    assert len(set(reasons)) == len(reasons)
    assert any("0381-232-0325" in reason for reason in reasons)
