from __future__ import annotations

from typing import Any

from rich.console import Console

from simulator.report.document import build_report
from simulator.report.terminal import notes, print_report, with_interval
from tests.simulator.example_run import CHATBOTS, DETECTORS, example_run
from tests.simulator.journal import conversation, unscored


def example_report() -> dict[str, Any]:
    run = example_run()
    return build_report(
        run.conversations, run.verdicts, chatbots=CHATBOTS, detectors=DETECTORS, flaws=run.flaws
    )


def printed(report: dict[str, Any], width: int) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        print_report(report, console)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_the_table_fits_a_hundred_columns() -> None:
    lines = printed(example_report(), 100)
    assert lines[3] == (
        "vanilla           halludetect    2.0 0.89 [0.67, 1.00]  0.89  66.2 [60.9, 74.7]   66.1     100  100"
    )
    assert sum("metarag " in line for line in lines) == 5


def test_eighty_columns_fold_no_name() -> None:
    lines = printed(example_report(), 80)
    assert lines[3:7] == [
        "by halludetect",
        "vanilla              2.0         0.89  0.89          66.2   66.1     100  100",
        "                         [0.67, 1.00]        [60.9, 74.7]",
        "prompt-engineered    2.0         0.78  0.78          67.9   68.1     100  100",
    ]
    assert max(map(len, lines)) <= 80


def test_numbers_without_denominator_are_dashes() -> None:
    report = build_report(
        [conversation("a", ["x"])], [unscored("a", 0)], chatbots=["vanilla"], detectors=["d"], flaws={}
    )
    assert printed(report, 100)[3].split() == ["vanilla", "d", "0.0", "–", "–", "–", "–", "–", "0"]


def test_names_are_not_read_as_markup() -> None:
    report = build_report([], [], chatbots=["[red]bot[/red]"], detectors=["d"], flaws={})
    assert "[red]bot[/red]" in "\n".join(printed(report, 100))


def test_notes_say_what_the_numbers_leave_out() -> None:
    assert notes(example_report()) == [
        "halludetect: 3 of 27 hallucinations were not found verbatim in the reply; "
        "they count in HPT, not in TokAcc.",
        "metarag: of 45 turns 4 failed, 3 abstained; these enter no number.",
        "simulated user: 2 of 15 conversations have flaws (repeated 2); "
        "the report gives the numbers without them too.",
    ]


def test_an_interval_stands_beside_its_number() -> None:
    assert with_interval(0.961, (0.95, 0.98), 1, 100) == "96.1 [95.0, 98.0]"
    assert with_interval(0.5, None, 2) == "0.50"
