"""Thresholds, what they rest on, and keeping what was learnt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.evidence_chain.model import (
    Method,
    build_model_inputs,
    compute_rule_risk,
    load_model,
    save_model,
)
from hallulab.detectors.evidence_chain.training import hold_out, train
from hallulab.detectors.features.batch import make_batch, make_case
from hallulab.detectors.features.features import Features, measure
from hallulab.detectors.features.matching import DocumentFrequency
from hallulab.detectors.features.trained_detector import (
    SHALLOW,
    assign_parts,
    choose_threshold,
    count_forms,
    mark_gold,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply
from tests.detectors.features.material import batch, corpus

FEW_TREES = SHALLOW._replace(trees=10)


def test_the_threshold_with_the_largest_f1_is_half_way_to_what_it_leaves_out() -> None:
    labels = np.array([True, True, False, True, False])
    assert choose_threshold(labels, np.array([0.875, 0.75, 0.625, 0.5, 0.25])) == 0.375
    assert choose_threshold(np.array([True, False, False]), np.array([0.5, 0.5, 0.25])) == 0.375
    assert choose_threshold(np.array([False, True]), np.array([0.5, 0.25])) == 0.25


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.2, 0.3, 0.4])), min_size=1, max_size=20))
def test_no_other_threshold_has_a_larger_f1(sample: list[tuple[bool, float]]) -> None:
    labels = np.array([label for label, _ in sample])
    scores = np.array([score for _, score in sample])
    if not labels.any():
        with pytest.raises(ValueError, match="no positive label"):
            choose_threshold(labels, scores)
        return

    def f1(threshold: float) -> float:
        flags = scores >= threshold
        return float(2 * (flags & labels).sum() / (flags.sum() + labels.sum()))

    assert f1(choose_threshold(labels, scores)) == max(f1(score) for score in scores)


def test_groups_are_dealt_out_whole_and_evenly() -> None:
    replies = corpus(10)
    parts = assign_parts(replies, seed=0).tolist()
    assert sorted(parts) == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4]
    assert len({(one.group, part) for one, part in zip(replies, parts, strict=True)}) == 10
    assert assign_parts(replies, seed=0).tolist() == parts
    assert assign_parts(replies, seed=1).tolist() != parts


def test_one_group_is_too_few() -> None:
    with pytest.raises(UsageError, match="two groups or more"):
        assign_parts(corpus(1), seed=0)


def test_every_part_is_held_out_in_turn_and_everything_is_learnt_from() -> None:
    held_out = hold_out(corpus(10), seed=0)
    assert [int(part.sum()) for part in held_out.parts] == [4] * 5
    assert (held_out.judged.all(), held_out.learnt.all()) == (True, True)


def marked(replies: list[LabelledReply], *groups: str) -> list[LabelledReply]:
    """The groups are the data's own calibration split."""
    return [
        one.model_copy(update={"meta": {"split": "calibration" if one.group in groups else "train"}})
        for one in replies
    ]


def test_a_calibration_split_in_the_data_is_for_the_thresholds_alone() -> None:
    replies = marked(corpus(10), "3", "7")
    held_out = hold_out(replies, seed=0)
    assert {one.group for one, held in zip(replies, held_out.judged, strict=True) if held} == {"3", "7"}
    assert (held_out.learnt == ~held_out.judged).all()
    assert {one.group for one in held_out.to_learn_from(replies)} == set("01245689")
    with pytest.raises(UsageError, match="All training replies are marked"):
        hold_out(marked(corpus(2), "0", "1"), seed=0)


def test_words_of_the_calibration_split_are_not_counted() -> None:
    model = train("tfidf", marked(corpus(10), "3", "7"))
    of_others = [make_case(one) for one in corpus(10) if one.group not in "37"]
    assert model.frequency == count_forms(make_batch(of_others))


def test_a_calibration_split_without_hallucinations_is_refused() -> None:
    replies = [one for one in marked(corpus(4), "0") if one.group != "0" or not one.label]
    with pytest.raises(UsageError, match="no word of the calibration split is hallucinated"):
        train("lexical", replies)


