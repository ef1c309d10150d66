"""The table of detectors: recorded from a scripted model, then replayed without one."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import pytest

import benchmarks
from benchmarks.detectors_table.__main__ import DETECTORS, main
from benchmarks.detectors_table.measure import STALE, UNRECORDED, DetectorNumbers, TableArguments
from benchmarks.detectors_table.samples import SOURCES
from benchmarks.detectors_table.table import TableReport, render, table
from benchmarks.pack_recordings import pack
from hallulab.agents.retrieval.embeddings import Embedder
from hallulab.testing import endpoint as stub_endpoint
from hallulab.testing.endpoint import MODEL, serve_stub
from hallulab.testing.scripted import completion
from hallulab.testing.tiny_pack import HashedWords
from tests.benchmarks.labelled_folder import FACTS, write_data

ASKING = ("halludetect", "metarag", "logic-graph", "direct-judge", "self-check")


def scripted(request: dict[str, Any]) -> dict[str, Any]:
    """A fact of the first sentence, mutations by the schema, decisions that differ by request."""
    if "response_format" in request:
        return stub_endpoint.completion(request)
    asked = str(request["messages"][-1]["content"])
    if "logprobs" not in request:
        decided = ("YES", "NO", "NOT SURE")[zlib.crc32(asked.encode()) % 3]
        decides = "NOT SURE" in str(request["messages"][0]["content"])
        return completion(decided if decides else f"1: {FACTS[0][0]}")
    return completion(
        {"Yes": 0.2 + zlib.crc32(asked.encode()) % 60 / 100, "No": 0.31, "Fact": 0.1, "Talk": 0.05}
    )


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A served model that answers at once."""
    with serve_stub(scripted) as url:
        yield url


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def embedder(model: str) -> Embedder:
        return HashedWords()

    monkeypatch.setattr("hallulab.detectors.logic_graph.detector.get_shared_embedder", embedder)


def asked(folder: Path, url: str | None = None) -> TableArguments:
    """What to measure: to record where the model is at hand, else to replay."""
    return TableArguments(folder / "data", folder / "recordings", 200, url is not None, url, MODEL)


def numbers(report: TableReport) -> list[Any]:
    """What a report says, without what took which time."""
    timed = {"seconds", "train_s", "cold_s", "p50_ms", "p95_ms", "memory_mb", "replayed_calls"}
    return [
        {
            **line,
            "rows": {
                level: {name: value for name, value in row.items() if name not in timed}
                for level, row in line["rows"].items()
            },
        }
        for line in report.model_dump(mode="json")["lines"]
    ]


def _rounded(found: Any) -> Any:
    """To the digits that a packed recording keeps."""
    if isinstance(found, dict):
        return {key: _rounded(value) for key, value in found.items()}
    if isinstance(found, list):
        return [_rounded(value) for value in found]
    return round(found, 3) if isinstance(found, float) else found


@pytest.mark.usefixtures("no_weights")
def test_what_was_recorded_and_packed_is_replayed_with_the_same_numbers(
    endpoint: str, tmp_path: Path
) -> None:
    write_data(tmp_path / "data")
    recorded = table(asked(tmp_path, endpoint), tuple(SOURCES), ASKING, workers=1, quiet=True)
    files = sorted(path.name for path in (tmp_path / "recordings").iterdir())
    assert files == sorted(f"{data}.{detector}.jsonl" for data in SOURCES for detector in ASKING)
    for file in (tmp_path / "recordings").iterdir():
        if file.stat().st_size:
            pack(file, file.with_name(f"{file.name}.gz"))
        file.unlink()
    replayed = table(asked(tmp_path), tuple(SOURCES), ASKING, workers=1, quiet=True)
    assert _rounded(numbers(replayed)) == _rounded(numbers(recorded))
    covered = {
        (line.dataset, line.detector): line.rows["response"].coverage
        for line in replayed.lines
        if isinstance(line, DetectorNumbers)
    }
    # Without a question nothing can be asked again: MTRAG's, RAGTruth's and WiCE's lines here have none.
    unasked = {(data, "self-check") for data in ("mtrag", "ragtruth", "wice")}
    assert covered == {key: 0.0 if key in unasked else 1.0 for key in covered}


def test_every_detector_has_a_line_for_every_data_set(tmp_path: Path) -> None:
    write_data(tmp_path / "data")
    some = ("lexical", "evidence-chain-lr", "metarag")
    report = table(asked(tmp_path), ("ragtruth", "gold", "mtrag"), some, workers=1, quiet=True)
    learnt = {(line.dataset, line.detector): getattr(line, "learnt", None) for line in report.lines}
    assert (learnt["ragtruth", "evidence-chain-lr"], learnt["gold", "evidence-chain-lr"]) == (
        "folds",
        "shipped",
    )
    text = render(report)
    assert text.count("\n| `lexical` | ") == text.count("\n| `metarag` | not measured") == 3
    assert "**MTRAG**: 6 replies in 3 groups, 50% hallucinated; flagging all has F1 0.667." in text
    assert "Raters (18 ratings of 6 replies): Krippendorff's alpha" in text
    headings = [line.count("HPT-1, error") for line in text.splitlines() if line.startswith("| detector |")]
    assert headings == [0, 1, 0]


