"""LogicGraph on a scripted model and an embedder of three directions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.logic_graph.detector import LogicGraphDetector
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import Script, last_user, scripted_pool

REPLY = "The pool opens at 6 every day. Entry costs 9 euros on Sundays."
TEXTS = ("The pool is in Bonn.", "Bonn opens its pools at 6.", "Hats cost 9 euros.")
VIEW = TurnView(
    question="",
    passages=tuple(Passage(id=f"p#{i}", document="p", text=text) for i, text in enumerate(TEXTS)),
    reply=REPLY,
)
ASKED = {"relevance": "served"}
APART = {"relation_capture": False, **ASKED}
BEST = {"relation_capture": False, "weighting": "best"}


class Directions:
    """Texts about Bonn point one way, about hats another; the rest half way."""

    name = "directions"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def passages(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        self.texts += texts
        rows = [[1.0, 0.0] if "Bonn" in t else [0.0, 1.0] if "Hats" in t else [0.6, 0.8] for t in texts]
        return numpy.array(rows, dtype=numpy.float32)

    def queries(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        raise AssertionError("nothing is searched for")


def answers(body: dict[str, Any]) -> dict[str, float]:
    """Both passages about Bonn are needed for the opening hour; hats are irrelevant to all."""
    evidence, asked = last_user(body).split("Statement:\n")
    hats = "Hats" in evidence
    if "help to check" in asked:
        yes = 0.1 if hats else 0.3
    elif "opens at 6" in asked:
        yes = 0.9 if TEXTS[0] in evidence and TEXTS[1] in evidence else 0.2
    else:
        yes = 0.4 if hats else 0.1
    return {"Yes": yes, "No": 1.0 - yes}


def detector(pool: ModelPool, embedder: Directions | None = None, **options: Any) -> LogicGraphDetector:
    """With the paper's S: what is ours in it has tests of its own."""
    ours = {"overlap": 0.0, "relevance_temperature": None}
    context = DetectorContext(models=pool, seed=5, options={**ours, **options})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "hallulab.detectors.logic_graph.detector.get_shared_embedder",
            lambda model: embedder or Directions(),
        )
        return LogicGraphDetector("logic-graph", context)


async def judged(script: Script, view: TurnView = VIEW, **options: Any) -> Judgement:
    return await detector(scripted_pool(script)[0], **options).detect(view)


async def test_related_pieces_are_read_together_and_weighted_by_relevance() -> None:
    judgement = await judged(answers, **ASKED)
    assert judgement.error is None
    hour, price = judgement.units
    # Two groups, of relevances 0.3 and 0.1: S is (0.9·3 + 0.2)/4 and (0.1·3 + 0.4)/4.
    assert hour.score == pytest.approx(1 - 0.725)
    assert price.score == pytest.approx(1 - 0.175)
    assert (hour.kind, REPLY[hour.start : hour.end]) == ("sentence", "The pool opens at 6 every day.")
    assert hour.details == pytest.approx(
        {"entailment 1": 0.9, "entailment 2": 0.2, "relevance 1": 0.3, "relevance 2": 0.1}
    )
    assert (judgement.score, judgement.flagged) == (price.score, True)


async def test_flagged_sentences_are_spans() -> None:
    judgement = await judged(answers)
    assert judgement.spans is not None
    [span] = judgement.spans
    assert REPLY[span.start : span.end] == span.text == "Entry costs 9 euros on Sundays."
    assert span.evidence == "p#2: " + TEXTS[2]


@pytest.mark.parametrize(
    ("options", "score"),
    [
        (APART, 1 - 0.2),
        ({"weighting": "equal"}, 1 - (0.9 + 0.2) / 2),
        ({"weighting": "best"}, 1 - 0.9),
        (BEST, 1 - 0.2),
        ({"top_groups": 1, **ASKED}, 1 - 0.9),
        ({"alpha": 0.01, "group_tokens": 1024, **ASKED}, 1 - 0.725),
        ({"group_tokens": 6}, 1 - 0.2),
        ({}, 1 - (0.9 * 0.6 + 0.2 * 0.8) / 1.4),
        # Cosines of 0.6 and 0.8: the softmax at τ = 0.1 gives e⁻² to 1.
        ({"relevance_temperature": 0.1}, 1 - (0.9 * math.exp(-2) + 0.2) / (math.exp(-2) + 1)),
        ({"relevance_temperature": 0.1, **APART}, 1 - 0.2),
    ],
)
async def test_modules_and_parameters_change_the_score(options: dict[str, Any], score: float) -> None:
    judgement = await judged(answers, **options)
    assert judgement.units[0].score == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize(
    ("top", "score"), [({}, 1 - 0.1), ({"top_groups": None}, 1 - (0.1 * 3 + 0.1 * 3 + 0.4) / 7)]
)
async def test_two_groups_count_or_all(top: dict[str, Any], score: float) -> None:
    judgement = await judged(answers, **APART, **top)
    assert judgement.units[1].score == pytest.approx(score)


