"""HalluDetect's reading `mixture`: one question a sentence on the own passages, weighed by learnt weights."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.halludetect.detector import HalluDetectDetector, choose_kept_places
from hallulab.detectors.halludetect.evidence import adds_support, choose_nearest_passages
from hallulab.detectors.halludetect.mixture import (
    LogisticWeights,
    Mixture,
    compute_log_odds,
    compute_probability,
    find_mixture,
    measure_reply,
    measure_sentence,
)
from hallulab.scenarios.transcript import Message, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import Script, last_user, scripted_pool
from tests.places import ROOT

OWN = Passage(id="pool#0", document="pool", text="The pool opens at 6 in the morning.")
GATE = Passage(id="pool#1", document="pool", text="Tickets cost 4 euros and are sold at the gate.")
VIEW = TurnView(
    question="When does the pool open?",
    passages=(OWN,),
    reply="The pool opens at 6. Call 555-0134 for cheaper tickets. Feel free to ask more.",
)


class Shelf:
    """A knowledge base with one more passage."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        self.asked.append((query, k))
        return (OWN, GATE)


def stated(body: dict[str, Any]) -> str | dict[str, float]:
    """Of opening the documents speak, of tickets where the passage about them is shown."""
    asked = last_user(body)
    if "Statement:" not in asked:
        return "When does the pool open?"
    evidence, sentence = asked.split("Statement:")
    known = "opens" in sentence or ("gate" in sentence and "gate" in evidence)
    return {"YES": 0.9, "NO": 0.1} if known else {"YES": 0.2, "NO": 0.3, "NOT": 0.5}


def detector(script: Script, **options: Any) -> tuple[HalluDetectDetector, list[dict[str, Any]]]:
    pool, transport = scripted_pool(script)
    context = DetectorContext(models=pool, options={"reading": "mixture", **options})
    return HalluDetectDetector("halludetect", context), transport.requests


async def test_a_sentence_costs_one_call_and_courtesies_none() -> None:
    judge, requests = detector(stated)
    judgement = await judge.detect(VIEW)
    assert [call.purpose for call in judgement.calls] == ["halludetect.verification"] * 2
    assert all("Document 1: The pool opens at 6 in the morning." in last_user(body) for body in requests)
    assert judgement.units[2].details == {"rule": "claims nothing"}


async def test_without_a_mixture_the_answer_alone_decides() -> None:
    judge, _ = detector(stated)
    judgement = await judge.detect(VIEW)
    assert (judge.threshold, judge.threshold_protocol) == (4.0, "untuned")
    assert [unit.score for unit in judgement.units] == pytest.approx([1.6, 4.6, 1.0])
    assert [(span.text, span.severity, span.probability) for span in judgement.spans or ()] == [
        ("Call 555-0134 for cheaper tickets.", None, pytest.approx(0.8))
    ]


async def test_a_reason_names_the_wrong_item_without_a_call() -> None:
    judge, requests = detector(stated)
    judgement = await judge.detect(VIEW)
    assert "555-0134" in (judgement.spans or ())[0].reason
    assert len(requests) == 2


async def test_what_doubled_retrieval_adds_is_asked_only_where_the_own_passages_are_silent() -> None:
    shelf = Shelf()
    judge, requests = detector(stated)
    reply = "The pool opens at 6 in the morning. Tickets are sold at the gate."
    judgement = await judge.detect(VIEW.model_copy(update={"reply": reply, "knowledge": shelf}))
    assert shelf.asked == [("When does the pool open?", 2)]
    assert [call.purpose for call in judgement.calls].count("halludetect.verification") == 3
    assert "Document 1: Tickets cost 4 euros" in last_user(requests[-1])
    assert (judgement.flagged, judgement.spans) == (False, ())
    assert judgement.units[0].details == {"step": "reformulated query"}


async def test_with_a_mixture_the_reply_is_weighed_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture = Mixture(
        sentence=LogisticWeights(intercept=0.0, weights={"unsupported": 1.0}),
        reply=LogisticWeights(intercept=-1.0, weights={"any": 0.0, "unknown": 2.0}),
    )
    monkeypatch.setattr("hallulab.detectors.halludetect.detector.find_mixture", lambda model: mixture)
    judge, _ = detector(stated)
    judgement = await judge.detect(VIEW)
    # 11 of 16 words are new, to which 8 are added: log-odds 2 * 11/24 - 1 = -1/12.
    p = 1 / (1 + math.exp(1 / 12))
    assert judge.threshold_protocol == "tuned"
    assert judgement.score == pytest.approx(1 + 3 * p / 0.5)
    assert judgement.units[1].score == pytest.approx(4.6)


