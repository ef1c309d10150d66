"""The table in the docs is what the command prints, from the data and recordings of this repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import benchmarks
from benchmarks.detectors_table.__main__ import DETECTORS, LIMIT, main
from benchmarks.detectors_table.measure import TableArguments
from benchmarks.detectors_table.samples import FOLDER, KEPT, sample
from benchmarks.detectors_table.table import CONSTRAINTS, READ, deciding, table_in, what_changed, write_page
from tests.benchmarks.labelled_folder import write_data
from tests.edited_code import Edit

REPOSITORY = Path(benchmarks.__file__).parent.parent
PAGE = Path("docs") / "studies" / "detectors.md"
COMMAND = "`python -m benchmarks.detectors_table --docs docs/studies/detectors.md`"

ASKED = TableArguments(KEPT, FOLDER, LIMIT, False, None, None)
"""What the command asks for without flags."""


def test_nothing_that_decides_the_table_has_changed_since_it_was_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert what_changed(PAGE, deciding(ASKED, DETECTORS)) is None


@pytest.mark.slow
def test_the_docs_have_the_table_of_the_command_which_learns_nothing_again(tmp_path: Path) -> None:
    made, page = REPOSITORY / PAGE, tmp_path / "detectors.md"
    page.write_text(made.read_text().replace(table_in(made), "No table yet.\n"))
    command = (sys.executable, "-m", "benchmarks.detectors_table", "--docs", str(page))
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout == table_in(made)
    assert page.read_text() == made.read_text()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small copy of what decides the table, code aside, as the working folder; its page is fresh."""
    for folder in READ:
        ignored = shutil.ignore_patterns("*.py", "*.pyc", "*.npz")
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(REPOSITORY / CONSTRAINTS, tmp_path)
    write_data(tmp_path / KEPT)
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "gold.metarag.jsonl").write_text('{"kind":"note","key":"a","answer":1}\n')
    (tmp_path / PAGE).parent.mkdir(parents=True)
    (tmp_path / PAGE).write_text("# Title\n\nIntroduction.\n\nNo table yet.\n")
    monkeypatch.chdir(tmp_path)
    sample.cache_clear()
    write_page(PAGE, "| `lexical` | 0.842 |\n", deciding(ASKED, DETECTORS))
    yield tmp_path
    sample.cache_clear()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        (PAGE, "0.842", "0.843", "table"),
        (FOLDER / "gold.metarag.jsonl", '"answer":1', '"answer":2', "recordings"),
        (KEPT / "wice" / "claims.jsonl", "9 euros", "8 euros", "samples"),
        (CONSTRAINTS, "numpy==", "numpy==1", "libraries"),
        (Path("detectors/metarag/prompts/mutation.txt"), "e", "é", "prompts-and-learnt-models"),
        (Path("detectors/metarag/tuned.yaml"), ": 0.", ": 0.0", "prompts-and-learnt-models"),
        (Path("agents/prompts/json_answer.txt"), "e", "é", "prompts-and-learnt-models"),
    ],
    ids=lambda value: str(value) if isinstance(value, Path) else "",
)
@pytest.mark.usefixtures("copy")
def test_what_has_changed_is_told_with_the_command_to_run(
    path: Path, old: str, new: str, changed: str
) -> None:
    edit(path, old, new)
    assert what_changed(PAGE, deciding(ASKED, DETECTORS)) == (
        f"docs/studies/detectors.md may not be what the command prints, for these have changed since: "
        f"{changed}. Run {COMMAND}."
    )


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (PAGE, "Introduction.", "Another introduction."),
        (Path("detectors/metarag/tuned.yaml"), "# ", "# Indeed: "),
        (CONSTRAINTS, "ruff==", "ruff==1"),
    ],
    ids=lambda value: str(value) if isinstance(value, Path) else "",
)
@pytest.mark.usefixtures("copy")
def test_what_decides_nothing_may_change(path: Path, old: str, new: str) -> None:
    edit(path, old, new)
    assert what_changed(PAGE, deciding(ASKED, DETECTORS)) is None


@pytest.mark.usefixtures("copy")
def test_without_a_digest_everything_has_changed() -> None:
    PAGE.write_text(f"# Title\n\nIntroduction.\n\n{table_in(PAGE)}")
    assert what_changed(PAGE, deciding(ASKED, DETECTORS)) == (
        "docs/studies/detectors.md may not be what the command prints, for these have changed since: code, "
        f"libraries, options, prompts-and-learnt-models, recordings, samples, table. Run {COMMAND}."
    )


