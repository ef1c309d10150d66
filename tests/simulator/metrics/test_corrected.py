"""Corrected numbers of a report: what is read of a benchmark, the rows, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.corrected import (
    ComparedRow,
    CorrectedRow,
    compare,
    correct,
    describe_corrections,
)
from hallulab.simulator.metrics.judged_turns import collect_judged_turns, sum_judged_turns
from hallulab.simulator.metrics.known_errors import (
    Accuracy,
    PairCounts,
    derive_from_planted_errors,
    read_accuracies,
    require_measured,
)
from tests.builders import conversation, scored

EACH = PairCounts(
    pairs=10,
    errors_flagged=8,
    twins_flagged=1,
    error_spans=9,
    twin_spans=1,
    error_sentences=10,
    twin_sentences=10,
)
MEASURED = Accuracy(detector="d", version="1", all_pairs=70, groups=(EACH,) * 7)

CHATS = [
    conversation(f"{chatbot}{number}", ["one", "two"], chatbot=chatbot, persona=f"p{number}")
    for chatbot in ("a", "b")
    for number in range(6)
]
VERDICTS = [
    *(scored(f"a{number}", turn, [(0, 3)]) for number in range(6) for turn in range(2)),
    *(scored(f"b{number}", turn) for number in range(6) for turn in range(2)),
]
KNOWN = {"d": derive_from_planted_errors(MEASURED)}


def rows(
    chats: Sequence[Conversation], verdicts: Sequence[Verdict], annotations: Annotations
) -> tuple[list[CorrectedRow], tuple[ComparedRow, ...]]:
    """The rows of all turns, and the chatbots compared."""
    turns = collect_judged_turns(chats, verdicts, annotations)
    sums = {name: sum_judged_turns(own) for name, own in turns.items()}
    found = correct(sums, ["a", "b"], ["d", "e"], KNOWN)
    return [row for row in found if row.depth is None], compare(sums, ["a", "b"], ["d", "e"], KNOWN)


ROWS, PAIRS = rows(CHATS, VERDICTS, Annotations())


def test_every_chatbot_has_a_row_and_all_together() -> None:
    found = [(row.detector, row.chatbot, row.flagged_turns, row.hallucinated_turns) for row in ROWS]
    assert found == [
        ("d", "a", 1.0, 1.0),
        ("d", "b", 0.0, 0.0),
        ("d", None, 0.5, 0.53033),
        ("e", "a", None, None),
        ("e", "b", None, None),
        ("e", None, None, None),
    ]
    assert [(row.hpt_1, row.corrected_hpt_1) for row in ROWS[:3]] == [(1.0, 1.125), (0.0, 0.0), (0.5, 0.5)]
    assert [row.clipped for row in ROWS[:3]] == [None, "below 0", None]


def test_assumption_best_chatbot_and_what_is_clipped_or_lacking_are_said_once_a_detector() -> None:
    assert describe_corrections(ROWS, PAIRS) == [
        "Numbers corrected by planted errors or a calibration assume that a detector finds a chatbot's own "
        "errors as often as those, and flags its clean replies as often as clean ones there "
        "(docs/corrected.md).",
        "By d, corrected: no clear winner; by t tests (Holm), no HPT-1 is lower than every other.",
        "No interval (d: a): a number at the end of its range has none; a number that is the same without "
        "each persona has none.",
        "No interval (d: b): a number at the end of its range has none.",
        "Set to 0 (d: b): the corrected share of hallucinated turns was below 0.",
        "No interval (d: all chatbots): a number that is the same without each persona has none.",
        "Not corrected (e): no turn was scored with places.",
    ]
    assert describe_corrections((), ()) == []


def test_numbers_by_a_calibration_are_said_to_count_sentences() -> None:
    row = CorrectedRow(detector="d", chatbot=None, source="calibration")
    assert describe_corrections([row], ())[1] == (
        "Corrected by a calibration, HPT-1 is the number of hallucinated sentences a turn, which differs "
        "from that of hallucinations: a sentence may have several."
    )


def test_the_chatbot_with_the_lowest_number_is_named_by_a_test() -> None:
    verdicts = [
        *(scored(f"a{number}", turn, [(0, 3)]) for number in range(6) for turn in range(2) if number + turn),
        *(scored(f"b{number}", turn) for number in range(6) for turn in range(2)),
        scored("a0", 0),
    ]
    found, pairs = rows(CHATS, verdicts, Annotations())
    assert describe_corrections(found, pairs)[1] == (
        "By d, corrected: b has the lowest HPT-1, by a t test against every other chatbot (Holm: p at most "
        "0.001)."
    )
    assert [(pair.detector, pair.a, pair.b, pair.difference) for pair in pairs] == [
        ("d", "a", "b", round(11 / 12 / 0.8, 6))
    ]


def test_numbers_of_few_personas_name_no_winner() -> None:
    assert describe_corrections(*rows(CHATS[:9], VERDICTS, Annotations()))[1] == (
        "By d, corrected: no clear winner; that takes a corrected number of each chatbot, all by the same "
        "source and from at least 6 personas."
    )


def test_what_annotations_assume_is_said() -> None:
    looked = Annotations({(chat.id, turn): 1 for chat in CHATS for turn in range(2)})
    assert describe_corrections(*rows(CHATS, VERDICTS, looked))[0] == (
        "Numbers corrected by annotations assume that the annotated turns are as good as drawn at random "
        "(docs/corrected.md)."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "not valid JSON"),
        ('{"rows": []}', "it has no `planted_counts`"),
        ('{"planted_counts": null}', "it has no `planted_counts`"),
        ('{"planted_counts": [{"detector": "d"}]}', "field `planted_counts.0.version`"),
    ],
)
def test_files_of_other_kinds_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_accuracies(path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [
        (MEASURED.model_copy(update={"version": "0"}), "it measures version 0 of d, and version 1 judged"),
        (MEASURED.model_copy(update={"detector": "x"}), "it measures none of d."),
    ],
)
def test_another_version_or_detector_is_refused(accuracy: Accuracy, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        require_measured({accuracy.detector: accuracy}, [("d", "1")])
    assert said in str(refused.value)
