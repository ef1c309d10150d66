"""MetaRAG's Algorithm 1 on a scripted model."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.metarag.detector import MetaRagDetector
from hallulab.detectors.metarag.steps import read_decision
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import Script, ScriptedTransport, last_user, scripted_pool

REPLY = "The pool opens at 6. It costs 9 euros."
PASSAGES = (
    Passage(id="pool#0", document="pool", text="The pool opens at 6 in the morning.", topic="sport"),
    Passage(id="pool#1", document="pool", text="Entry is free.", topic="prices"),
)
VIEW = TurnView(question="When does the pool open?", passages=PASSAGES, reply=REPLY)
FACTS = "1: The pool opens at 6.\n2: The pool costs 9 euros."


class Model:
    """Answers each step; a fact about 6 is stated, one about euros is not, but its opposite is."""

    def __init__(self, facts: str = FACTS, mutations: str | None = None, word: bool = False) -> None:
        self.facts = facts
        self.mutations = mutations
        self.word = word

    def __call__(self, body: dict[str, Any]) -> str | dict[str, float]:
        asked = last_user(body)
        if "response_format" in body:
            return self.mutations if self.mutations is not None else self._mutations(body, asked)
        if "Statement:" in asked:
            return self._verdict(asked)
        return self.facts

    @staticmethod
    def _mutations(body: dict[str, Any], asked: str) -> str:
        fact = asked.rpartition("Fact: ")[2]
        schema = body["response_format"]["json_schema"]["schema"]
        count = schema["properties"]["same"]["minItems"]
        made = {key: [f"{key} {i}: {fact}" for i in range(count)] for key in ("same", "opposite")}
        return json.dumps(made)

    def _verdict(self, asked: str) -> str | dict[str, float]:
        statement = asked.split("Statement:")[1].strip().split("\n")[0]
        true = ("opens" in statement) != statement.startswith("opposite")
        if self.word:
            return "YES" if true else "NO"
        return {"YES": 0.99, "NO": 0.01} if true else {"YES": 0.01, "NO": 0.99}


def detector(pool: ModelPool, **options: Any) -> MetaRagDetector:
    given = {"reading": "probability", **options}
    return MetaRagDetector("metarag", DetectorContext(models=pool, seed=5, options=given))


async def judged(script: Script, view: TurnView = VIEW, **options: Any) -> Judgement:
    return await detector(scripted_pool(script)[0], **options).detect(view)


async def test_a_refuted_factoid_is_flagged_and_a_supported_one_passes() -> None:
    judgement = await judged(Model())
    assert (judgement.outcome, judgement.flagged) == ("scored", True)
    low, high = (unit.score for unit in judgement.units)
    assert low is not None
    assert high is not None
    assert low < 0.02
    assert high > 0.98
    assert judgement.score == high
    assert judgement.spans is not None
    [span] = judgement.spans
    assert (span.text, span.score, span.evidence) == (
        "The pool costs 9 euros.",
        high,
        "pool#0: " + PASSAGES[0].text,
    )
    assert REPLY[span.start : span.end] == "It costs 9 euros."


async def test_every_variant_is_asked_about_and_every_call_is_in_the_ledger() -> None:
    pool, transport = scripted_pool(Model())
    judgement = await detector(pool, mutations=3).detect(VIEW)
    steps = [call.purpose for call in judgement.calls]
    assert steps.count("metarag.decompose") == 1
    assert steps.count("metarag.mutate") == 2
    assert steps.count("metarag.verify") == 2 * (1 + 2 * 3)
    assert len(judgement.calls) == len(transport.requests) == 17
    details = judgement.units[0].details
    assert [key for key in details if key.endswith("penalty")] == [
        "fact penalty",
        *(f"{relation} {number} penalty" for relation in ("synonym", "antonym") for number in (1, 2, 3)),
    ]


async def test_a_penalty_is_expected_over_the_probabilities_of_the_three_decisions() -> None:
    def half_sure(body: dict[str, Any]) -> str | dict[str, float]:
        asked = last_user(body)
        if "Statement:" not in asked:
            return Model(facts="1: The pool opens at 6.")(body)
        if "opposite" not in asked.split("Statement:")[1]:
            return {"YES": 0.3, "NO": 0.1, "NOT": 0.1, "Maybe": 0.5}
        return {"YES": 0.2, "NO": 0.6, "NOT": 0.2}

    judgement = await judged(half_sure)
    details = judgement.units[0].details
    assert [details[f"synonym 1 P({word})"] for word in ("YES", "NO", "NOT SURE")] == pytest.approx(
        [0.6, 0.2, 0.2]
    )
    assert details["synonym 1 penalty"] == pytest.approx(0.2 + 0.2 / 2)
    assert details["antonym 2 penalty"] == pytest.approx(0.2 + 0.2 / 2)
    assert details["fact penalty"] == pytest.approx(0.3)
    assert judgement.score == pytest.approx(0.3)


async def test_six_answered_examples_come_before_the_question() -> None:
    pool, transport = scripted_pool(Model())
    await detector(pool).detect(VIEW)
    asked = [body["messages"] for body in transport.requests if "Statement:" in last_user(body)]
    answers = [message["content"] for message in asked[0] if message["role"] == "assistant"]
    assert sorted(answers) == ["NO", "NO", "NOT SURE", "NOT SURE", "YES", "YES"]
    # All questions about a reply begin alike, up to the statement.
    beginnings = {str(messages).rpartition("Statement:")[0] for messages in asked}
    assert len(beginnings) == 1


async def test_an_ensemble_is_the_mean_penalty_of_its_verifiers() -> None:
    transport = ScriptedTransport(
        lambda body: (
            ("NOT SURE" if body["model"] == "b" else Model(word=True)(body))
            if "Statement:" in last_user(body)
            else Model(word=True)(body)
        )
    )
    endpoints = {name: Endpoint(name[0], "http://127.0.0.1:9/v1") for name in ("default", "beta")}
    pool = ModelPool(endpoints, transport=transport)
    options = {"reading": "word", "verifiers": ["default", "beta"]}
    judgement = await detector(pool, **options).detect(VIEW)
    assert [unit.score for unit in judgement.units] == [0.25, 0.75]


@pytest.mark.parametrize(
    ("options", "flagged"),
    [
        ({}, True),
        ({"tau": 0.6}, False),
        ({"tau": 0.6, "identity_thresholds": {"prices": 0.3}}, True),
        ({"tau": 0.6, "identity_thresholds": {"health": 0.3}}, False),
        ({"tau": 0.4, "identity_thresholds": {"prices": 0.9}}, True),
    ],
)
async def test_thresholds_are_met_at_equality_and_stricter_for_topics(
    options: dict[str, Any], flagged: bool
) -> None:
    judgement = await judged(
        lambda b: "NOT SURE" if "Statement:" in last_user(b) else Model()(b), reading="word", **options
    )
    assert (judgement.score, judgement.flagged) == (0.5, flagged)
    assert len(judgement.spans or ()) == (2 if flagged else 0)


async def test_an_unparseable_decomposition_fails_and_keeps_its_call() -> None:
    judgement = await judged(Model(facts="I cannot do that."))
    assert (judgement.outcome, judgement.spans, len(judgement.calls)) == ("failed", None, 1)
    assert "no numbered facts" in (judgement.error or "")


async def test_mutations_that_do_not_parse_are_tried_twice_and_then_fail() -> None:
    pool, transport = scripted_pool(Model(mutations='{"same": []'))
    judgement = await detector(pool).detect(VIEW)
    assert judgement.outcome == "failed"
    assert (judgement.error or "").startswith("2 of 2 factoids could not be scored: mutate:")
    assert [unit.text for unit in judgement.units] == ["The pool opens at 6.", "The pool costs 9 euros."]
    seeds = sorted(body["seed"] for body in transport.requests if "response_format" in body)
    assert seeds == [5, 5, 6, 6]


def unscorable(word: str) -> Script:
    """A model whose mutations of facts with this word do not parse."""
    return lambda body: "{" if "response_format" in body and word in last_user(body) else Model()(body)


async def test_a_reply_is_not_clean_when_a_factoid_could_not_be_scored() -> None:
    judgement = await judged(unscorable("euros"))
    assert (judgement.outcome, judgement.flagged, judgement.spans) == ("failed", None, None)
    assert (judgement.error or "").startswith(
        "1 of 2 factoids could not be scored, no other is flagged: mutate:"
    )
    assert [unit.score is None for unit in judgement.units] == [False, True]
    assert "mutate" in str(judgement.units[1].details["error"])


async def test_a_flagged_factoid_counts_even_if_another_could_not_be_scored() -> None:
    judgement = await judged(unscorable("opens"))
    assert (judgement.outcome, judgement.flagged) == ("scored", True)
    assert [unit.score is None for unit in judgement.units] == [True, False]


async def test_a_sentence_without_a_fact_is_a_unit_that_was_skipped_and_no_failure() -> None:
    judgement = await judged(Model(facts="1: The pool opens at 6."))
    assert (judgement.outcome, judgement.flagged, judgement.truncated) == ("scored", False, False)
    scored, skipped = judgement.units
    assert (scored.text, scored.score is None) == ("The pool opens at 6.", False)
    assert (skipped.text, skipped.start, skipped.end, skipped.score) == ("It costs 9 euros.", 21, 38, None)
    assert skipped.details == {"skipped": "decomposition states no fact of it"}


async def test_skipped_sentences_do_not_count_among_factoids_that_could_not_be_scored() -> None:
    judgement = await judged(Model(facts="2: The pool costs 9 euros.", mutations="{"))
    assert judgement.outcome == "failed"
    assert (judgement.error or "").startswith("1 of 1 factoids could not be scored: mutate:")
    assert [unit.text for unit in judgement.units] == ["The pool costs 9 euros.", "The pool opens at 6."]


async def test_a_span_rests_on_evidence_that_was_shown() -> None:
    unseen = Passage(id="pool#2", document="pool", text="The pool costs 9 euros.")
    long = Passage(id="x#0", document="x", text="word " * 100)
    view = VIEW.model_copy(update={"passages": (*PASSAGES, long, unseen)})
    judgement = await judged(Model(), view, max_evidence_characters=100)
    assert judgement.spans is not None
    assert [span.evidence for span in judgement.spans] == ["pool#0: " + PASSAGES[0].text]


@pytest.mark.parametrize(("word", "threshold"), [(True, 0.3), (False, 0.49)])
async def test_a_topics_threshold_is_that_of_the_reading(word: bool, threshold: float) -> None:
    pool, _ = scripted_pool(Model(word=word))
    given = {"prices": {"word": 0.3, "probability": 0.49}}
    made = detector(pool, tau=0.9, identity_thresholds=given, reading="word" if word else "probability")
    judgement = await made.detect(VIEW)
    assert judgement.flagged
    assert [
        made._tau_for(view.passages) for view in (VIEW, VIEW.model_copy(update={"passages": PASSAGES[:0]}))
    ] == [threshold, 0.9]


async def test_the_scenarios_thresholds_hold_unless_others_are_given() -> None:
    pool, _ = scripted_pool(lambda b: "NOT SURE" if "Statement:" in last_user(b) else Model()(b))
    flags = []
    given: list[dict[str, Any]] = [{}, {"identity_thresholds": {}}]
    for own in given:
        options = {"reading": "word", "tau": 0.6, **own}
        context = DetectorContext(models=pool, identity_thresholds={"prices": 0.3}, options=options)
        flags.append((await MetaRagDetector("metarag", context).detect(VIEW)).flagged)
    assert flags == [True, False]


async def test_each_step_has_its_own_model_and_temperature() -> None:
    transport = ScriptedTransport(Model(word=True))
    names = ("default", "splitter", "mutator", "verifier")
    pool = ModelPool({name: Endpoint(name, "http://127.0.0.1:9/v1") for name in names}, transport=transport)
    options = {
        "reading": "word",
        "decomposer": "splitter",
        "mutator": "mutator",
        "verifiers": ["verifier"],
        "decomposition_temperature": 0.1,
        "mutation_temperature": 0.2,
        "verification_temperature": 0.3,
    }
    judgement = await detector(pool, **options).detect(VIEW)
    assert {(body["model"], body["temperature"]) for body in transport.requests} == {
        ("splitter", 0.1),
        ("mutator", 0.2),
        ("verifier", 0.3),
    }
    assert {(call.purpose, call.model) for call in judgement.calls} == {
        ("metarag.decompose", "splitter"),
        ("metarag.mutate", "mutator"),
        ("metarag.verify", "verifier"),
    }


async def test_an_empty_variant_is_no_mutation() -> None:
    empty = json.dumps({"same": ["a", " "], "opposite": ["b", "c"]})
    judgement = await judged(Model(mutations=empty))
    assert judgement.outcome == "failed"
    assert "an empty variant" in (judgement.error or "")


@pytest.mark.parametrize(
    ("answer", "decision"),
    [("YES", "YES"), ("No.", "NO"), ("**Not sure**", "NOT SURE"), ("NOT_SURE, because", "NOT SURE")],
)
def test_a_decision_is_what_the_answer_begins_with(answer: str, decision: str) -> None:
    assert read_decision(answer) == decision


@pytest.mark.parametrize("answer", ["", "Not entailed", "Nothing says so", "The evidence says yes", "yeſ"])
def test_an_answer_that_begins_with_no_decision_is_an_error(answer: str) -> None:
    with pytest.raises(UnparseableAnswer, match="neither YES, NO nor NOT SURE"):
        read_decision(answer)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (VIEW.model_copy(update={"reply": " "}), "the reply is empty"),
        (VIEW.model_copy(update={"passages": ()}), "there is no evidence"),
        (
            VIEW.model_copy(update={"passages": (Passage(id="a", document="a", text=" "),)}),
            "there is no evidence",
        ),
        (VIEW.model_copy(update={"reply": "Hello! How can I help you?"}), "no factual statement"),
    ],
)
async def test_with_nothing_to_judge_it_abstains_without_a_call(view: TurnView, reason: str) -> None:
    pool, transport = scripted_pool(Model())
    judgement = await detector(pool).detect(view)
    assert (judgement.outcome, judgement.error, transport.requests) == ("abstained", reason, [])


async def test_cut_evidence_and_cut_factoids_are_marked() -> None:
    pool, _ = scripted_pool(Model())
    long = Passage(id="x#0", document="x", text="word " * 100)
    view = VIEW.model_copy(update={"passages": (*PASSAGES, long)})
    assert (await detector(pool, max_evidence_characters=100).detect(view)).truncated
    assert (await detector(pool, max_factoids=1).detect(VIEW)).truncated
    assert not (await detector(pool).detect(VIEW)).truncated


async def test_the_server_failing_is_a_failed_judgement() -> None:
    judgement = await judged(lambda _: httpx2.Response(400, json={"error": {"message": "too long"}}))
    assert judgement.outcome == "failed"
    assert "too long" in (judgement.error or "")


def test_the_version_follows_options_and_models() -> None:
    pool, _ = scripted_pool(Model())
    other = ModelPool({"default": Endpoint("other", "http://127.0.0.1:9/v1")})
    versions = {
        detector(pool).version,
        detector(pool, mutations=5).version,
        detector(pool, tau=0.3).version,
        detector(pool, reading="word").version,
        detector(other).version,
    }
    assert len(versions) == 5
    assert detector(pool).version == detector(pool, tau=0.375).version


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mutation": 2}, "detector metarag: there is no option `mutation` .*; there are: mutations, tau"),
        ({"mutations": 0}, "option `mutations`: input should be greater than or equal to 1"),
        ({"verifiers": ["gpt"]}, "no model named 'gpt'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    pool, _ = scripted_pool(Model())
    with pytest.raises(UsageError, match=message):
        detector(pool, **options)