async def test_entailment_is_asked_of_the_groups_that_count_alone() -> None:
    pool, transport = scripted_pool(answers)
    hour, _ = (await detector(pool, **APART, top_groups=1).detect(VIEW)).units
    # Of three groups, the first is as relevant as the second, and comes first.
    assert hour.details == pytest.approx(
        {"entailment 1": 0.2, "relevance 1": 0.3, "relevance 2": 0.3, "relevance 3": 0.1}
    )
    assert len(transport.requests) == 2 * 3 + 2


async def test_half_of_the_support_is_the_share_of_the_claims_words_in_the_groups_that_count() -> None:
    pool, _ = scripted_pool(answers)
    hour, price = (await detector(pool, overlap=0.5, **APART, top_groups=2).detect(VIEW)).units
    # Content words: pool, opens, 6, day, and Bonn's passages lack the last; entry, costs, 9, euros, sundays.
    assert hour.score == pytest.approx(1 - (0.2 + 3 / 4) / 2)
    assert (hour.details["overlap 1"], hour.details["overlap 2"]) == (1 / 4, 3 / 4)
    assert price.score == pytest.approx(1 - (0.1 + 0 / 5) / 2)


@pytest.mark.parametrize(
    ("reply", "share"),
    [("Only 9 euros", 2 / 2 * 2 / 3), ("9 pounds", 1 / 2 * 2 / 3), ("They cost 9 euros", 3 / 3)],
)
async def test_a_short_answers_share_is_multiplied_by_that_of_its_question(reply: str, share: float) -> None:
    view = VIEW.model_copy(update={"question": "What do hats and coats cost?", "reply": reply})
    [unit] = (
        await judged(lambda _: {"Yes": 0.2, "No": 0.8}, view, overlap=0.5, relation_capture=False)
    ).units
    assert unit.details["overlap 3"] == pytest.approx(share)


async def test_of_the_best_chunk_the_words_of_no_other_count() -> None:
    hour, price = (await judged(answers, overlap=0.5, **BEST)).units
    assert hour.score == pytest.approx(1 - (0.2 + 3 / 4) / 2)
    assert price.score == pytest.approx(1 - (0.4 + 3 / 5) / 2)


async def test_a_claim_without_content_words_is_all_in_the_evidence() -> None:
    view = VIEW.model_copy(update={"reply": "It is so."})
    [unit] = (await judged(lambda _: {"Yes": 0.2, "No": 0.8}, view, overlap=0.5)).units
    assert unit.score == pytest.approx(1 - (0.2 + 1) / 2)


async def test_without_segmentation_the_reply_is_one_claim() -> None:
    pool, transport = scripted_pool(answers)
    judgement = await detector(pool, segmentation=False).detect(VIEW)
    [unit] = judgement.units
    assert (unit.kind, unit.text) == ("claim", REPLY)
    assert len(transport.requests) == 2


async def test_the_papers_claim_is_the_whole_answer() -> None:
    [unit] = (await judged(answers, claims="answer")).units
    assert (unit.kind, unit.text) == ("claim", REPLY)


async def test_the_evidence_comes_before_what_varies_in_every_request() -> None:
    pool, transport = scripted_pool(answers)
    await detector(pool, **ASKED).detect(VIEW)
    prompts = [last_user(body) for body in transport.requests]
    assert len(prompts) == 8
    together = f"Evidence:\n{TEXTS[0]}\n{TEXTS[1]}\n\nStatement:\n"
    assert sum(prompt.startswith(together) for prompt in prompts) == 4


async def test_the_question_is_part_of_the_claim() -> None:
    pool, transport = scripted_pool(lambda _: {"Yes": 0.9, "No": 0.1})
    view = VIEW.model_copy(update={"question": "When does\nit open?", "reply": "At 6"})
    await detector(pool).detect(view)
    assert all("Question:\nWhen does it open?\n\nAnswer:\nAt 6\n" in last_user(b) for b in transport.requests)
    transport.requests.clear()
    await detector(pool, question=False).detect(view)
    assert all("Statement:\nAt 6\n" in last_user(body) for body in transport.requests)


