"""A key that comes back in every way is in no file and on no terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.redaction import Redaction
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import PROBES, completion
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.agents.models.endpoints import HASTY_POOL
from tests.fuzz.honest import honest_words
from tests.fuzz.promises import ended
from tests.simulator.command_line import Ended
from tests.simulator.echoing_server import WAYS, endpoint, http

KEY = "sk-canary/4f9A+w&7"

BOT = """
import os

def tells(history):
    return f"The key is {os.environ['CANARY_KEY']}."

def raises(history):
    raise RuntimeError(f"401: wrong key {os.environ['CANARY_KEY']!r}")

def odd(history):
    return {os.environ["CANARY_KEY"]: 1}
"""
EXPERIMENT = """
model: m
api_key_env: CANARY_KEY
min_turns: 1
max_turns: 2
detectors: [lexical, halludetect]
chatbots:
  - vanilla
  - {name: theirs, kind: endpoint, options: {base_url: URL, model: m, api_key_env: CANARY_KEY}}
"""
BOTS = """\
  - {name: tells, kind: callable, options: {target: "canary_bot:tells"}}
  - {name: raises, kind: callable, options: {target: "canary_bot:raises"}}
  - {name: odd, kind: callable, options: {target: "canary_bot:odd"}}
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a pack and a bot, in which the key is in the environment."""
    folder = tmp_path_factory.mktemp("canary")
    make_pack(folder / "pack")
    (folder / "canary_bot.py").write_text(BOT)
    with pytest.MonkeyPatch.context() as patched, words_for_vectors():
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        patched.setenv("CANARY_KEY", KEY)
        patched.setenv("PYTHONPATH", str(folder))
        patched.setattr("hallulab.simulator.engine.models.ModelPool", HASTY_POOL)
        yield folder


def run(bench: Path, out: Path, url: str, *more: str, bots: str = BOTS) -> Ended:
    """Run the experiment against this endpoint, with a recording."""
    config = bench / "experiment.yaml"
    config.write_text(EXPERIMENT.replace("URL", url) + bots)
    flags = ("--base-url", url, "--record", out / "recorded.jsonl", "--timeout", "30", "--quiet", *more)
    return ended("run", "-c", config, "--scenario", bench / "pack", "--out", out, *flags)


def assert_nowhere(folder: Path, *said: Ended) -> None:
    """No form of the key, nor a half of it, is in a file or was printed."""
    find = Redaction([KEY])
    written = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}
    shown = [end.out + end.err for end in said]
    for text in (*written.values(), *shown):
        assert not find.finds(text)
        assert KEY[: len(KEY) // 2] not in text
        assert KEY[len(KEY) // 2 :] not in text
        assert KEY[12:16] not in text
    for path, text in written.items():
        if path.suffix in (".json", ".jsonl"):
            for line in text.splitlines() if path.suffix == ".jsonl" else [text]:
                assert KEY not in json.dumps(json.loads(line), ensure_ascii=False)


def assert_nowhere_after(folder: Path, said: Ended) -> None:
    """The same, also when the run in this folder is reported and exported."""
    if "It stays busy" in said.err:  # so it was before the run, and there is none
        assert (said.code, (folder / "report.html").exists()) == (1, False)
        assert_nowhere(folder, said)
        return
    assert (folder / "report.html").is_file()
    exported = ended("export", folder, "--out", folder / "exported.jsonl")
    assert_nowhere(folder, said, ended("report", folder, "--json"), exported)


MODELS = http(json.dumps({"data": [{"id": "m"}]}))


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_the_first_answer_repeats_is_nowhere(bench: Path, tmp_path: Path, way: str) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: dict[str, Any] | None) -> bytes:
        if request is None:
            return MODELS
        asked.append(request)
        return WAYS[way](KEY)

    with endpoint(answer) as url:
        said = run(bench, tmp_path, url, "--max-turns", "1", bots="")
    assert asked
    assert_nowhere(tmp_path, said)


@pytest.mark.parametrize(
    ("whose", "asked_with"),
    [
        ("user", "You write the first message"),
        ("chatbot", "You are an assistant on tea"),
        ("judge", "You audit the replies"),
    ],
)
def test_a_key_that_is_repeated_in_all_ways_is_nowhere(
    bench: Path, tmp_path: Path, whose: str, asked_with: str
) -> None:
    """Every request to that model gets the next way. If one is wrong, the slow tests tell which."""
    given: dict[str, str] = {}
    next_way, unseeded = cycle(WAYS), count(1)

    def answer(request: dict[str, Any] | None) -> bytes:
        if request is None:
            return MODELS
        if not request["messages"][0]["content"].startswith(asked_with):
            # A reply differs from others, so that each is judged by a request of its own. Some of the ways
            # look as if the endpoint refused a seed, so from then on it gets none.
            minutes = f"{request.get('seed', next(unseeded))} minutes?"
            words = {"Yes": 0.4, "No": 0.6} if request.get("logprobs") else minutes
            return http(json.dumps(completion(words)))
        text = json.dumps(request)
        if text not in given:
            given[text] = next(next_way)
        return WAYS[given[text]](KEY)

    with endpoint(answer) as url:
        said = run(bench, tmp_path, url, "--max-turns", "1", "--repeats", str(len(WAYS)), bots="")
    assert set(given.values()) == set(WAYS)
    assert "[key]" in (tmp_path / "recorded.jsonl").read_text()
    assert_nowhere_after(tmp_path, said)


def test_a_key_that_bots_say_and_raise_is_nowhere(bench: Path, tmp_path: Path) -> None:
    asked = count()

    def answer(request: dict[str, Any] | None) -> bytes:
        return MODELS if request is None else http(json.dumps(completion(honest_words(request, next(asked)))))

    with endpoint(answer) as url:
        said = run(bench, tmp_path, url)
    held = {one.chatbot: one for one in RunFolder(tmp_path).read_conversations()}
    assert held["tells"].turns[0].reply == "The key is [key]."
    assert "401: wrong key '[key]'" in str(held["raises"].error)
    assert held["odd"].error is not None
    assert_nowhere_after(tmp_path, said)


@pytest.mark.slow
@pytest.mark.parametrize("honest_for", [0, PROBES, PROBES + 5])
@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_answers_repeat_is_nowhere(bench: Path, tmp_path: Path, way: str, honest_for: int) -> None:
    """It is repeated by the first answer of all, by the user's model, or by chatbots and judges."""
    asked: list[dict[str, Any]] = []

    def answer(request: dict[str, Any] | None) -> bytes:
        if request is None:
            return MODELS
        asked.append(request)
        if len(asked) > honest_for:
            return WAYS[way](KEY)
        return http(json.dumps(completion(honest_words(request, len(asked)))))

    with endpoint(answer) as url:
        said = run(bench, tmp_path, url)
    assert len(asked) > honest_for
    assert_nowhere_after(tmp_path, said)


def _named(key: str) -> bytes:
    return http(json.dumps({"data": [{"id": f"model {key}"}]}))


@pytest.mark.parametrize("way", [*WAYS, "as a model's name"])
def test_a_key_that_the_list_of_models_repeats_is_nowhere(bench: Path, tmp_path: Path, way: str) -> None:
    answer = WAYS.get(way, _named)(KEY)
    with endpoint(lambda _: answer) as url:
        said = run(bench, tmp_path, url)
    assert said.code == 1
    assert_nowhere(tmp_path, said)
