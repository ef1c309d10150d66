"""The bots in `examples` that need packages of their own hold conversations, each in its own environment."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

import hallulab
from hallulab.agents.machine.environments import python_environment
from hallulab.scenarios.errors import OperationalError
from hallulab.testing.endpoint import MODEL, completion, serve_stub
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.places import ROOT

ASKED = "How long does a kettle take, and what about cup"
"""How the simulated user's messages begin."""


def make_environment(config: pytest.Config, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the interpreter of an example's environment; skip the test if its packages cannot be had."""
    requirements = ROOT / "examples" / f"{name}.requirements.txt"
    # uv links files to those that it keeps, which nltk, a part of LlamaIndex, refuses to read.
    monkeypatch.setenv("UV_LINK_MODE", "copy")
    try:
        return python_environment(
            Path(config.cache.mkdir("example_bots")) / name,
            requirements.read_text(encoding="utf-8"),
            ["--requirement", str(requirements)],
            owner=name,
            total=None,
            on_progress=lambda _: None,
        )
    except OperationalError as error:
        pytest.skip(str(error))


@pytest.mark.slow  # a minute for the first environment, and some seconds to import such libraries
@pytest.mark.parametrize("name", ["langgraph_bot", "llamaindex_bot"])
def test_a_bot_to_copy_reads_documents_and_remembers_the_conversation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    python = make_environment(request.config, name, monkeypatch)
    pack, number = make_pack(tmp_path / "pack"), count(1)
    asked_by_bot: list[list[tuple[str, str]]] = []

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        made = completion(body)
        if "alone. If they do not tell" in str(body["messages"][0]["content"]):
            asked_by_bot.append([(one["role"], str(one["content"])) for one in body["messages"]])
            made["choices"][0]["message"]["content"] = f"Three minutes, answer {len(asked_by_bot)}."
        elif not body.get("logprobs") and "response_format" not in body:
            made["choices"][0]["message"]["content"] = f"{ASKED} {next(number)}?"
        return made

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BOT_DOCUMENTS", str(pack / "documents"))
    monkeypatch.setenv("BOT_MODEL", MODEL)
    bot = {
        "name": name,
        "kind": "callable",
        "options": {"target": f"examples.{name}:reply", "python": str(python)},
    }
    with serve_stub(answer) as url, words_for_vectors():
        monkeypatch.setenv("BOT_BASE_URL", url)
        experiment = {
            "scenario": str(pack),
            "model": MODEL,
            "base_url": url,
            "chatbots": [bot],
            "detectors": ["lexical"],
            "manners": ["plain"],
            "min_turns": 2,
            "max_turns": 2,
        }
        run = hallulab.run(experiment, out=str(tmp_path / "run"), quiet=True)
    [conversation] = run.conversations
    assert conversation.error is None
    assert [turn.reply for turn in conversation.turns] == [
        "Three minutes, answer 1.",
        "Three minutes, answer 2.",
    ]
    for turn in conversation.turns:
        assert [passage.document for passage in turn.passages] == ["kettle"]
        assert "A kettle takes three minutes." in turn.passages[0].text
    first, second = (turn.user for turn in conversation.turns)
    assert "A kettle takes three minutes." in asked_by_bot[0][0][1]
    assert asked_by_bot[0][1:] == [("user", first)]
    assert asked_by_bot[1][1:] == [
        ("user", first),
        ("assistant", "Three minutes, answer 1."),
        ("user", second),
    ]