def test_without_a_choice_these_are_measured() -> None:
    expected = (
        "lexical",
        "evidence-chain-lexical",
        "evidence-chain-bm25",
        "evidence-chain-tfidf",
        "evidence-chain-nli-rules",
        "evidence-chain-lr",
        "evidence-chain-rf",
        "combined",
        *ASKING,
    )
    assert expected == DETECTORS
    assert tuple(SOURCES) == ("mtrag", "gold", "ragtruth", "wice", "begin")


def lines(out: str, name: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(f"| `{name}` |")]


def keys(recording: str) -> list[str]:
    return sorted(json.loads(line)["key"] for line in recording.splitlines())


def run(folder: Path, *more: str, detectors: Sequence[str] = ("lexical", "direct-judge")) -> int:
    """Exit code of the command on WiCE and the annotated run, in this very process."""
    given = ("--data", str(folder / "data"), "--recordings", str(folder / "recordings"), "--model", MODEL)
    return main((*given, "--datasets", "wice,gold", "--detectors", ",".join(detectors), *more))


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)


@pytest.mark.usefixtures("one_process")
def test_a_detector_without_recording_is_said_not_to_be_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_data(tmp_path / "data")
    out, numbers = tmp_path / "table.md", tmp_path / "table.json"
    assert run(tmp_path, "--out", str(out), "--json", str(numbers)) == 0
    printed = capsys.readouterr().out
    assert out.read_text() == printed
    wice, gold = lines(printed, "direct-judge")
    assert wice == "| `direct-judge` | not measured |  |  |  |  |  |  |"
    assert gold == "| `direct-judge` | not measured |  |  |  |  |  |  |  |  |"
    assert printed.count(f"Not measured: `direct-judge` ({UNRECORDED}).") == 2
    assert [line["missing"] for line in json.loads(numbers.read_text())["lines"]] == [None, UNRECORDED] * 2


@pytest.mark.usefixtures("one_process")
def test_a_recording_that_lacks_an_answer_is_told_and_ends_with_1(
    endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_data(tmp_path / "data")
    assert run(tmp_path, "--record", "--base-url", endpoint) == 0
    assert run(tmp_path) == 0
    recording = tmp_path / "recordings" / "wice.direct-judge.jsonl"
    whole = recording.read_text()
    recording.write_text(whole[: whole.index("\n") + 1])
    capsys.readouterr()
    assert run(tmp_path) == 1
    found = capsys.readouterr()
    assert f"Not measured: `direct-judge` ({STALE})." in found.out
    assert found.err == "error: these recordings do not fit: wice.direct-judge. Go on with --record.\n"
    assert run(tmp_path, "--record", "--base-url", endpoint) == 0
    assert keys(recording.read_text()) == keys(whole)


def test_several_workers_give_the_lines_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are the workers here. Arguments and lines are also sent as to processes and back."""
    write_data(tmp_path / "data")

    def pool(workers: int, context: BaseContext, initializer: Callable[[], None]) -> ThreadPoolExecutor:
        assert (workers, context.get_start_method()) == (2, "spawn")
        return ThreadPoolExecutor(workers)

    monkeypatch.setattr("benchmarks.detectors_table.table.ProcessPoolExecutor", pool)
    one, two = (
        table(asked(tmp_path), ("wice", "begin"), ("lexical",), workers=workers, quiet=True)
        for workers in (1, 2)
    )
    assert numbers(two) == numbers(one)
    sent = (asked(tmp_path), two.lines)
    assert pickle.loads(pickle.dumps(sent)) == sent


@pytest.mark.slow
def test_the_command_measures_in_several_processes(tmp_path: Path) -> None:
    write_data(tmp_path / "data")
    command = (sys.executable, "-m", "benchmarks.detectors_table", "--data", str(tmp_path / "data"))
    done = subprocess.run(
        (*command, "--datasets", "wice,begin", "--detectors", "lexical"),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(benchmarks.__file__).parent.parent,
    )
    assert [line.split(" | ")[2] for line in lines(done.stdout, "lexical")] == ["1.000", "1.000"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("--record", "--detectors", "lexical,self-check"),
            "--record: self-check asks a model. Say where it is served with --base-url.",
        ),
        (("--datasets", "wcie"), "--datasets wcie: there is no such one. Give some of: mtrag, gold, "),
        (("--detectors", "hhem"), "--detectors hhem: there is no such one. Give some of: lexical, "),
    ],
)
def test_wrong_arguments_are_told(
    given: Sequence[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("--data", str(tmp_path), *given)) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_data_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("--data", str(tmp_path), "--datasets", "wice", "--detectors", "lexical")) == 2
    assert "claims.jsonl: there is no such file." in capsys.readouterr().err
