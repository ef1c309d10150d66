"""`hallulab rag-trust` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.places import RECORDINGS, ROOT
from tests.simulator.command_line import CodeAndError, CommandLine

EXAMPLE = ROOT / "examples" / "rag_trust.yaml"
DATA = RECORDINGS / "rag_trust"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "m"], "no data: give HotpotQA's folder with --data"),
        (["--config", EXAMPLE, "--data", "nowhere"], "nowhere"),
        (["--config", "nothing.yaml"], "nothing.yaml: cannot be read"),
        (["--data", DATA, "--questions", "0"], "field `questions`: "),
        (["--data", DATA, "--replay", "nothing.jsonl"], "nothing.jsonl"),
    ],
)
def test_bad_input_is_a_sentence_and_writes_nothing(
    code_and_error: CodeAndError, tmp_path: Path, arguments: list[str | Path], said: str
) -> None:
    code, error = code_and_error("rag-trust", *arguments, "--out", tmp_path / "out")
    assert code == 2
    assert said in error
    assert not (tmp_path / "out").exists()


def test_the_recorded_grid_gives_the_tables_of_the_docs(hallulab: CommandLine, tmp_path: Path) -> None:
    """Six questions, answered and judged by the default model."""
    recorded = ["--questions", "6", "--replay", DATA / "answers.jsonl.gz", "--quiet"]
    ended = hallulab("rag-trust", "--config", EXAMPLE, *recorded, "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    tables, _, _ = ended.out.partition("\nreport: ")
    shown = "\n".join(line.rstrip() for line in tables.splitlines()).strip()
    assert shown in (ROOT / "docs" / "studies" / "rag-trust.md").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "rag-trust.md").read_text(encoding="utf-8")
    assert guide.split("```\n")[1].removesuffix("…\n") in shown
