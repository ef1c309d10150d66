"""Tables of other people, whose columns may hold what JSON does not know."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from hallulab.scenarios.chats.formats import read_chats
from hallulab.scenarios.errors import UsageError

SAID = [{"role": "user", "content": "A?"}, {"role": "assistant", "content": "B."}]


def evidence(folder: Path, **columns: Any) -> list[str]:
    """The texts of the passages of the one turn of a table."""
    path = folder / "a.parquet"
    parquet.write_table(pa.Table.from_pylist([{"messages": SAID, **columns}]), path)
    ((_, one),) = read_chats(path, "parquet")
    return [passage.text for passage in one.turns[0].passages]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([{"when": date(2026, 10, 1)}], '{"when": "2026-10-01"}'),
        ([{"fee": Decimal("2.50")}], '{"fee": "2.50"}'),
        ([b"Fee: 200."], "Fee: 200."),
        ([{"id": b"\xff\x01"}], '{"id": "ff01"}'),
    ],
)
def test_what_json_does_not_know_is_a_text(given: Any, text: str, tmp_path: Path) -> None:
    assert evidence(tmp_path, context=given) == [text]


def test_a_text_in_another_encoding_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    bad = pa.array([b"caf\xe9"], pa.binary()).view(pa.string())
    parquet.write_table(pa.table({"messages": [SAID], "id": bad}), path)
    with pytest.raises(
        UsageError, match=r"a\.parquet: a text in it is not UTF-8\. Write it again in UTF-8\.$"
    ):
        list(read_chats(path, "parquet"))
