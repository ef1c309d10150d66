"""Policies: thresholds by topic, the ladder's order, and mistakes of whoever writes one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from hallulab.chatbots.guarded.policy import Decision, Policy, list_built_in_policies, load_policy
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Judgement
from tests.kit.refusals import refusal

SMALL = """\
name: mine
topics:
  visa: {sensitive: true, words: [visa]}
says: {abstain: No answer., human: Wait.}
"""


def policy(**changes: Any) -> Policy:
    given: dict[str, Any] = {"name": "p", "topics": {"visa": {"sensitive": True}, "fees": {}}}
    given["thresholds"] = {"general": 0.5, "sensitive": 0.3}
    return Policy.model_validate({**given, "says": {"abstain": "No.", "human": "Wait."}, **changes})


def judged(score: float, flagged: bool) -> Judgement:
    return Judgement(outcome="scored", score=score, flagged=flagged, spans=())


def test_the_built_in_policy_has_fitted_thresholds_and_the_whole_ladder() -> None:
    found = load_policy("metarag")
    assert list_built_in_policies() == ["metarag"]
    fitted, papers = (found.resolve(reading).thresholds for reading in ("probability", "word"))
    assert (fitted.general, fitted.sensitive) == (0.55, 0.49)
    assert (papers.general, papers.sensitive) == (0.5, 0.3)
    assert found.ladder.general == ("highlight", "cite")
    assert found.ladder.sensitive == ("highlight", "cite", "regenerate", "abstain", "human")


@pytest.mark.parametrize(
    ("topics", "labels", "decision"),
    [
        ([], {}, Decision(False, 0.5, False)),
        (["fees"], {}, Decision(False, 0.5, False)),
        (["visa"], {}, Decision(True, 0.3, False)),
        (["asylum"], {"asylum": 0.2}, Decision(True, 0.2, False)),
        (["fees"], {"fees": 0.4}, Decision(True, 0.3, False)),
        (["fees"], {"fees": "detector"}, Decision(True, 0.3, True)),
    ],
)
def test_the_strictest_threshold_counts(
    topics: list[str], labels: dict[str, float | Literal["detector"]], decision: Decision
) -> None:
    assert policy().decision(topics, labels, False) == decision
    assert policy().decision([], {}, True) == Decision(True, 0.3, False)  # a topic that is not known for sure


def test_a_topics_own_threshold_takes_the_place_of_all_others() -> None:
    own = policy(topics={"visa": {"sensitive": True, "threshold": 0.6}, "fees": {}})
    assert own.decision(["visa"], {"visa": 0.2}, False) == Decision(True, 0.6, False)
    assert own.decision(["visa", "fees"], {}, False) == Decision(True, 0.5, False)
    assert own.decision(["visa"], {}, True) == Decision(True, 0.3, False)


@pytest.mark.parametrize(
    ("decision", "judgement", "flagged"),
    [
        (Decision(False, 0.5, False), judged(0.5, False), True),
        (Decision(False, 0.5, False), judged(0.49, True), False),
        (Decision(False, None, True), judged(0.1, True), True),
        (Decision(False, None, True), judged(0.9, False), False),
        (Decision(True, 0.3, True), judged(0.3, False), True),
        (Decision(True, 0.3, True), judged(0.1, True), True),
        (Decision(True, 0.3, False), Judgement(outcome="failed", error="no"), None),
        (Decision(True, 0.3, True), Judgement(outcome="abstained", error="no"), None),
    ],
)
def test_a_reply_is_flagged_at_the_threshold_or_by_the_detector(
    decision: Decision, judgement: Judgement, flagged: bool | None
) -> None:
    assert decision.flags(judgement) is flagged


def test_the_detectors_own_decision_is_a_threshold() -> None:
    own = policy(thresholds={"general": "detector", "sensitive": 0.3})
    assert own.decision([], {}, False) == Decision(False, None, True)
    assert own.decision(["visa"], {}, False) == Decision(True, 0.3, True)


@pytest.mark.parametrize(("reading", "threshold"), [("word", 0.3), ("probability", 0.51)])
def test_a_threshold_by_reading_is_that_of_the_guards_detector(
    reading: Literal["word", "probability"], threshold: float
) -> None:
    by_reading = {"word": 0.3, "probability": 0.51}
    own = policy(topics={"visa": {"sensitive": True, "threshold": by_reading}}).resolve(reading)
    assert own.decision(["visa"], {}, False) == Decision(True, threshold, False)


@pytest.mark.parametrize(
    ("reading", "general", "sensitive"), [("word", 0.5, 0.3), ("probability", 0.55, 0.49)]
)
def test_a_policy_without_thresholds_has_those_of_the_reading(
    reading: Literal["word", "probability"], general: float, sensitive: float
) -> None:
    own = policy(thresholds={}).resolve(reading)
    assert (own.thresholds.general, own.thresholds.sensitive) == (general, sensitive)


def test_the_user_is_told_the_topics() -> None:
    told = policy(says={"abstain": "Nothing on {topics}.", "human": "Wait."}).says
    assert told.said("abstain", "human", topics=["visa", "fees"]) == "Nothing on visa, fees. Wait."


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL)
    assert load_policy(str(path)).topics["visa"].words == ("visa",)


def test_another_policy_has_another_digest() -> None:
    assert policy().digest == policy().digest
    assert policy().digest != policy(regenerations=2).digest


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "ladder: {general: [cite, highlight]}",
            "line 5: ladder.general: each rung stands once, in this order: highlight, cite. Correct it; see "
            "docs/safeguards.md.",
        ),
        *(
            (
                f"thresholds: {{general: {general}}}",
                "line 5: thresholds.general: must be a number from 0 to 1, one for each reading, such as "
                "{word: 0.3, probability: 0.49}, or `detector`. Correct it; see docs/safeguards.md.",
            )
            for general in ("2", "{word: 0.5}")
        ),
        *(
            (
                f"thresholds: {{{given}}}",
                f"line 1: thresholds: sensitive ({sensitive}) is above general ({general}), and so less "
                "strict. Correct it; see docs/safeguards.md.",
            )
            for given, sensitive, general in (
                ("general: 0.5, sensitive: {word: 0.3, probability: 0.6}", 0.6, 0.5),
                ("general: 0.2", 0.3, 0.2),
            )
        ),
        (
            "ladders: []",
            "line 5: ladders: unknown key (did you mean `ladder`?). "
            "Correct its spelling or remove it; see docs/safeguards.md.",
        ),
        (
            "unjudged: {sensitive: clean}",
            "line 5: unjudged.sensitive: input should be 'pass', 'abstain' or 'human'. Correct it; see "
            "docs/safeguards.md.",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{SMALL}{line}\n")
    assert refusal(load_policy, str(path)) == f"{path}, {message}"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        *(
            (
                "No answer.",
                f"'{text}'",
                r"line 4: says.abstain: has a brace; the only placeholder is \{topics\}",
            )
            for text in ("{name}", "a { b", "{topics!r}")
        ),
        ("[visa]", "['']", r"line 2: topics: an empty word would be in every text"),
        ("[visa]", "['§']", r"line 2: topics: the word '§' of the topic visa has no letter or"),
    ],
)
def test_a_text_that_cannot_be_filled_in_or_found_is_refused(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(UsageError, match=complaint):
        load_policy(str(path))


def test_a_policy_that_is_not_there_names_the_built_in_ones() -> None:
    assert refusal(load_policy, "nowhere.yaml") == (
        "nowhere.yaml: no such policy. Give the path of a YAML file (docs/safeguards.md), or one of: metarag."
    )
