"""Files are opened to read in one place, `scenarios/files/opening.py`, which waits for nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.places import ROOT

FLOORS = ("scenarios", "agents", "detectors", "chatbots", "simulator", "hallulab")

READING = {"read_text", "read_bytes", "open"}
"""Methods of a path that open it."""

LIBRARIES = {
    *(
        "ZipFile",
        "TarFile",
        "GzipFile",
        "ParquetFile",
        "read_table",
        "read_csv",
        "read_parquet",
        "read_excel",
    ),
    *("read_excel", "copyfile", "copy2", "copytree", "fromfile", "loadtxt", "genfromtxt", "memmap"),
}
"""Names of libraries' functions that open a path; those of ours have other names."""

ALLOWED = {
    "os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)": "a folder, to lock it; a pipe is refused",
    "open(f'/proc/self/task/{os.getpid()}/children')": "the system's own file",
    "(proc / 'cpuinfo').read_text(encoding='utf-8')": "the system's own file",
    "parquet.ParquetFile(opened)": "of an open file",
    "zipfile.ZipFile(packed)": "of an open file",
    "zipfile.ZipFile(content)": "of bytes",
    "gzip.GzipFile(fileobj=file)": "of an open file",
    "gzip.open(packed, 'rb')": "of an open file",
    "archive.open(member)": "a part of an archive",
    "webbrowser.open(listening.address)": "no file",
    "webbrowser.open(page.absolute().as_uri())": "the browser reads it",
    "models.waves.open(self.folder.waves, models.settings.fresh)": "no file",
}
"""Calls that stand elsewhere → the reason."""

FILES = {
    "scenarios/files/opening.py": "the opener",
    "agents/machine/ray_nodes.py": "reads hallulab's own source",
    "agents/versions.py": "reads the source of hallulab and of the user's own bots, which run anyway",
    "agents/serving/describe_gguf.py": "runs where hallulab is not installed, on a file that it wrote itself",
    "detectors/peers/workers/hhem_worker.py": "runs where hallulab is not installed",
}
"""Files that may open others → the reason."""


NAMED = re.compile(rf"\b(?:{'|'.join(READING | LIBRARIES)})\(")
"""Text that holds such a call; most files have none, and need not be parsed."""


def find_calls(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the calls with those names, and whether each opens a file to read it."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        called = ast.unparse(node) if name in READING | LIBRARIES else ""
        mode = next((one.value for one in node.args[:1] if isinstance(one, ast.Constant)), "")
        writes = name == "open" and isinstance(mode, str) and mode[:1] in ("w", "a", "x")
        of_ours = called.startswith(("files(", "(files(", "os.open(os.devnull, "))
        of_path = isinstance(function, ast.Attribute) and name in READING and not writes and not of_ours
        if called:
            of_bytes = "(io.BytesIO(" in called
            yield called, of_path or (name in LIBRARIES and not of_bytes) or called.startswith("open(")


def find_bare_readers(text: str) -> list[str]:
    """Return the calls that open a file to read it without the opener, also those that are allowed."""
    return [called for called, reads in find_calls(text) if reads]


@cache
def readers_of_the_packages() -> dict[str, list[str]]:
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*.py")
    }
    return {name: find_bare_readers(text) for name, text in texts.items() if NAMED.search(text)}


def test_no_file_is_opened_to_read_but_by_the_opener() -> None:
    found = {
        (name, call)
        for name, calls in readers_of_the_packages().items()
        if name not in FILES
        for call in calls
        if call not in ALLOWED
    }
    assert found == set()


def test_the_exceptions_are_needed() -> None:
    found = readers_of_the_packages()
    assert ALLOWED.keys() - {call for calls in found.values() for call in calls} == set()
    assert [name for name in FILES if not found.get(name)] == []


def test_a_bare_reader_is_found() -> None:
    text = """
open(path)
path.open()
(folder / "a").open("rb")
path.open("w")
path.read_bytes()
gzip.open(path)
os.open(path, 0)
os.open(os.devnull, os.O_RDWR)
zipfile.ZipFile(io.BytesIO(data))
pd.read_csv(path)
files(package).joinpath("x").read_text()
"""
    assert find_bare_readers(text) == [
        "open(path)",
        "path.open()",
        "(folder / 'a').open('rb')",
        "path.read_bytes()",
        "gzip.open(path)",
        "os.open(path, 0)",
        "pd.read_csv(path)",
    ]
