"""Freeze what a user gets, and compare it: `python -m benchmarks.golden FOLDER [--against BEFORE]`.

For changes of shape that must not change behaviour. Every command's help and its output on recorded or
planted data is written into a new FOLDER: terminal, reports, pages, tables, journals, exports. Without a
model and a network, in under two minutes on two cores. `--against` compares the folder with one that an
earlier revision wrote.

Versions of components, digests of files and times are written as `VERSION`, `DIGEST` and `TIME`: they may
change with the shape. Everything else is compared to the byte.

Exit code 0: written, and the same. 1: the folders differ, or a command failed; each file that differs is
named, with its first different line. 2: FOLDER is there already, or BEFORE is not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path

from benchmarks.command import build_parser

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
PROCESSES = 2
"""Commands under way at once."""

_MODEL = ("--model", "qwen2.5-coder-1.5b")
_REPLAYED = {"demo": "examples/demo.yaml", "headline": "examples/headline.yaml"}
_FORMATS = ("bench", "openai", "sharegpt", "csv", "ragtruth", "jsonl")
"""Formats of `export` whose files are text."""
_LISTED = ("scenarios", "personas", "chatbots", "detectors", "models")

_MASKS = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b"), "DIGEST"),
    (re.compile(r'("versions?": ?)(?:"[^"]*"|\{[^{}]*\})'), r'\1"VERSION"'),
    (re.compile(r'("(?:seconds|cold_s|p50_ms|p95_ms|memory_mb)": ?)[0-9.]+'), r'\1"TIME"'),
    (re.compile(r"^[a-z]+ing .*\d:\d\d:\d\d left .*\n", re.MULTILINE), ""),
)
"""What may differ between revisions, and what stands in its place."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write and compare; return the exit code."""
    parser = build_parser("golden", __doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="new folder")
    parser.add_argument("--against", type=Path, metavar="BEFORE", help="folder of an earlier revision")
    given = parser.parse_args(arguments)
    if given.folder.exists():
        print(f"error: {given.folder} is there already; name a new folder.", file=sys.stderr)
        return 2
    if given.against is not None and not given.against.is_dir():
        print(f"error: {given.against} is no folder.", file=sys.stderr)
        return 2
    failed = freeze(given.folder)
    for command in failed:
        print(f"failed: {command}")
    differing = [] if given.against is None else list(compare(given.against, given.folder))
    for line in differing:
        print(line)
    if given.against is not None and not differing:
        print("the same")
    return 1 if failed or differing else 0


def freeze(folder: Path) -> list[str]:
    """Write all outputs into a folder; return the commands that failed."""
    folder = folder.resolve()
    folder.mkdir(parents=True)
    with ThreadPoolExecutor(PROCESSES) as pool:
        helps = pool.submit(_write_helps, folder)
        runs = list(pool.map(lambda name: _replay(folder, name), _REPLAYED))
        planted = _write(
            folder,
            "plant",
            _hallulab(
                "make-data",
                "planted",
                str(folder / "demo"),
                "--count",
                "40",
                "--out",
                str(folder / "planted"),
            ),
        )
        others = list(pool.map(lambda command: _write(folder, *command), _commands(folder)))
    failed = [command for command in (*helps.result(), *runs, planted, *others) if command is not None]
    if not failed:
        (folder / "bench.txt").unlink()  # its table of times; the numbers are in bench.json
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        mask(path, folder)
    return failed