async def test_weights_are_part_of_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = detector(stated)[0].version
    weights = LogisticWeights(intercept=0.0, weights={"unsupported": 1.0})
    mixture = Mixture(sentence=weights, reply=LogisticWeights(intercept=0.0, weights={"any": 1.0}))
    monkeypatch.setattr("hallulab.detectors.halludetect.detector.find_mixture", lambda model: mixture)
    learnt, _ = detector(stated)
    assert learnt.version != plain


async def test_what_the_user_said_needs_no_question() -> None:
    judge, requests = detector(stated)
    history = (Message(role="user", text="My mail is a.b@mail.com"), Message(role="assistant", text="Good."))
    view = VIEW.model_copy(update={"history": history, "reply": "Email: a.b@mail.com"})
    judgement = await judge.detect(view)
    assert (judgement.score, judgement.spans, requests) == (1.0, (), [])


@pytest.mark.parametrize(
    ("severities", "score", "kept"),
    [([1.0, 4.2, 4.0], 4.5, [1, 2]), ([1.0, 4.2, 4.0], 3.9, []), ([1.0, 3.0, 2.0], 4.0, [1]), ([], 5.0, [])],
)
def test_sentences_are_kept_of_flagged_replies(
    severities: list[float], score: float, kept: list[int]
) -> None:
    assert choose_kept_places(severities, score, 4.0) == kept


def test_a_sentence_is_measured_by_answer_length_new_words_and_misplaced_items() -> None:
    found = measure_sentence("One two three four five", 0.5, {"one", "two"}, 0.8)
    novelty = pytest.approx(0.6 - 0.45)
    assert found == {"unsupported": 0.0, "length": math.log(5), "novelty": novelty, "misattributed": 0.8}
    assert measure_sentence("One two", 0.5, {"one", "two"}, 0.0)["length"] == math.log(3)


def test_a_reply_is_wrong_when_one_of_its_three_worst_sentences_is() -> None:
    measured = measure_reply("one two three four", [-9.0, 0.0, 0.0, 0.0], {"one"})
    assert measured == {"any": pytest.approx(math.log(7)), "unknown": 3 / 12}


@given(st.permutations([-2.0, 0.5, 1.0, 3.0]))
def test_the_order_of_sentences_says_nothing(odds: list[float]) -> None:
    assert measure_reply("one", odds, set()) == measure_reply("one", [-2.0, 0.5, 1.0, 3.0], set())


def test_log_odds_are_kept_finite() -> None:
    assert (compute_log_odds(0.0), compute_log_odds(1.0)) == pytest.approx(
        (math.log(0.001 / 0.999), math.log(999.0))
    )


@given(st.floats(-700, 700))
def test_probability_undoes_log_odds(odds: float) -> None:
    assert 0.0 <= compute_probability(odds) <= 1.0
    if abs(odds) < 6:
        assert compute_log_odds(compute_probability(odds)) == pytest.approx(odds)


def test_the_default_model_has_a_mixture_and_others_none() -> None:
    found = find_mixture("qwen2.5-coder-1.5b")
    assert found is not None
    assert set(found.sentence.weights) == {"unsupported", "length", "novelty", "misattributed"}
    assert set(found.reply.weights) == {"any", "unknown"}
    assert find_mixture("something-else") is None


def passage(text: str) -> Passage:
    return Passage(id=text, document="d", text=text)


def test_the_nearest_passages_keep_their_order() -> None:
    given_ = [passage("alpha beta"), passage("gamma delta"), passage("beta gamma")]
    assert choose_nearest_passages(given_, "gamma beta", 20) == (given_[0], given_[2])
    assert choose_nearest_passages(given_, "gamma beta", 1) == (given_[2],)
    assert choose_nearest_passages([], "gamma", 20) == ()


def test_a_found_passage_counts_where_the_own_are_silent_and_it_is_near() -> None:
    sentence = "Tickets are sold near the gate"
    assert adds_support(sentence, [OWN], GATE)
    assert not adds_support(sentence, [GATE], GATE)
    assert not adds_support(sentence, [OWN], OWN)
    assert not adds_support("It is so", [OWN], GATE)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_nearest_passages_do_not_hang_on_the_order_of_sets(seed: int) -> None:
    script = (
        "from hallulab.detectors.halludetect.evidence import choose_nearest_passages\n"
        "from hallulab.scenarios.transcript import Passage\n"
        "words = [f'word{number}' for number in range(900)]\n"
        "alike = [' '.join([*words[:300], *(f'more{m}x{n}' for m in range(n))]) for n in range(0, 500, 10)]\n"
        "others = [' '.join(words[:n]) for n in range(1, 300, 3)]\n"
        "passages = [\n"
        "    Passage(id=str(n), document='d', text=text) for n, text in enumerate([*alike, *others])\n"
        "]\n"
        "kept = choose_nearest_passages(passages, ' '.join(words), sum(map(len, alike[:5])))\n"
        "print(*(passage.id for passage in kept))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "0 1 2 3 4\n"
