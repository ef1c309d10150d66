"""The base installation does what needs no extra, and says in one sentence which extra something needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab import Run
from hallulab.agents.machine.ray_cluster import join_cluster
from hallulab.agents.retrieval.embeddings import SentenceEmbedder
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.serving.prepare import configuration
from hallulab.detectors.logic_graph.weights import require_model
from hallulab.scenarios.chats.excel import INFO as EXCEL
from hallulab.scenarios.chats.parquet import INFO as PARQUET
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.datasets.halubench import FILE, load_halubench
from hallulab.scenarios.datasets.loader import LoadRequest
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.conversion import Conversion
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.testing.endpoint import serve_stub
from hallulab.testing.tiny_pack import make_pack
from tests.extras import EXTRAS, hide_extras
from tests.kit.run_folders import write_run
from tests.simulator.command_line import CommandLine

CHAT = {
    "messages": [
        {"role": "user", "content": "What is the fee?"},
        {"role": "assistant", "content": "The fee is 999 rupees.", "context": "The fee is 200 rupees."},
    ]
}


@pytest.fixture(autouse=True)
def base_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No extra is installed."""
    hide_extras(monkeypatch, *EXTRAS)


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """A file of one conversation."""
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(CHAT) + "\n")
    return path


def test_saved_chats_are_judged_reported_and_compared(
    hallulab: CommandLine, chats: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert hallulab("import", chats, "--out", run).code == 0
    assert hallulab("detect", run, "--detectors", "lexical", "--quiet").code == 0
    assert hallulab("report", run).code == 0
    assert hallulab("compare", run, run).code == 0
    assert hallulab("gate", run, "--against", run).code in (0, 1)


def test_a_trained_detector_judges(hallulab: CommandLine, chats: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert hallulab("import", chats, "--out", run).code == 0
    assert hallulab("detect", run, "--detectors", "combined", "--quiet").code == 0


def test_a_served_model_judges(hallulab: CommandLine, chats: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert hallulab("import", chats, "--out", run).code == 0
    with serve_stub() as url:
        judged = hallulab(
            "detect", run, "--detectors", "direct-judge", "--base-url", url, "--model", "stub", "--quiet"
        )
    assert judged.code == 0


@pytest.mark.parametrize(
    ("reply", "searched"),
    [('"It boils."', True), ('{"reply": "It boils.", "passages": ["A kettle takes three minutes."]}', False)],
)
def test_words_find_the_evidence_of_a_bot_of_ones_own_that_names_none(
    reply: str, searched: bool, hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mybot.py").write_text(f"def reply(messages):\n    return {reply}\n")
    pack = make_pack(tmp_path / "pack")
    (pack / "personas.yaml").write_text("personas: [{id: ann, messages: [How long does a kettle take?]}]\n")
    bot = '{name: mine, kind: callable, options: {target: "mybot:reply"}}'
    Path("mine.yaml").write_text(f"scenario: pack\nchatbots: [{bot}]\ndetectors: [direct-judge]\n")
    with serve_stub() as url:
        given = ("--base-url", url, "--model", "stub", "--quiet")
        ran = hallulab("run", "-c", "mine.yaml", *given, "--out", "run")
        again = hallulab("detect", "run", *given, "--detectors", "halludetect")
    assert (ran.code, again.code) == (0, 0), ran.err + again.err
    [turn] = Run("run").conversations[0].turns
    assert ["A kettle takes three minutes." in passage.text for passage in turn.passages] == [True]
    assert ("searched by their words (BM25)" in ran.err) is searched


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        (("run", "--scenario", "pack", "--chatbots", "vanilla"), "chatbot vanilla: search by vectors"),
        (("init", "pack", "new", "--documents", "pack/documents"), "Search by vectors"),
    ],
)
def test_what_needs_vectors_says_so_before_a_server_is_started(
    arguments: tuple[str, ...],
    subject: str,
    hallulab: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    make_pack(tmp_path / "pack")
    monkeypatch.delattr("hallulab.agents.serving.server.serve")
    ended = hallulab(*arguments)
    lacking = "needs lancedb, which is not installed: pip install 'hallulab[local]'"
    assert (ended.code, ended.err.splitlines()[-1]) == (2, f"error: {subject} {lacking}")
    assert "requests" not in ended.err


def test_help_is_there(hallulab: CommandLine) -> None:
    assert hallulab("--help").code == 0


def search_by_vectors(folder: Path) -> None:
    KnowledgeBase(load_scenario(make_pack(folder / "pack")), cache=folder).build()


def embed(folder: Path) -> None:
    SentenceEmbedder("all-minilm-l6-v2", cache=folder).queries(["fee"])


def read_hub_model(folder: Path) -> None:
    configuration("some/model")


def weigh_by_logic_graph(folder: Path) -> None:
    require_model("hhem_model", "some/model")


def read_parquet(folder: Path) -> None:
    path = folder / "chats.parquet"
    path.write_bytes(b"PAR1")
    next(PARQUET.read(path, Reading()))


def write_parquet(folder: Path) -> None:
    assert PARQUET.write is not None
    PARQUET.write(folder / "chats.parquet", [], frozenset())


def read_excel(folder: Path) -> None:
    next(EXCEL.read(folder / "chats.xlsx", Reading()))


def read_halubench(folder: Path) -> None:
    (folder / FILE).write_bytes(b"PAR1")
    load_halubench(LoadRequest("halubench", folder))


def read_document(suffix: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        with Conversion() as conversion:
            conversion.read(Path(f"a{suffix}"), b"")

    return read


def join_ray(folder: Path) -> None:
    with join_cluster("local", 1, {}):
        pass


def plot(folder: Path) -> None:
    Run(write_run(folder, []).path).plot()


SENTENCES = {
    search_by_vectors: "Search by vectors needs lancedb, {}local]'",
    embed: "The embedding model all-minilm-l6-v2 needs sentence-transformers, {}local]'",
    read_hub_model: "The hub's model some/model needs transformers, {}local]'",
    weigh_by_logic_graph: "detector logic-graph: `hhem_model` needs torch, {}local]'",
    read_parquet: "FOLDER/chats.parquet: Parquet needs pyarrow, {}tables]'",
    write_parquet: "Parquet needs pyarrow, {}tables]'",
    read_halubench: "FOLDER/test-00000-of-00001.parquet: Parquet needs pyarrow, {}tables]'",
    read_excel: "FOLDER/chats.xlsx: Excel needs openpyxl, {}tables]'",
    read_document(".pdf"): "a.pdf: PDF needs pypdfium2, {}documents]'",
    read_document(".html"): "a.html: HTML needs html5lib, {}documents]'",
    read_document(".xlsx"): "a.xlsx: workbook needs openpyxl, {}documents]'",
    read_document(".rst"): "a.rst: reStructuredText needs docutils, {}documents]'",
    plot: "A plot needs matplotlib, {}plots]'",
    join_ray: "--ray needs ray, {}ray]'",
}
"""Work that needs an extra → the sentence; `{}` is the same in all."""


@pytest.mark.parametrize(("work", "sentence"), SENTENCES.items())
def test_a_missing_extra_is_one_sentence_with_the_command(
    work: Callable[[Path], None], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        work(tmp_path)
    expected = sentence.format("which is not installed: pip install 'hallulab[")
    assert str(refused.value).replace(str(tmp_path), "FOLDER") == expected


def test_a_command_that_lacks_an_extra_ends_with_code_2(
    hallulab: CommandLine, chats: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert hallulab("import", chats, "--out", run).code == 0
    ended = hallulab("export", run, "--format", "tables")
    assert (ended.code, ended.err) == (
        2,
        "error: Parquet needs pyarrow, which is not installed: pip install 'hallulab[tables]'\n",
    )


def test_documents_that_lack_an_extra_are_not_left_out(
    hallulab: CommandLine, chats: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "fees.md").write_text("# Fees\n\nThe fee is 200 rupees.\n")
    (folder / "rules.pdf").write_bytes(b"%PDF-1.4")
    ended = hallulab("import", chats, "--out", tmp_path / "run", "--documents", folder)
    assert (ended.code, ended.err) == (
        2,
        f"error: {folder}/rules.pdf: PDF needs pypdfium2, which is not installed: "
        "pip install 'hallulab[documents]'\n",
    )
    assert not (tmp_path / "run").exists()


def test_tables_of_text_are_documents_without_an_extra(tmp_path: Path) -> None:
    with Conversion() as conversion:
        assert conversion.read(Path("a.csv"), b"a,b\n1,2\n").text == "| a | b |\n| --- | --- |\n| 1 | 2 |"
