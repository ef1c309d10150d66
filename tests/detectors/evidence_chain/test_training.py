"""Thresholds, calibration, and keeping what was learnt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st

from detectors.evidence_chain.batch import make_batch
from detectors.evidence_chain.features import Features, measure
from detectors.evidence_chain.matching import DocumentFrequency
from detectors.evidence_chain.model import load_model, save_model
from detectors.evidence_chain.risk import Method, model_inputs, rule_risk
from detectors.evidence_chain.training import (
    best_threshold,
    calibration_split,
    case_of,
    count_forms,
    gold,
    train,
)
from scenarios.errors import UsageError
from tests.detectors.evidence_chain.material import batch, corpus


def test_the_threshold_with_the_largest_f1_is_half_way_to_what_it_leaves_out() -> None:
    labels = np.array([True, True, False, True, False])
    assert best_threshold(labels, np.array([0.875, 0.75, 0.625, 0.5, 0.25])) == 0.375
    assert best_threshold(np.array([True, False, False]), np.array([0.5, 0.5, 0.25])) == 0.375
    assert best_threshold(np.array([False, True]), np.array([0.5, 0.25])) == 0.25


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.2, 0.3, 0.4])), min_size=1, max_size=20))
def test_no_other_threshold_has_a_larger_f1(sample: list[tuple[bool, float]]) -> None:
    labels = np.array([label for label, _ in sample])
    scores = np.array([score for _, score in sample])
    if not labels.any():
        with pytest.raises(ValueError, match="no positive label"):
            best_threshold(labels, scores)
        return

    def f1(threshold: float) -> float:
        flags = scores >= threshold
        return float(2 * (flags & labels).sum() / (flags.sum() + labels.sum()))

    assert f1(best_threshold(labels, scores)) == max(f1(score) for score in scores)


def test_no_group_is_learnt_from_and_calibrated_on() -> None:
    trained, held_out = calibration_split(corpus(10), seed=0)
    assert len({one.group for one in held_out}) == 2
    assert not {one.group for one in trained} & {one.group for one in held_out}
    assert calibration_split(corpus(10), seed=0) == (trained, held_out)
    assert calibration_split(corpus(10), seed=1) != (trained, held_out)


def test_a_calibration_split_in_the_data_is_kept() -> None:
    given_split = [
        one.model_copy(update={"meta": {"split": "calibration" if one.group in "37" else "train"}})
        for one in corpus(10)
    ]
    _, held_out = calibration_split(given_split, seed=0)
    assert {one.group for one in held_out} == {"3", "7"}


def test_one_group_is_too_few() -> None:
    with pytest.raises(UsageError, match="two groups or more"):
        calibration_split(corpus(1), seed=0)


def test_gold_follows_the_overlap_rule() -> None:
    clean, wrong = corpus(1)
    made = make_batch([case_of(clean), case_of(wrong)])
    assert gold(made.sentences, [clean, wrong]).tolist() == [False, False, False, True]
    words = wrong.reply.split()
    flagged = gold(made.words, [clean, wrong]).tolist()[-len(words) :]
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
    ("method", "expected"),
    [("lexical", 1 / 2), ("tfidf", 1 - 2 / 4), ("nli-rules", 1 - 2**-2)],
)
def test_rules_turn_features_into_risks(method: Method, expected: float) -> None:
    features = features_of("Bread costs 7 or 8.", "Bread costs 3 euros.")
    assert rule_risk(method, features).tolist() == [pytest.approx(expected)]


def test_bm25_is_blended_with_coverage() -> None:
    features = features_of("Bread costs 7 or 8.", "Bread costs 3 euros.")
    score = float(features.column("bm25")[0])
    assert 0 < score < 0.5
    assert rule_risk("bm25", features).tolist() == [pytest.approx(1 - (score + 0.5) / 2)]


def test_a_category_never_seen_is_no_input() -> None:
    made = batch("Bread.", "Bread.")
    features = measure(made, DocumentFrequency(0, {}), "paper")
    inputs = model_inputs(made, features, ("task",), {"task": ["qa", "summary"]})
    assert inputs[0, 6:].tolist() == [1.0, 0.0]
    assert model_inputs(made, features, ("generator",), {"generator": ["gpt"]})[0, 6:].tolist() == [0.0]
    assert model_inputs(made, features, ("temperature",), {})[0, 6:].tolist() == [0.0]


@pytest.mark.parametrize("method", ["lexical", "lr", "rf"])
def test_training_is_deterministic_and_survives_saving(method: Method, tmp_path: Path) -> None:
    replies = corpus(10, model="a", source="made")
    model = train(method, replies, 3, "extended", ("task", "collection", "generator", "temperature"))
    again = train(method, replies, 3, "extended", ("task", "collection", "generator", "temperature"))
    save_model(model, tmp_path / "kept.skops")
    kept = load_model(tmp_path / "kept.skops")
    cases = [case_of(reply) for reply in replies]
    expected = model.score(cases)
    for other in (again, kept):
        assert other.thresholds == model.thresholds
        assert other.identity == model.identity
        assert (other.score(cases).words == expected.words).all()
        assert (other.score(cases).sentences == expected.sentences).all()
    assert (kept.method, kept.features, kept.context) == (model.method, model.features, model.context)


def test_what_was_learnt_tells_invented_sentences_apart() -> None:
    model = train("rf", corpus(10), 0, "paper")
    clean, wrong = corpus(10)[:2]
    scores = model.score([case_of(clean), case_of(wrong)])
    assert scores.replies[0] < model.thresholds.response <= scores.replies[1]
    assert scores.sentences[2] < model.thresholds.sentence <= scores.sentences[3]


def test_without_spans_there_is_nothing_to_learn() -> None:
    blind = [one.model_copy(update={"spans": None}) for one in corpus(4)]
    with pytest.raises(UsageError, match="learns from hallucinated spans"):
        train("rf", blind)


def test_a_calibration_part_without_hallucinations_is_refused() -> None:
    replies = [
        one.model_copy(update={"meta": {"split": "calibration"}}) if one.group == "0" else one
        for one in corpus(4)
        if one.group != "0" or not one.label
    ]
    with pytest.raises(UsageError, match="no reply of the calibration part is hallucinated"):
        train("lexical", replies)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.skops"
    with pytest.raises(UsageError, match="no such trained model"):
        load_model(path)
    path.write_text("hello")
    with pytest.raises(UsageError, match="this is no trained EvidenceChain model"):
        load_model(path)


def test_a_file_with_other_types_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "strange.skops"
    skops.io.dump({"format": 1, "method": Path("x")}, path)
    with pytest.raises(UsageError, match=r"types that are not trusted \(pathlib.PosixPath\)"):
        load_model(path)


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.skops"
    model = train("lexical", corpus(4))
    monkeypatch.setattr("detectors.evidence_chain.model.FORMAT", 0)
    save_model(model, path)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="its format is 0, not 1"):
        load_model(path)
