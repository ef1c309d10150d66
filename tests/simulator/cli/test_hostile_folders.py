"""Run folders that somebody else made: what they hold is neither obeyed, nor lost, nor half believed."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Never

import pytest

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.lexical.detector import LexicalDetector
from hallulab.scenarios.text.chunking import split_into_chunks
from hallulab.scenarios.text.spans import split_sentences, split_words
from hallulab.scenarios.transcript import Conversation, Passage, Turn, Verdict
from hallulab.simulator.engine.execution import freeze_long_lived_objects
from hallulab.simulator.engine.progress import ProgressBars
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from hallulab.testing.scripted import scripted_pool
from tests.builders import call, conversation, scored
from tests.kit.run_folders import write_run
from tests.simulator.command_line import Ended
from tests.simulator.engine.cast import Cast, execute

Hallulab = Callable[..., Ended]

OLD = {"report.json": "old", "report.csv": "old", "report.html": "old"}
LEFT_OUT = (
    "warning: {}: the last line is unfinished, as a killed command leaves it; it does not count, and whoever "
    "writes to the file removes it.\n"
)


def run_of(folder: Path, conversations: list[Conversation], verdicts: list[Verdict]) -> RunFolder:
    """A run folder with these journals and reports that are there already."""
    run = write_run(folder, conversations, verdicts)
    for name, text in OLD.items():
        (folder / name).write_text(text)
    return run


def reports(run: RunFolder) -> dict[str, str]:
    """The files beside the journals, and what they hold."""
    journals = (run.conversations, run.verdicts, run.experiment)
    return {path.name: path.read_text() for path in run.path.iterdir() if path not in journals}


def spoil(path: Path, field: str, text: str) -> None:
    """Put JSON in the place of the value of `field`, which stands once in the file."""
    held = path.read_text()
    key = f'"{field}":'
    start = held.index(key) + len(key)
    value = json.JSONDecoder().raw_decode(held, start)[1]
    path.write_text(held[:start] + text + held[value:])


@pytest.mark.parametrize(
    ("journal", "field", "value", "flaw"),
    [
        ("conversations", "reply", '"a\\ud800b"', "turns.0.reply: half of a character (\\ud800)"),
        ("conversations", "reply", "[" * 200_000, "more than 100 levels of brackets"),
        ("conversations", "latency_s", "NaN", "turns.0.calls.0.latency_s: a number that is not finite"),
        ("verdicts", "score", "Infinity", "score: a number that is not finite"),
        ("verdicts", "score", "1e999", "score: a number that is not finite"),
        ("verdicts", "detector", '"a\\udc00"', "detector: half of a character (\\udc00)"),
    ],
)
def test_a_value_that_no_file_can_hold_changes_no_report(
    hallulab: Hallulab, tmp_path: Path, journal: str, field: str, value: str, flaw: str
) -> None:
    held = conversation("c", ["A."], calls=[call("chatbot.reply")])
    run = run_of(tmp_path / "run", [held], [scored("c", 0)])
    path = run.path / f"{journal}.jsonl"
    spoil(path, field, value)
    ended = hallulab("report", run.path)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {path}, line 1: not valid JSON ({flaw}). Correct or delete the line.\n"
    assert reports(run) == OLD


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ('{"a": "\\ud800"}', "a: half of a character (\\ud800)"),
        ("[" * 200_000, "more than 100 levels of brackets"),
        ('{"a": [NaN]}', "a.0: a number that is not finite"),
    ],
)
def test_an_experiment_that_no_file_can_hold_changes_no_report(
    hallulab: Hallulab, tmp_path: Path, text: str, flaw: str
) -> None:
    run = run_of(tmp_path / "run", [conversation("c", ["A."])], [])
    run.experiment.write_text(text)
    ended = hallulab("report", run.path)
    assert ended.code == 2
    assert ended.err == f"error: {run.experiment}: not valid JSON ({flaw}). Restore it or use --fresh.\n"
    assert reports(run) == OLD


HOSTILE = "\x1b[1m\u202e\u2066[red]\n:boom:"
"""A name that is bold, turns the direction of writing, and has markup of a library and a line break."""
HARMLESS = "�[1m��[red] :boom:"


def test_names_are_neither_obeyed_by_the_terminal_nor_read_as_markup(
    hallulab: Hallulab, tmp_path: Path
) -> None:
    held = conversation("c", ["A."], chatbot=HOSTILE)
    verdicts = [scored("c", 0, [(0, 2)], detector=HOSTILE), scored("c", 0, None, detector="other")]
    run = run_of(tmp_path / "run", [held], verdicts)
    ended = hallulab("report", run.path)
    assert ended.code == 0
    first, *_ = [line for line in ended.out.splitlines() if "1.00" in line and not line.startswith("By ")]
    assert first.split()[:4] == [*HARMLESS.split(), *HARMLESS.split()]
    assert not set("\x1b\u202e\u2066") & set(ended.out)


def test_what_is_printed_as_json_is_neither_obeyed_nor_changed(hallulab: Hallulab, tmp_path: Path) -> None:
    name = f"{HOSTILE}\x9b\x7f\U000e0041é😀"
    run = run_of(tmp_path / "run", [conversation("c", ["A."], chatbot=name)], [])
    ended = hallulab("report", run.path, "--json")
    assert json.loads(ended.out) == json.loads(run.report.read_text(encoding="utf-8"))
    assert not set("\x1b\u202e\u2066\x9b\x7f\U000e0041") & set(ended.out)
    assert "é😀" in ended.out


def test_what_an_editor_left_without_its_newline_counts(hallulab: Hallulab, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [conversation("c", ["A."]), conversation("d", ["B."], seed=1)], [])
    held = run.conversations.read_bytes()
    run.conversations.write_bytes(held.rstrip(b"\n"))
    ended = hallulab("report", run.path)
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(run.report.read_text())["conversations"][0]["conversations"] == 2
    assert run.conversations.read_bytes() == held.rstrip(b"\n")


def with_evidence(*replies: str) -> Conversation:
    """A conversation of a built-in pack, with a passage at each reply."""
    passages = (Passage(id="fees#0", document="fees", text="The fee is Rs 200."),)
    turns = tuple(
        Turn(index=index, user="What is the fee?", passages=passages, reply=reply)
        for index, reply in enumerate(replies)
    )
    return conversation("c", []).model_copy(update={"scenario": "consumer-grievance-india", "turns": turns})


def test_detect_keeps_a_verdict_without_its_newline(hallulab: Hallulab, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [with_evidence("The fee is Rs 500.")], [scored("c", 0, detector="other")])
    for path in (run.conversations, run.verdicts):
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
    ended = hallulab("detect", run.path, "--detectors", "lexical", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    assert [verdict.detector for verdict in run.read_journals().verdicts] == ["other", "lexical"]


def test_detect_says_once_that_it_removes_an_unfinished_line(hallulab: Hallulab, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [with_evidence("The fee is Rs 500.")], [scored("c", 0, detector="other")])
    held = run.verdicts.read_text()
    run.verdicts.write_text(f'{held}{{"conversation": "c", "tu')
    ended = hallulab("detect", run.path, "--detectors", "lexical", "--quiet")
    assert (ended.code, ended.err) == (0, LEFT_OUT.format(run.verdicts))
    assert run.verdicts.read_text().startswith(held)
    assert len(run.read_journals().verdicts) == 2


def test_report_says_that_it_passes_over_an_unfinished_line(hallulab: Hallulab, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [conversation("c", ["A."])], [])
    with run.conversations.open("a") as file:
        file.write('{"id": "d"')
    before = run.conversations.read_bytes()
    ended = hallulab("report", run.path)
    assert (ended.code, ended.err) == (0, LEFT_OUT.format(run.conversations))
    assert run.conversations.read_bytes() == before


def test_a_report_that_is_a_link_to_elsewhere_is_not_written_through(
    hallulab: Hallulab, tmp_path: Path
) -> None:
    run = run_of(tmp_path / "run", [conversation("c", ["A."])], [])
    precious = tmp_path / "precious"
    precious.write_text("mine")
    run.page.unlink()
    run.page.symlink_to(precious)
    ended = hallulab("report", run.path)
    assert ended.code == 2
    assert ended.err.startswith(f"error: {run.page}: this link leads out of the run folder, to {precious},")
    assert (precious.read_text(), run.report.read_text()) == ("mine", "old")


SENTENCES = [
    *("The quick brown fox does not jump over 12 lazy dogs today. ", "word. ", "- The fox.\n", "- a b c\n"),
    *("a\n\n", "fox ", "x", "12 34.5 6,789 ", "e.g. ", "शुल्क पाँच सौ है। Ünïcödé 😀 中文。 "),
    *("aa.Bb.", "aa.Bb,", "A. ", ".", "  ", "**a:** "),
]
"""What replies are made of, again and again."""


def made_of(sentence: str, size: int) -> str:
    """A reply of so many characters."""
    return "Well" + (sentence * size)[:size] + "x"


@pytest.fixture(scope="module")
def lexical() -> LexicalDetector:
    """The detector by words. Nobody fits its threshold."""
    return LexicalDetector(
        "lexical", DetectorContext(models=scripted_pool(lambda _: "unused")[0], options={})
    )


@pytest.fixture
def judge(lexical: LexicalDetector, tmp_path: Path) -> Callable[[str], None]:
    """Judges a reply in a run folder of its own, and reports: what `detect` does with it."""
    numbers = count()

    def work(reply: str) -> None:
        run = run_of(tmp_path / f"run-{next(numbers)}", [with_evidence(reply)], [])
        with ProgressBars(1, 1, quiet=True) as bars:
            asyncio.run(execute(Cast([lexical], nobody, nobody), (), run, bars))
        assert write_reports(run).rows[0].turns == 1

    return work


def nobody(*job: object) -> Never:
    raise AssertionError("no conversation is held")


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("cut", [split_sentences, split_words, split_into_chunks])
def test_a_text_is_cut_in_time_with_its_length(cut: Callable[[str], object], sentence: str) -> None:
    assert takes_time_with_the_length(cut, sentence, (25_000, 100_000))


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_reply_is_judged_and_reported_on_in_time_with_its_length(
    judge: Callable[[str], None], sentence: str
) -> None:
    assert takes_time_with_the_length(judge, sentence, (5_000, 20_000))


def takes_time_with_the_length(work: Callable[[str], object], sentence: str, sizes: tuple[int, int]) -> bool:
    """Say whether four times the length takes about four times the time: a product of two lengths takes 16.

    What other tests left is not looked at by the garbage collector. A busy machine is given three tries.
    """
    work(made_of(sentence, 100))
    for _ in range(3):
        took = []
        with freeze_long_lived_objects():
            for size in sizes:
                started = time.process_time()
                work(made_of(sentence, size))
                took.append(time.process_time() - started)
        few, many = took
        if many < 8 * max(few, 0.005):
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("sentence", SENTENCES[:3])
def test_detect_takes_time_with_the_length_of_a_reply(
    hallulab: Hallulab, tmp_path: Path, sentence: str
) -> None:
    def held(size: int) -> Conversation:
        return with_evidence(made_of(sentence, size))

    assert grows_evenly(hallulab, tmp_path, held, (1_000, 50_000, 200_000))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 60, 240), (1, 250, 1_000)])
def test_detect_takes_time_with_the_number_of_turns(
    hallulab: Hallulab, tmp_path: Path, sizes: tuple[int, int, int]
) -> None:
    def held(turns: int) -> Conversation:
        return with_evidence(*(f"The fee in place {number} is Rs 500." for number in range(turns)))

    assert grows_evenly(hallulab, tmp_path, held, sizes)


def grows_evenly(
    hallulab: Hallulab, tmp_path: Path, held: Callable[[int], Conversation], sizes: tuple[int, int, int]
) -> bool:
    """Say whether four times the size takes about four times the time: a product of two sizes takes 16 times.

    The garbage of the tests before is collected first. A busy machine is given three tries.
    """
    for attempt in range(3):
        took = []
        for size in sizes:
            run = run_of(tmp_path / f"{attempt}-{size}", [held(size)], [])
            gc.collect()
            started = time.process_time()
            assert hallulab("detect", run.path, "--detectors", "lexical", "--quiet").code == 0
            took.append(time.process_time() - started)
        if took[2] - took[0] < 8 * max(took[1] - took[0], 0.1):
            return True
    return False


@pytest.mark.parametrize(
    ("flags", "flaw"),
    [
        (("--model", "m", "--timeout", "inf"), "field `timeout`: a number that is not finite"),
        (("--model", "m\udcff"), "field `model`: half of a character (\\udcff)"),
    ],
)
def test_a_flag_that_no_file_can_hold_is_refused(
    hallulab: Hallulab, tmp_path: Path, flags: tuple[str, ...], flaw: str
) -> None:
    ended = hallulab("run", *flags, "--out", tmp_path / "run")
    assert (ended.code, ended.err) == (2, f"error: {flaw}. Correct it.\n")
    assert not (tmp_path / "run").exists()


def test_spans_in_one_another_are_reported_on(hallulab: Hallulab, tmp_path: Path) -> None:
    number = 4_000
    places = [(place, 2 * number - place) for place in range(number)]
    run = run_of(tmp_path / "run", [conversation("c", ["x" * 2 * number])], [scored("c", 0, places)])
    started = time.process_time()
    assert hallulab("report", run.path).code == 0
    assert time.process_time() - started < 10
    assert run.page.stat().st_size < 10_000_000


def test_a_line_that_is_wrong_says_what_to_do(hallulab: Hallulab, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [conversation("c", ["A.", "B."])], [scored("c", 0)])
    run.conversations.write_text(run.conversations.read_text().replace('"index":1', '"index":0'))
    ended = hallulab("report", run.path)
    assert (ended.code, ended.err) == (
        2,
        f"error: {run.conversations}, line 1: `turns.1.index` is 0; turns are numbered from 0, in order. "
        "Correct or delete the line.\n",
    )
