"""Packs, experiment files and sweeps that hold anything: they are read, or refused in one sentence.

Most examples call what reads a file. The others are whole commands.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.yaml_text import read_value
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.chunking import cut_into_passages
from hallulab.simulator.bench.sweep import list_configurations, load_sweep
from hallulab.simulator.records.choices import compute_scenario_version
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.testing.tiny_pack import FILES, make_pack, words_for_vectors
from tests.fuzz.anything import changed, damaged, written_leniently
from tests.fuzz.promises import ended, examples, keeping
from tests.scenarios.packs.pdf_files import write_pages

LONGEST = 6_000
"""Characters of a sentence about a small file; a path that it names may be long."""

ODD_YAML = [
    *("*a", "&a [*a]", "{<<: x}", "<<", "{a: 1, a: 2}", "{[a]: 1}", "{?}", "? a", "- a", "| ", "> ", "# "),
    *("!!int ''", "!!float x", "!!bool x", "!!timestamp x", "!!binary x", "!!set {a}", "!!omap", "!!x%0Ay 1"),
    *(
        "!!python/object/apply:os.getcwd []",
        "%YAML 9.9",
        "---",
        "...",
        "@",
        "`",
        "\t",
        "\x85",
        "\u2028",
        "\ufeff",
    ),
    *(".nan", "-.inf", "1.0e+999", "1e999", "0b1", "1__0", "1:1:1:1", "1:1.5", "1" + ":1" * 300, "9" * 5000),
    *(
        "0x" + "f" * 5000,
        "2020-13-45",
        "2020-01-01",
        "=",
        "~",
        '"\\ud800"',
        '"\\ud83d\\ude00"',
        '"\\0"',
        '"\\e[m"',
    ),
    *("[" * 300, "{" * 300, "x" * 300, "~nosuchuser/x", "/dev/zero", "/etc", "..", ".", "a=b"),
    *("http://[::1", "https://u:p@h/v1", "1000000000", "-1"),
]
"""Values in YAML on which programs stumble."""


@st.composite
def odd_yaml(draw: st.DrawFn, text: bytes) -> bytes:
    """YAML with anything in place of one to three of its values or keys, or anywhere."""
    found = text.decode("utf-8", "surrogateescape")
    for _ in range(draw(st.integers(1, 3))):
        places = [*re.finditer(r'"[^"]*"|[\w.-]+|$', found)]
        place = draw(st.sampled_from(places))
        end = place.end() if draw(st.booleans()) else place.start()
        found = found[: place.start()] + draw(st.sampled_from(ODD_YAML)) + found[end:]
    return found.encode("utf-8", "surrogateescape")


def yaml_files(text: str) -> st.SearchStrategy[bytes]:
    """A YAML file with any value in any field, any bytes at any place, or both."""
    written = changed(yaml.safe_load(text)).map(written_leniently)
    block = text.encode()
    return st.one_of(
        written, written.flatmap(odd_yaml), odd_yaml(block), damaged(block), odd_yaml(block).flatmap(damaged)
    )


EXPERIMENT = """\
scenario: consumer-grievance-india
chatbots:
  - vanilla
  - {name: theirs, kind: endpoint, options: {base_url: "http://127.0.0.1:9/v1", model: m, max_tokens: 9}}
detectors:
  - lexical
  - {name: strict, kind: metarag, options: {tau: 0.3, mutations: 2, verifiers: [default, judge]}}
model: m
base_url: http://127.0.0.1:9/v1
models:
  judge: {model: m2, base_url: "http://127.0.0.1:9/v1", api_key_env: KEY}
roles: {user: judge}
personas: [ann]
limit: 1
repeats: 1
seed: 3
min_turns: 1
max_turns: 2
reply_tokens: 40
top_k: 2
embedding_model: all-minilm-l6-v2
concurrency: 4
timeout: 5.5
"""

SWEEP = """\
detector: lexical
options: {seed: 1}
grid:
  threshold: [0.2, 0.5]
configurations:
  - {threshold: 0.7}
repeats: 2
"""

DOCUMENT = """\
---
title: The kettle
source: &a Folklore
topic: heat
sector: kitchen
---
# Heat

Water boils at 100 degrees.

- A kettle takes three minutes.
"""


def read_or_refused(read: Callable[[], Any]) -> Any:
    """What is read, or None where it is refused in one sentence."""
    try:
        return read()
    except UsageError as error:
        told = str(error)
        assert told.endswith("."), told
        assert len(told) < LONGEST, told
        told.replace("\n", " ").encode("utf-8", "surrogateescape")
        return None


def strict(text: str) -> Any:
    """A JSON value as other programs read it."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    text.encode()
    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@examples(250)
@given(content=yaml_files(EXPERIMENT))
def test_an_experiment_is_read_or_refused(folder: Path, content: bytes) -> None:
    path = folder / "experiment.yaml"
    path.write_bytes(content)
    experiment = read_or_refused(lambda: load_experiment(path, {}))
    assert path.read_bytes() == content
    if experiment is not None:
        strict(experiment.model_dump_json())
        strict(json.dumps(experiment.model_dump(mode="json"), ensure_ascii=False))


