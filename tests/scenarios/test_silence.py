"""Libraries that talk are silent while we call them, and only then."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import pytest

from scenarios.errors import UsageError
from scenarios.pack_files import load_scenario
from scenarios.silence import silenced
from tests.fuzz.tiny_run import make_pack


def test_a_damaged_pdf_is_one_sentence_and_nothing_before_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    pack = make_pack(tmp_path)
    (pack / "documents" / "bad.pdf").write_bytes(b"garbage")
    told = r"bad\.pdf: cannot be read as PDF \(PdfStreamError: Stream has ended"
    with pytest.raises(UsageError, match=told):
        load_scenario(pack)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_a_library_talks_again_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("talker")
    logger.setLevel(logging.INFO)
    with silenced("talker"):
        logging.getLogger("talker.inner").critical("inside")
        warnings.warn("inside", stacklevel=1)
    assert logger.level == logging.INFO
    logging.getLogger("talker.inner").warning("outside")
    assert caplog.messages == ["outside"]
