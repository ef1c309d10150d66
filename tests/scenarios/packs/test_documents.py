"""Documents that are damaged, or made to keep a reader busy."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.testing.tiny_pack import make_pack


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return make_pack(tmp_path / "pack")


@pytest.mark.parametrize(
    ("line", "title"),
    [("# A", "A"), ("## A b ##  ", "A b"), ("#\tA#", "A"), ("# # b", "# b"), ("# ##", "#"), ("#A", "kettle")],
)
def test_the_first_heading_is_the_title(pack: Path, line: str, title: str) -> None:
    (pack / "documents" / "kettle.md").write_text(f"{line}\n\nText.\n")
    assert load_scenario(pack).documents[0].title == title


def test_a_heading_of_spaces_takes_no_time(pack: Path) -> None:
    (pack / "documents" / "kettle.md").write_text(f"# a{' ' * 200_000}x\n\nText.\n")
    assert load_scenario(pack).documents[0].text == "Text."


def test_a_damaged_pdf_is_one_sentence_and_nothing_before_it(
    pack: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    (pack / "documents" / "bad.pdf").write_bytes(b"garbage")
    told = r"bad\.pdf: cannot be read as PDF \(ValueError: it is damaged, or no PDF"
    with pytest.raises(UsageError, match=told):
        load_scenario(pack)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
