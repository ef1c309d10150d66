"""Chats that hold anything: they are imported, or refused in one sentence, with nothing half-written.

One thousand files of messages and of other tools, and four thousand of rows, in `make test-slow`, each given
to the whole command.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hallulab.simulator.records.folder import RunFolder
from tests.fuzz.anything import changed, damaged
from tests.fuzz.promises import ended, examples, keeping
from tests.scenarios.chats.test_formats import FILES
from tests.scenarios.chats.test_tools import FILES as TOOLS

LINES = 700
"""Examples of lines with messages in `make test-slow`; the other 300 are damaged files of all formats."""

TABLES_TRIED = 2_000
"""Examples of tables, and as many of rows in JSON."""

LONGEST = 2_000
"""Characters of a sentence."""

IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}
texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", " ", "=1+1", "\x00", "\u202e", "a" * 10**6, "<script>", "\ud800"]),
)
parts = st.lists(
    st.one_of(texts.map(lambda text: {"type": "text", "text": text}), st.just(IMAGE), st.just({}), st.none()),
    max_size=3,
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(
            ["user", "assistant", "system", "tool", "developer", "narrator", "", None, 3]
        ),
        "content": st.one_of(texts, st.none(), parts, st.just({})),
        "tool_calls": st.sampled_from([None, [], [{"id": "1", "function": {"name": "f"}}], "x"]),
        "context": st.one_of(
            texts, st.lists(texts, max_size=2), st.just([{"content": "Fee.", "score": 1e400}])
        ),
        "refusal": st.one_of(texts, st.none()),
    },
)
good = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": texts | parts}
)
sound = st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), min_size=1, max_size=3).map(
    lambda turns: [
        {"role": role, "content": text}
        for turn in turns
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
)
chats = st.one_of(
    st.fixed_dictionaries({"messages": sound}),
    st.fixed_dictionaries({"messages": sound}, optional={"id": st.text(max_size=5)}),
    st.fixed_dictionaries({"messages": st.lists(good | messages, max_size=6)}, optional={"id": texts}),
    st.fixed_dictionaries({"messages": st.lists(good, min_size=1, max_size=6)}),
    st.fixed_dictionaries({"conversations": st.lists(messages, max_size=4), "system": texts}),
    st.sampled_from([{}, [], None, {"messages": 3}, {"messages": [], "hallulab": {"turns": [{}]}}]),
)
NAMES_OF_COLUMNS = st.sampled_from(
    ["question", "answer", "response", "contexts", "session_id", "turn", "timestamp", "role", "content",
     "messages", "user_input", "retrieved_contexts", "Frage", "", "inputs.question", "outputs.answer"]
)  # fmt: skip
CELLS = st.one_of(
    texts,
    st.sampled_from(
        ["user", "assistant", "1", "1.10", "2026-05-02T09:00:00Z", "10/1/2026", "nan",
         "[Document(page_content='a')]", "[HumanMessage(content='a'), AIMessage(content='b')]", "['a' 'b']",
         '["a", {"text": 1}]',
         '{"messages": [{"role": "user", "content": "a"}]}', "[" * 300, "{" * 300 + "}", "array([" * 50, '"',
         "a;b\tc|d"]
    ),
)  # fmt: skip
TABLES = st.lists(NAMES_OF_COLUMNS, min_size=1, max_size=6).flatmap(
    lambda names: st.tuples(
        st.just(names), st.lists(st.lists(CELLS, min_size=len(names), max_size=len(names)), max_size=4)
    )
)
encodings = st.sampled_from(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "latin-1"])


def check_import(folder: Path, name: str, held: bytes, *flags: str) -> None:
    """Import a file, and check what a user is promised."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path, out = folder / name, folder / "out"
    path.write_bytes(held)
    with keeping(folder):
        found = ended("import", path, "--out", out, *flags)
    assert found.code in (0, 2), found
    if found.code == 0:
        read = RunFolder(out)
        assert all(one.turns for one in read.read_conversations())
        assert read.read_experiment() is not None
        return
    assert sorted(folder.iterdir()) == [path]
    sentence = found.err.splitlines()[-1]
    assert len(sentence) < LONGEST + len(str(folder)), sentence
    assert str(path) in sentence or "--out" in sentence, sentence
    # A file as a whole may have no reply.
    assert re.search(r"lines? \d+", sentence) or "no conversation in it has a reply" in sentence, sentence


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chats") / "files"


@settings(examples(LINES), suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(
    lines=st.lists(chats, min_size=1, max_size=3),
    encoding=encodings,
    cut=st.integers(0, 30),
    name=st.booleans(),
)
def test_any_messages(folder: Path, lines: list[Any], encoding: str, cut: int, name: bool) -> None:
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    held = text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")
    # A third of the files are cut off.
    check_import(folder, "a.jsonl" if name else "a.json", held[: -cut - 1] if cut > 20 else held)


@settings(examples(TABLES_TRIED), suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(
    table=TABLES, separator=st.sampled_from(",;\t|"), encoding=encodings, quoted=st.booleans(),
    packed=st.booleans(), skip=st.integers(0, 3), data=st.data(),
)  # fmt: skip
def test_any_table(
    folder: Path, table: tuple[list[str], list[list[str]]], separator: str, encoding: str, quoted: bool,
    packed: bool, skip: int, data: st.DataObject,
) -> None:  # fmt: skip
    rows = [table[0], *table[1]]
    if quoted:
        rows = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in rows]
    text = "".join(f"{separator.join(row)}\n" for row in rows)
    held = text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")
    if data.draw(st.integers(0, 3)) == 0:
        held = data.draw(damaged(held))
    name = "a.csv.gz" if packed else "a.csv"
    check_import(folder, name, gzip.compress(held) if packed else held, "--skip-bad", str(skip))


@settings(examples(TABLES_TRIED), suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(table=TABLES, skip=st.integers(0, 3), data=st.data())
def test_any_rows_of_json(
    folder: Path, table: tuple[list[str], list[list[str]]], skip: int, data: st.DataObject
) -> None:
    rows = [dict(zip(table[0], cells, strict=True)) for cells in table[1]]
    held = "".join(f"{json.dumps(data.draw(st.just(row) | changed(row)))}\n" for row in rows).encode()
    check_import(folder, "a.jsonl", held, "--format", "json-rows", "--skip-bad", str(skip))


@settings(examples(1_000 - LINES))
@given(data=st.data(), format=st.sampled_from(sorted(FILES | TOOLS)))
def test_any_damage_to_a_file_of_another_tool(folder: Path, data: st.DataObject, format: str) -> None:
    name, content = FILES[format] if format in FILES else TOOLS[format][:2]
    content = data.draw(changed(content))
    if isinstance(content, list) and name.endswith(".jsonl"):
        held = b"".join(f"{json.dumps(line)}\n".encode() for line in content)
    else:
        held = json.dumps(content).encode()
    check_import(folder, name, data.draw(st.just(held) | damaged(held)), "--format", format)
