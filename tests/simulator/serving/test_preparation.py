from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.errors import UsageError
from simulator.serving import preparation
from simulator.serving.environment import ServerEnvironment
from simulator.serving.preparation import positions, prepare


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder, on a CPU machine whose server environment is there."""

    def environment(**options: Any) -> ServerEnvironment:
        return ServerEnvironment(kind="cpu", python=tmp_path / "python")

    monkeypatch.setattr(preparation, "server_environment", environment)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 2048}))
    return folder


def test_a_local_folder_is_served_under_its_name_and_as_it_was_written(model: Path) -> None:
    prepared = prepare(str(model), cache=model.parent)
    assert prepared.names == ("mine", str(model))
    assert (prepared.source, prepared.context, prepared.revision) == (str(model), 2048, None)
    assert prepared.offline
    assert prepared.environ({})["HF_HUB_OFFLINE"] == "1"


def test_a_hub_model_may_ask_the_hub(model: Path) -> None:
    prepared = prepare("org/name", cache=model.parent)
    assert (prepared.source, prepared.context, prepared.offline) == ("org/name", None, False)
    assert "HF_HUB_OFFLINE" not in prepared.environ({})


def test_an_unknown_model_is_said_before_anything_is_made(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no model 'gpt-17'"):
        prepare("gpt-17", cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("config", "expected"),
    [({"text_config": {"max_position_embeddings": 7}}, 7), ({"model_type": "toy"}, None)],
)
def test_positions_may_be_nested_or_missing(tmp_path: Path, config: Any, expected: int | None) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert positions(tmp_path) == expected