def test_what_scores_a_reply_for_the_thresholds_did_not_learn_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A classifier that says how often it saw a sentence: of those held out, never."""

    class Seen:
        def fit(self, inputs: np.ndarray, labels: np.ndarray) -> Seen:
            self.seen = {tuple(row) for row in inputs.tolist()}
            return self

        def predict(self, inputs: np.ndarray) -> np.ndarray:
            return np.array([tuple(row) in self.seen for row in inputs.tolist()], dtype=float)

    monkeypatch.setattr("hallulab.detectors.evidence_chain.training.make_forest", lambda *_: Seen())
    monkeypatch.setattr("hallulab.detectors.evidence_chain.training.freeze", lambda fitted: fitted)
    replies = [
        one.model_copy(update={"meta": {"temperature": float(one.group)}}) for one in corpus(10)
    ]  # the temperature makes every group's inputs its own
    model = train("rf", replies, 0, "paper", ("temperature",))
    assert (model.thresholds.sentence, model.thresholds.response) == (0.0, 0.0)
    assert set(model.score([make_case(one) for one in replies]).replies.tolist()) == {1.0}


def test_gold_follows_the_overlap_rule() -> None:
    clean, wrong = corpus(1)
    made = make_batch([make_case(clean), make_case(wrong)])
    assert mark_gold(made.sentences, [clean, wrong]).tolist() == [False, False, False, True]
    words = wrong.reply.split()
    flagged = mark_gold(made.words, [clean, wrong]).tolist()[-len(words) :]
    assert flagged == [False] * words.index("moved") + [True] * (len(words) - words.index("moved"))


def test_forms_are_counted_once_a_text() -> None:
    made = batch("Maps, maps. An old map.", "Old maps, old walls.")
    frequency = count_forms(made)
    assert frequency.texts == 3
    # "maps": chunk and first sentence; stem "map": these and the second, where it is also exact
    assert dict(frequency.counts) == {"map": 3, "maps": 2, "old": 2}


def features_of(reply: str, evidence: str) -> Features:
    return measure(batch(reply, evidence), DocumentFrequency(0, {}), "paper")


@pytest.mark.parametrize(
    ("method", "expected"), [("lexical", 1 / 2), ("tfidf", 1 - 2 / 4), ("nli-rules", 1.0)]
)
def test_rules_turn_features_into_risks(method: Method, expected: float) -> None:
    features = features_of("Bread costs 7 or 8.", "Bread costs 3 euros.")
    assert compute_rule_risk(method, features).tolist() == [pytest.approx(expected)]


def test_bm25_is_blended_with_coverage() -> None:
    features = features_of("Bread costs 7 or 8.", "Bread costs 3 euros.")
    score = float(features.column("bm25")[0])
    assert 0 < score < 0.5
    assert compute_rule_risk("bm25", features).tolist() == [pytest.approx(1 - (score + 0.5) / 2)]


def test_a_category_never_seen_is_no_input() -> None:
    made = batch("Bread.", "Bread.")
    features = measure(made, DocumentFrequency(0, {}), "paper")
    inputs = build_model_inputs(made, features, ("task",), {"task": ["qa", "summary"]})
    assert inputs[0, 6:].tolist() == [1.0, 0.0]
    assert build_model_inputs(made, features, ("generator",), {"generator": ["gpt"]})[0, 6:].tolist() == [0.0]
    assert build_model_inputs(made, features, ("temperature",), {})[0, 6:].tolist() == [0.0]


@pytest.mark.parametrize("method", ["lexical", "lr", "rf"])
def test_training_is_deterministic_and_survives_saving(method: Method, tmp_path: Path) -> None:
    replies = corpus(10, model="a", source="made")
    model, again = (
        train(method, replies, 3, "extended", ("task", "collection", "generator", "temperature"), FEW_TREES)
        for _ in range(2)
    )
    save_model(model, tmp_path / "kept.npz")
    kept = load_model(tmp_path / "kept.npz")
    cases = [make_case(reply) for reply in replies]
    expected = model.score(cases)
    for other in (again, kept):
        assert other.thresholds == model.thresholds
        assert other.identity == model.identity
        assert (other.score(cases).words == expected.words).all()
        assert (other.score(cases).sentences == expected.sentences).all()
    assert (kept.method, kept.features, kept.context) == (model.method, model.features, model.context)


def test_what_was_learnt_tells_invented_sentences_apart() -> None:
    model = train("rf", corpus(10), 0, "paper", forest=FEW_TREES)
    clean, wrong = corpus(10)[:2]
    scores = model.score([make_case(clean), make_case(wrong)])
    assert scores.replies[0] < model.thresholds.response <= scores.replies[1]
    assert scores.sentences[2] < model.thresholds.sentence <= scores.sentences[3]


def test_without_spans_there_is_nothing_to_learn() -> None:
    blind = [one.model_copy(update={"spans": None}) for one in corpus(4)]
    with pytest.raises(UsageError, match="learns from hallucinated spans"):
        train("rf", blind)


def test_hallucinations_of_one_group_alone_teach_nothing_about_the_others() -> None:
    replies = [one for one in corpus(4) if one.group == "0" or not one.label]
    with pytest.raises(UsageError, match="of the sentences to learn from, none are hallucinated"):
        train("lr", replies)
    assert train("lexical", replies).thresholds.response > 0


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.npz"
    with pytest.raises(UsageError, match="no such trained model"):
        load_model(path)
    path.write_text("hello")
    with pytest.raises(UsageError, match="this is no trained model of this detector"):
        load_model(path)


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.npz"
    model = train("lexical", corpus(4))
    monkeypatch.setattr("hallulab.detectors.evidence_chain.model.FORMAT", 0)
    save_model(model, path)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="its format is 0, not 2"):
        load_model(path)
