"""What the table of blame costs, in short."""

from __future__ import annotations

import re

import pytest

from benchmarks.blame_speed import main


def test_it_prints_the_cost_of_a_conversation_and_of_a_large_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--conversations", "10"]) == 0
    index, conversation, large = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"the words of the pack: \d+\.\d\d s, once in a process", index)
    without, examined = map(float, re.findall(r"(\d+\.\d\d) ms", conversation))
    assert without < examined
    assert re.fullmatch(r"of 100,000 conversations 2% are examined: \d+ s more", large)
