"""docs/studies/methods.md has the output of the benchmarks `readings` and `handoff` on recordings."""

from __future__ import annotations

import pytest

from benchmarks import handoff, readings
from hallulab.scenarios.labelled import GoldSpan
from hallulab.scenarios.text.spans import Region
from tests.places import ROOT

METHODS = ROOT / "docs" / "studies" / "methods.md"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_docs_have_the_table_of_all_readings(capsys: pytest.CaptureFixture[str]) -> None:
    assert readings.main([]) == 0
    both = capsys.readouterr().out
    docs = METHODS.read_text(encoding="utf-8")
    for table in both.split("\n\n"):
        assert table.strip() in docs


def test_the_docs_have_the_count_of_hand_overs(capsys: pytest.CaptureFixture[str]) -> None:
    assert handoff.main([]) == 0
    assert capsys.readouterr().out.strip() in METHODS.read_text(encoding="utf-8")


def test_five_replies_are_hallucinated_and_five_clean() -> None:
    wrong = [reply.hallucinated for reply in readings.drawn_replies()]
    assert wrong == [True] * 5 + [False] * 5


def test_a_sentence_is_wrong_where_a_label_touches_it() -> None:
    reply = readings.drawn_replies()[0].model_copy(update={"spans": (GoldSpan(start=4, end=6),)})
    assert [readings.is_wrong(Region(*place), reply) for place in ((0, 4), (3, 5), (6, 9))] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("module", [readings, handoff])
def test_to_record_takes_a_file_and_an_address(module: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert module.main(["--base-url", "http://127.0.0.1:9/v1"]) == 2  # type: ignore[attr-defined]
    assert capsys.readouterr().err == "error: --record and --base-url are given together.\n"
