"""A metric of another distribution, in one class, and everything that is made from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.glossary import page as glossary
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import METRICS, load_metrics, load_report_model, read_report
from hallulab.simulator.report.document import build_summary
from hallulab.simulator.report.write import write_reports
from hallulab.simulator.show.columns import CHATBOT, Column
from hallulab.simulator.show.terminal import print_document
from tests.builders import conversation


class Greeting(Frozen):
    chatbot: str
    greetings: int


class Greetings(TableMetric[Greeting]):
    NAME, TITLE, ROW = "greetings", "Greetings", Greeting
    COLUMNS = (CHATBOT, Column("Hellos", "greetings", "replies that say hello", short="Hellos"))

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._found: Counter[str] = Counter()

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        self._found[conversation.chatbot] += sum("hello" in turn.reply for turn in conversation.turns)

    def table(self, tallied: Tallied) -> Sequence[Greeting]:
        return [Greeting(chatbot=name, greetings=self._found[name]) for name in self.run.chatbots]


class Clash(Greetings):
    """Gives a field that another metric gives."""

    NAME = "concentration"


def install(monkeypatch: pytest.MonkeyPatch, **offered: str) -> None:
    """Offer attributes of this module as metrics, by the entry point's name."""
    points = [EntryPoint(name, f"{__name__}:{what}", METRICS) for name, what in offered.items()]
    monkeypatch.setattr(
        "hallulab.scenarios.components.entry_points",
        lambda group: [point for point in points if point.group == group],
    )


@pytest.fixture(autouse=True)
def _load_anew() -> Iterator[None]:
    for cached in (load_metrics, load_report_model):
        cached.cache_clear()
    yield
    for cached in (load_metrics, load_report_model):
        cached.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A reported run, with the metric installed."""
    install(monkeypatch, greetings="Greetings")
    folder = RunFolder(tmp_path)
    chats = [conversation("a", ["hello there", "no", "hello again"])]
    folder.conversations.write_text("".join(f"{one.model_dump_json()}\n" for one in chats))
    write_reports(folder)
    return folder


def test_its_rows_are_in_report_json_and_read_again(folder: RunFolder) -> None:
    assert Greetings.rows(read_report(folder.report)) == (Greeting(chatbot="vanilla", greetings=2),)


def test_its_table_is_a_section_of_the_page(folder: RunFolder) -> None:
    html = folder.page.read_text(encoding="utf-8")
    assert '<a href="#greetings">Greetings</a>' in html
    section = html[html.index('<section id="greetings">') :]
    assert '<tr><th scope="row">vanilla</th><td class="n">2</td></tr>' in section


def test_its_table_is_on_the_terminal(folder: RunFolder) -> None:
    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        print_document(build_summary(read_report(folder.report)), console)
    lines = [line.split() for line in capture.get().splitlines()]
    assert lines[lines.index(["Greetings:"]) + 1] == ["Chatbot", "Hellos"]
    assert ["vanilla", "2"] in lines


def test_its_table_is_a_csv_file_that_goes_with_the_run(folder: RunFolder) -> None:
    table = folder.path / "report-greetings.csv"
    assert table.read_text() == "chatbot,greetings\nvanilla,2\n"
    RunFolder(folder.path).clear()
    assert not table.exists()


@pytest.mark.usefixtures("folder")
def test_its_columns_are_in_the_glossary() -> None:
    assert "### Greetings\n" in glossary()
    assert "**Hellos** `greetings`: replies that say hello\n" in glossary()


def test_what_is_no_metric_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, wrong="Greeting")
    with pytest.raises(UsageError, match=r"^metric 'wrong': .*Greeting.* is no subclass of Metric\.$"):
        load_metrics()


def test_two_metrics_cannot_give_one_field(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, theirs="Clash")
    with pytest.raises(
        UsageError, match=r"'theirs': 'concentration' gives report\.json a `concentration`, too"
    ):
        load_metrics()