def compare(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for each file that only one folder has, or that differs."""
    names = {path.relative_to(root) for root in (before, after) for path in root.rglob("*") if path.is_file()}
    for name in sorted(names):
        if not (before / name).is_file() or not (after / name).is_file():
            yield f"{name}: only in {before if (before / name).is_file() else after}"
            continue
        old, new = ((root / name).read_bytes().splitlines() for root in (before, after))
        for number, (line, other) in enumerate(zip_longest(old, new), 1):
            if line != other:
                yield f"{name}:{number}: {_cut(line, other)} → {_cut(other, line)}"
                break


def _commands(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each output and the command that prints it, after the runs were replayed."""
    demo = str(folder / "demo")
    for listed in _LISTED:
        yield f"list-{listed}", _hallulab("list", listed)
    for form in _FORMATS:
        yield (
            f"export-{form}",
            _hallulab(
                "export", demo, "--format", form, "--detector", "halludetect",
                "--out", str(folder / f"exported-{form}"),
            ),
        )  # fmt: skip
    yield "report", _hallulab("report", demo, "--json")
    yield (
        "realism",
        _hallulab("realism", str(folder / "headline"), "--json", "--out", str(folder / "realism.html")),
    )
    headline = str(folder / "headline")
    outputs = (("--html", "html"), ("--markdown", "md"), ("--json", "json"))
    yield (
        "compare",
        _hallulab(
            "compare", headline, demo,
            *(part for flag, end in outputs for part in (flag, str(folder / f"compared.{end}"))),
        ),
    )  # fmt: skip
    outputs = (("--markdown", "md"), ("--junit", "xml"), ("--json", "json"))
    yield (
        "gate",
        _hallulab(
            "gate", headline, "--against", headline, "--max-hpt", "9",
            *(part for flag, end in outputs for part in (flag, str(folder / f"gated.{end}"))),
        ),
    )  # fmt: skip
    yield "baseline", _hallulab("compare", headline, "--save", str(folder / "baseline.json"))
    yield "compact", _hallulab("export", demo, "--format", "tables")
    yield (
        "branch",
        _hallulab(
            "branch", demo, "--turns", "1", "--chatbots", "vanilla", "--detectors", "lexical", *_MODEL,
            "--replay", "tests/recordings/demo.jsonl.gz", "--out", str(folder / "branch"),
        ),
    )  # fmt: skip
    yield (
        "bench",
        _hallulab(
            "bench", str(folder / "planted" / "planted.jsonl"), "--detectors", "lexical,evidence-chain-bm25",
            "--json", str(folder / "bench.json"), "--quiet",
        ),
    )  # fmt: skip
    yield (
        "benchmarks-detectors_table",
        [
            PYTHON, "-m", "benchmarks.detectors_table", "--datasets", "gold,mtrag",
            "--json", str(folder / "detectors_table.json"),
        ],
    )  # fmt: skip
    yield "init-scenario", _hallulab("init-scenario", str(folder / "pack"))
    yield "benchmarks-planted_report", [PYTHON, "-m", "benchmarks.planted_report"]


def _replay(folder: Path, name: str) -> str | None:
    """Replay an experiment of the docs into a run folder; return the command if it failed."""
    recording = f"tests/recordings/{name}.jsonl.gz"
    run = ["run", "-c", _REPLAYED[name], *_MODEL, "--replay", recording, "--out", str(folder / name)]
    return _write(folder, f"run-{name}", _hallulab(*run))


def _write_helps(folder: Path) -> list[str]:
    """Write the help of the command and of all that are below it; return those that failed."""
    failed = []
    found: list[tuple[str, ...]] = [()]
    while found:
        path = found.pop(0)
        name = "-".join(("help", *path))
        problem = _write(folder, name, _hallulab(*path, "--help"))
        if problem is not None:
            failed.append(problem)
            continue
        found += [(*path, one) for one in find_commands((folder / f"{name}.txt").read_text(encoding="utf-8"))]
    return failed


def find_commands(text: str) -> list[str]:
    """Return the names of the commands in a help text: of all commands, or of a group in its boxes."""
    return re.findall(r"^(?:│ |  )([a-z][a-z-]*)  ", text, re.MULTILINE)


def _hallulab(*arguments: str) -> list[str]:
    return [str(Path(PYTHON).with_name("hallulab")), *arguments]


def _write(folder: Path, name: str, command: list[str]) -> str | None:
    """Write what a command prints; return the command if it failed."""
    surroundings = os.environ | {
        "COLUMNS": "120",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "TOKENIZERS_PARALLELISM": "0",
    }
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
    (folder / f"{name}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    return None if done.returncode == 0 else f"{' '.join(command)} (see {name}.txt)"


def mask(path: Path, folder: Path) -> None:
    """Replace what may differ between revisions, in a file that is text."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        path.unlink()
        return
    text = text.replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    path.write_text(text, encoding="utf-8")


def _cut(line: bytes | None, other: bytes | None) -> str:
    """Return what stands around the first place where a line differs from another one."""
    if line is None:
        return "(no line)"
    pairs = enumerate(zip(line, other or b"", strict=False))
    same = next((at for at, (one, two) in pairs if one != two), min(len(line), len(other or b"")))
    return repr(line[max(same - 40, 0) : same + 60].decode(errors="replace"))


if __name__ == "__main__":
    sys.exit(main())
