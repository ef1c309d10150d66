"""Libraries that talk are silent while we call them, and only then."""

from __future__ import annotations

import logging
import warnings

import pytest

from hallulab.scenarios.packs.documents import hide_log_and_warnings


def test_a_library_talks_again_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("talker")
    logger.setLevel(logging.INFO)
    with hide_log_and_warnings("talker"):
        logging.getLogger("talker.inner").critical("inside")
        warnings.warn("inside", stacklevel=1)
    assert logger.level == logging.INFO
    logging.getLogger("talker.inner").warning("outside")
    assert caplog.messages == ["outside"]
