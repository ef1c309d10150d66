"""A data set of DeepEval: a list of cases, read by its `add_test_cases_from_json_file` and for goldens.

`conversation_id`, `turn_index` and `model` stand beside DeepEval's own fields, which leave them out.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from hallulab.scenarios.chats import json_rows
from hallulab.scenarios.chats.chat_format import ChatFormat, encode_json, write_lines
from hallulab.scenarios.chats.ragas import build_ragas_lines
from hallulab.scenarios.chats.record import Marked
from hallulab.scenarios.chats.row_kinds import DEEPEVAL


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write a list with a case for each reply, a line each."""
    cases = (case for marked in chats for case in build_ragas_lines(marked, without, DEEPEVAL))
    lines = (("," if number else "") + encode_json(case) for number, case in enumerate(cases))
    write_lines(path, chain("[", lines, "]"))


INFO = ChatFormat(
    name="deepeval",
    about="a data set of DeepEval",
    endings=(".json",),
    read=json_rows.read,
    write=write,
    rank=15,
)