@examples(80)
@given(content=yaml_files(SWEEP))
def test_a_sweep_is_read_or_refused(folder: Path, content: bytes) -> None:
    path = folder / "sweep.yaml"
    path.write_bytes(content)
    sweep = read_or_refused(lambda: load_sweep(path))
    if sweep is not None:
        strict(sweep.model_dump_json())
        read_or_refused(lambda: list_configurations(sweep))


@examples(60)
@given(value=st.sampled_from(ODD_YAML) | st.text(max_size=20))
def test_the_value_of_an_option_is_read_or_refused(value: str) -> None:
    try:
        found = read_value(value)
    except ValueError as error:
        told = str(error)
    else:
        told = json.dumps(found, ensure_ascii=False)
        strict(told)
    assert "\n" not in told


@st.composite
def packs(draw: st.DrawFn) -> dict[str, bytes]:
    """The files of a pack, one or two of which hold anything."""
    files = {name: text.encode() for name, text in FILES.items()}
    for name in draw(st.lists(st.sampled_from(sorted(HOSTILE)), min_size=1, max_size=2, unique=True)):
        files[name] = draw(HOSTILE[name])
    return files


PDF = write_pages([(60, 740, "Oolong is half fermented.")])

HOSTILE: dict[str, st.SearchStrategy[bytes]] = {
    "scenario.yaml": yaml_files(FILES["scenario.yaml"] + "identity_thresholds: {heat: 0.5}\n"),
    "personas.yaml": yaml_files(FILES["personas.yaml"]),
    "documents/kettle.md": odd_yaml(DOCUMENT.encode()) | damaged(DOCUMENT.encode()) | st.binary(max_size=30),
    "documents/leaf.txt": damaged(DOCUMENT.encode()) | st.binary(max_size=30),
    "documents/tea.pdf": damaged(PDF),
}


def _write(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@examples(270)
@given(files=packs())
def test_a_pack_is_read_or_refused(folder: Path, files: dict[str, bytes]) -> None:
    pack = folder / "pack"
    _write(pack, files)
    with keeping(pack), patch.object(logging.Logger, "callHandlers") as talking:
        scenario = read_or_refused(lambda: load_scenario(pack))
    # What of the documents is doubtful is told; no library says anything.
    assert {call.args[-1].name for call in talking.call_args_list} <= {"hallulab.scenarios.packs.documents"}
    if scenario is not None:
        strict(scenario.model_dump_json())
        compute_scenario_version(scenario)
        for document in scenario.documents:
            assert cut_into_passages(document)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a pack, data and a recording, where commands run."""
    folder = tmp_path_factory.mktemp("commands")
    with pytest.MonkeyPatch.context() as patched, words_for_vectors():
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        patched.chdir(folder)
        make_pack(folder / "pack")
        (folder / "data.jsonl").write_text('{"reply": "A.", "passages": ["A."], "label": false}\n')
        (folder / "other.jsonl").write_text('{"kind":"model","key":"another","answer":1}\n')
        yield folder


@examples(15)
@given(files=packs())
def test_a_command_that_reads_a_pack(work: Path, files: dict[str, bytes]) -> None:
    _write(work / "hostile", files)
    with keeping(work):
        ended("list", "personas", "--scenario", work / "hostile")


@examples(15)
@given(files=packs(), experiment=yaml_files(EXPERIMENT.replace("consumer-grievance-india", "./hostile")))
def test_a_command_that_reads_an_experiment(work: Path, files: dict[str, bytes], experiment: bytes) -> None:
    _write(work / "hostile", files | {"personas.yaml": FILES["personas.yaml"].encode()})
    (work / "experiment.yaml").write_bytes(experiment)
    out = work / "run"
    shutil.rmtree(out, ignore_errors=True)
    with keeping(work):
        ended("run", "-c", "experiment.yaml", "--replay", "other.jsonl", "--out", out, "--quiet")


@examples(15)
@given(sweep=yaml_files(SWEEP), option=st.sampled_from(ODD_YAML).filter(lambda text: "\0" not in text))
def test_a_command_that_reads_a_sweep_and_options(work: Path, sweep: bytes, option: str) -> None:
    (work / "sweep.yaml").write_bytes(sweep)
    with keeping(work):
        ended("bench", "data.jsonl", "--sweep", "sweep.yaml", "--quiet")
        ended("bench", "begin", "--data", work, f"--option=implicit_true={option}")


@examples(15)
@given(name=st.text(max_size=30).filter(str.isprintable))
def test_a_pack_is_begun_in_any_new_folder_or_nowhere(work: Path, name: str) -> None:
    with keeping(work):
        ended("init-scenario", work / "new" / name.replace("..", "_"))
    shutil.rmtree(work / "new", ignore_errors=True)