def test_files_that_come_and_go_are_told(copy: Path) -> None:
    (copy / FOLDER / "gold.metarag.jsonl").rename(copy / FOLDER / "gold.self-check.jsonl")
    (copy / KEPT / "begin" / "turns.jsonl").unlink()
    (copy / KEPT / "README.md").write_text("The sources of the texts.")
    (copy / "detectors" / "combined" / "trained" / "combined.npz").write_bytes(b"learnt")
    assert ": prompts-and-learnt-models, recordings, samples. Run " in str(
        what_changed(PAGE, deciding(ASKED, DETECTORS))
    )


@pytest.mark.parametrize(
    ("asked", "detectors"), [(replace(ASKED, model="another"), DETECTORS), (ASKED, DETECTORS[:-1])]
)
@pytest.mark.usefixtures("copy")
def test_another_model_and_other_detectors_are_told(
    asked: TableArguments, detectors: tuple[str, ...]
) -> None:
    assert ": options. Run " in str(what_changed(PAGE, deciding(asked, detectors)))


@pytest.mark.parametrize(
    "module",
    [
        "hallulab.detectors.lexical.detector",
        "hallulab.detectors.halludetect.mixture",
        "hallulab.detectors.evidence_chain.model",
        "hallulab.detectors.features.batch",
        "hallulab.detectors.base.protocol",
        "hallulab.scenarios.text.spans",
        "hallulab.scenarios.labelled",
        "hallulab.agents.models.answers",
        "hallulab.agents.models.recording",
        "hallulab.simulator.bench.split",
        "hallulab.simulator.statistics.detection",
        "hallulab.simulator.metrics.hallucinations",
        "hallulab.simulator.show.columns",
        "hallulab.simulator.engine.participants",
        "benchmarks.detectors_table.samples",
        "benchmarks.detectors_table.measure",
        "benchmarks.detectors_table.table",
    ],
)
@pytest.mark.usefixtures("copy")
def test_the_code_of_detectors_metrics_and_table_counts_and_its_comments_do_not(
    module: str, edit_code: Edit
) -> None:
    edit_code(module, lambda text: f"{text}# a remark\n")
    assert what_changed(PAGE, deciding(ASKED, DETECTORS)) is None
    edit_code(module, lambda text: f"{text}EDITED = True\n")
    assert ": code. Run " in str(what_changed(PAGE, deciding(ASKED, DETECTORS)))


@pytest.mark.parametrize(
    "module",
    [
        "hallulab.chatbots.vanilla",
        "hallulab.agents.serving.server",
        "hallulab.agents.users.user",
        "hallulab.simulator.records.folder",
    ],
)
@pytest.mark.usefixtures("copy")
def test_code_that_no_table_needs_does_not_count(module: str, edit_code: Edit) -> None:
    edit_code(module, lambda text: f"{text}EDITED = True\n")
    assert what_changed(PAGE, deciding(ASKED, DETECTORS)) is None


@pytest.fixture
def two_detectors(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The command has these alone, and measures in this process."""
    monkeypatch.setattr("benchmarks.detectors_table.__main__.DETECTORS", ("lexical", "direct-judge"))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    return ("lexical", "direct-judge")


@pytest.mark.usefixtures("copy")
def test_the_command_writes_table_and_digest(
    two_detectors: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("--docs", str(PAGE))) == 0
    page = f"# Title\n\nIntroduction.\n\n{capsys.readouterr().out}"
    assert PAGE.read_text().startswith(f"{page}\n<!-- Decided by:\n")
    assert "**WiCE claims**: 6 replies" in PAGE.read_text()
    assert what_changed(PAGE, deciding(ASKED, two_detectors)) is None


@pytest.mark.usefixtures("two_detectors")
def test_a_table_with_recordings_that_do_not_fit_is_not_put_into_the_docs(copy: Path) -> None:
    shutil.copy(FOLDER / "gold.metarag.jsonl", FOLDER / "gold.direct-judge.jsonl")
    before = PAGE.read_text()
    assert main(("--docs", str(PAGE))) == 1
    assert PAGE.read_text() == before


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("--datasets", "wice"),
            "--docs: the docs have the table of the whole repository. Leave out --datasets.",
        ),
        (
            ("--base-url", "http://127.0.0.1:9/v1"),
            "--docs: the docs have the table of the whole repository. Leave out --base-url.",
        ),
        (("--docs", "none.md"), "--docs none.md: this is no page with a title, an introduction and a table."),
        (
            ("--docs", "constraints.txt"),
            "--docs constraints.txt: this is no page with a title, an introduction and a table.",
        ),
    ],
)
@pytest.mark.usefixtures("copy")
def test_another_table_or_no_page_is_refused(
    flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("--docs", str(PAGE), *flags)) == 2
    assert capsys.readouterr().err == f"error: {said}\n"
