"""A run in a cell of a notebook, and its chart."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from hallulab import Run, RunReport, UsageError
from hallulab.simulator.report.notebook import plot_hallucinations, render_cell
from tests.builders import conversation, scored, unscored
from tests.kit.run_folders import write_run

HOSTILE = '<script>alert(1)</script>$\\frac{"'


@pytest.fixture(autouse=True)
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Figures are drawn into memory, and closed."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def report_of(
    folder: Path, *chatbots: str, personas: int = 1, detectors: tuple[str, ...] = ("d",)
) -> RunReport:
    """The report of one reply by each chatbot to each persona; every second persona's is flagged once."""
    chats = [
        conversation(f"{chatbot}-{number}", ["A B."], chatbot=chatbot, persona=f"p{number}")
        for chatbot in chatbots
        for number in range(personas)
    ]
    verdicts = [
        scored(chat.id, 0, [(0, 1)] if chat.persona[-1] in "02468" else [], detector=name)
        for chat in chats
        for name in detectors
    ]
    return Run(write_run(folder, chats, verdicts).path).report()


def list_points(ax: Axes) -> dict[str, list[float]]:
    """Values of each detector in the legend, in the order of the chatbots."""
    handles, labels = (
        ax.get_legend().legend_handles,
        [text.get_text() for text in ax.get_legend().get_texts()],
    )
    colours = [handle.get_color() for handle in handles]  # type: ignore[union-attr]
    return {
        label: [
            float(x)
            for line in ax.lines
            if line.get_color() == colour and line.get_marker() == "o"
            for x in line.get_xdata()
        ]
        for label, colour in zip(labels, colours, strict=True)
    }


class _Tags(HTMLParser):
    """Collects names of elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}


def test_a_cell_is_plain_markup_and_text_stays_text(tmp_path: Path) -> None:
    found = _Tags()
    found.feed(render_cell(report_of(tmp_path, HOSTILE, detectors=(HOSTILE,)), f"runs/{HOSTILE}"))
    assert found.names == {
        *("div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"),
        *("class", "scope", "title"),
    }


def test_a_run_that_was_not_judged_has_no_table(tmp_path: Path) -> None:
    report = Run(write_run(tmp_path, [conversation("c", ["A."])]).path).report()
    assert "<table" not in render_cell(report, "runs/a")


def test_points_are_the_numbers_of_each_detector(tmp_path: Path) -> None:
    ax = plot_hallucinations(report_of(tmp_path, "a", "b", personas=2, detectors=("d", "e")))
    assert list_points(ax) == {"d": [0.5, 0.5], "e": [0.5, 0.5]}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert ax.get_xlabel() == "hallucinations per turn (HPT-1), lower is better"


def test_a_line_is_the_interval(tmp_path: Path) -> None:
    report = report_of(tmp_path, "a", personas=8)
    ax = plot_hallucinations(report)
    assert report.rows[0].hpt_1_ci95 is not None
    assert tuple(ax.lines[0].get_xdata()) == report.rows[0].hpt_1_ci95
    assert ax.get_xlabel().endswith("\nline: 95% interval over personas")


def test_one_detector_is_drawn_into_given_axes_in_its_colour(tmp_path: Path) -> None:
    report = report_of(tmp_path, "a", detectors=("d", "e"))
    given = pyplot.subplots()[1]
    ax = plot_hallucinations(report, "e", given)
    assert ax is given
    assert list_points(ax) == {"e": [1.0]}
    assert ax.lines[0].get_color() == "#6a3fc9"


def test_a_chatbot_that_was_not_scored_has_no_point(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [conversation("c", ["A."])], [unscored("c", 0)])
    ax = plot_hallucinations(Run(folder.path).report())
    assert list_points(ax) == {"d": []}
    assert [text.get_text() for text in ax.texts] == [" not scored"]


def test_names_are_no_formulas(tmp_path: Path) -> None:
    ax = plot_hallucinations(report_of(tmp_path, HOSTILE, "_b", detectors=(HOSTILE, "_e")))
    ax.figure.savefig(tmp_path / "plot.png")
    assert list(list_points(ax)) == [HOSTILE, "_e"]


@pytest.mark.parametrize(
    ("detectors", "wanted", "sentence"),
    [
        (
            ("metarag",),
            "metrag",
            "no detector 'metrag' has judged this run (did you mean `metarag`?). It has: metarag.",
        ),
        ((), None, 'no detector has judged this run: hallulab.detect(run.path, ["lexical"]) does.'),
    ],
)
def test_a_detector_that_has_not_judged_is_one_sentence(
    tmp_path: Path, detectors: tuple[str, ...], wanted: str | None, sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        plot_hallucinations(report_of(tmp_path, "a", detectors=detectors), wanted)
    assert str(refused.value) == sentence
