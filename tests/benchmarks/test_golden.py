"""Frozen outputs: what is compared, and what may differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import golden


def wrote(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("1\n2\n", "1\n2\n", []),
        ("1\n2\n3\n", "1\nII\n", ["x:2: '2' → 'II'"]),
        ("1\n", "1\n2\n", ["x:2: (no line) → '2'"]),
    ],
)
def test_the_first_different_line_of_a_file_is_told(
    tmp_path: Path, before: str, after: str, told: list[str]
) -> None:
    assert list(golden.compare(wrote(tmp_path / "a", x=before), wrote(tmp_path / "b", x=after))) == told


def test_a_file_of_one_folder_is_a_difference(tmp_path: Path) -> None:
    before, after = wrote(tmp_path / "a", x="1\n"), wrote(tmp_path / "b")
    assert list(golden.compare(before, after)) == [f"x: only in {before}"]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("at 2026-11-24T18:03:07.123456Z.", "at TIME."),
        ('{"version":"0fa41bc2","score":0.5}', '{"version":"VERSION","score":0.5}'),
        ('"versions": {"vanilla": "0a"}', '"versions": "VERSION"'),
        ("weights cc324af070c2, call 18001801", "weights DIGEST, call 18001801"),
        ('{"p50_ms": 0.62, "share": 0.62}', '{"p50_ms": "TIME", "share": 0.62}'),
        ("measuring 3/8 0:00:02 left 0:00:05\nHPT 1\n", "HPT 1\n"),
        ("HPT 0.4615384615384615 of 1234567890123", "HPT 0.4615384615384615 of 1234567890123"),
    ],
)
def test_times_versions_and_digests_may_differ_and_numbers_may_not(
    text: str, masked: str, tmp_path: Path
) -> None:
    path = wrote(tmp_path / "a", x=text) / "x"
    golden.mask(path, tmp_path / "a")
    assert path.read_text(encoding="utf-8") == masked


def test_commands_are_those_of_the_list() -> None:
    text = "Usage: hallulab\n\n  The run\n  says so.\n\nRun:\n  run     Run it.\n          On two lines.\n"
    text += "\nData:\n  make-data  Write.\n"
    assert golden.find_commands(text) == ["run", "make-data"]


def test_commands_of_a_group_are_those_of_the_boxes() -> None:
    text = "╭─ Options ──╮\n│ --help  Help. │\n╰──╯\n╭─ Run ──╮\n│ run       Run it.  │\n"
    text += "│           On two lines. │\n╰──╯\n╭─ Data ──╮\n│ make-data   Write. │\n╰──╯\n"
    assert golden.find_commands(text) == ["run", "make-data"]


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert golden.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path} is there already; name a new folder.\n"