async def test_the_best_single_chunk_asks_nothing_that_a_variant_asked() -> None:
    pool, transport = scripted_pool(answers)
    await detector(pool, **APART, top_groups=None).detect(VIEW)
    asked = len(transport.requests)
    judgement = await detector(pool, **BEST).detect(VIEW)
    assert len(transport.requests) == asked == 12
    assert len(judgement.calls) == 6
    assert all(call.replayed for call in judgement.calls)


async def test_groups_of_one_chunk_are_shared_with_the_full_model() -> None:
    pool, transport = scripted_pool(answers)
    await detector(pool).detect(VIEW)
    await detector(pool, **BEST).detect(VIEW)
    # Of the three chunks, the one about hats is a group of its own in the full model.
    assert len(transport.requests) == 4 + 2 * 2


async def test_vectors_are_computed_once_and_kept_in_the_recording() -> None:
    recording = Recording()
    pool, _ = scripted_pool(answers, recording=recording)
    embedder = Directions()
    once = detector(pool, embedder)
    first = await once.detect(VIEW)
    second = await detector(pool, embedder).detect(VIEW)
    claims = ["The pool opens at 6 every day.", "Entry costs 9 euros on Sundays."]
    assert sorted(embedder.texts) == sorted([*TEXTS, *claims])
    assert first.units == second.units


async def test_nothing_is_embedded_where_nothing_needs_it() -> None:
    pool, _ = scripted_pool(answers)
    embedder = Directions()
    await detector(pool, embedder, **APART).detect(VIEW)
    assert embedder.texts == []


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (VIEW.model_copy(update={"reply": "?!"}), "the reply has no words"),
        (VIEW.model_copy(update={"reply": "Hello! Feel free to ask."}), "no factual statement"),
        (VIEW.model_copy(update={"passages": ()}), "there is no evidence"),
    ],
)
async def test_it_abstains_where_there_is_nothing_to_judge(view: TurnView, reason: str) -> None:
    pool, transport = scripted_pool(answers)
    judgement = await detector(pool).detect(view)
    assert (judgement.outcome, judgement.error) == ("abstained", reason)
    assert transport.requests == []


async def test_a_model_without_yes_or_no_is_a_failure() -> None:
    judgement = await judged(lambda _: {"Maybe": 1.0})
    assert (judgement.outcome, len(judgement.calls)) == ("failed", 8)


async def test_a_group_that_was_cut_is_never_clean() -> None:
    pool, transport = scripted_pool(lambda _: {"Yes": 0.99, "No": 0.01})
    long = VIEW.model_copy(update={"passages": (Passage(id="p#0", document="p", text="word " * 100),)})
    judgement = await detector(pool, max_group_characters=100).detect(long)
    assert (judgement.outcome, judgement.truncated) == ("abstained", True)
    assert last_user(transport.requests[0]).startswith("Evidence:\n" + "word " * 20 + "\n\nStatement:")


async def test_the_score_at_the_papers_threshold_is_flagged() -> None:
    pool, _ = scripted_pool(lambda _: {"Yes": 0.4, "No": 0.6})
    made = detector(pool, weighting="best")
    assert (made.threshold, made.threshold_protocol) == (0.6, "untuned")
    assert (await made.detect(VIEW)).flagged is True
    assert detector(pool, threshold=0.7).threshold_protocol == "given"


def test_a_tuned_threshold_holds_for_the_default_options_alone() -> None:
    pool = ModelPool({"default": Endpoint("qwen2.5-coder-1.5b", "http://127.0.0.1:9/v1")})
    default = {"overlap": 0.5, "relevance_temperature": 0.1}
    usual, other = (detector(pool, **default, **top) for top in ({}, {"top_groups": None}))
    assert (usual.threshold, usual.threshold_protocol) == (0.22, "tuned")
    assert (other.threshold, other.threshold_protocol) == (0.6, "untuned")


def test_options_change_the_version() -> None:
    pool, _ = scripted_pool(answers)
    assert detector(pool).version == detector(pool).version
    assert detector(pool, alpha=0.5).version != detector(pool).version


def test_it_is_registered() -> None:
    pool, _ = scripted_pool(answers)
    made = make_detector("logic-graph", "graph", DetectorContext(models=pool))
    assert (made.name, made.threshold) == ("graph", 0.6)


def test_a_wrong_option_is_one_sentence() -> None:
    pool, _ = scripted_pool(answers)
    with pytest.raises(UsageError, match="detector logic-graph: option `alpha`: "):
        detector(pool, alpha=0)
