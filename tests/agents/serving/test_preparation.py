from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.serving import prepare as preparation
from hallulab.agents.serving.prepare import ServerEnvironment, loaded_bytes, positions, prepare
from hallulab.scenarios.errors import UsageError


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


class Hub:
    """Stands for the model hub and its cache on this machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cached: Any, online: Any) -> None:
        self.asked: list[tuple[str, bool]] = []
        self._answers = {True: cached, False: online}
        monkeypatch.setattr("transformers.PretrainedConfig.get_config_dict", self._get_config_dict)

    def _get_config_dict(self, name: str, *, local_files_only: bool) -> tuple[Any, dict[str, Any]]:
        self.asked.append((name, local_files_only))
        answer = self._answers[local_files_only]
        if answer is None:
            raise OSError("We couldn't connect to the hub")
        return answer, {}


def test_a_hub_model_may_ask_the_hub(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(monkeypatch, cached=None, online={"max_position_embeddings": 4096})
    prepared = prepare("org/name", cache=model.parent)
    assert (prepared.source, prepared.context, prepared.offline) == ("org/name", 4096, False)
    assert "HF_HUB_OFFLINE" not in prepared.environ({})
    assert hub.asked == [("org/name", True), ("org/name", False)]
    assert prepared.command(8000, ())[-2:] == ["--max-model-len", "4096"]


def test_a_hub_model_that_was_downloaded_before_is_not_asked_for(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub(monkeypatch, cached={"max_position_embeddings": 4096}, online=None)
    assert prepare("org/name", cache=model.parent).context == 4096
    assert hub.asked == [("org/name", True)]


def test_without_the_hub_vllm_finds_the_context_and_prompts_are_not_split(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Hub(monkeypatch, cached=None, online=None)
    prepared = prepare("org/name", cache=model.parent)
    assert prepared.context is None
    command = prepared.command(8000, ())
    assert "--no-enable-chunked-prefill" in command
    assert "--max-model-len" not in command


def test_an_unknown_model_is_said_before_anything_is_made(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no model 'gpt-17'"):
        prepare("gpt-17", cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("config", "expected"),
    [({"text_config": {"max_position_embeddings": 7}}, 7), ({"model_type": "toy"}, None)],
)
def test_positions_may_be_nested_or_missing(config: Any, expected: int | None) -> None:
    assert positions(config) == expected


@pytest.mark.parametrize(
    ("config", "dtype", "expected"),
    [
        ({"dtype": "bfloat16"}, None, 8),
        ({"dtype": "bfloat16"}, "float32", 16),
        ({"torch_dtype": "float16"}, "float32", 16),
        ({"dtype": "float32"}, "float32", 8),
        ({"dtype": "bfloat16", "quantization_config": {}}, "float32", 8),
    ],
)
def test_weights_of_16_bits_take_twice_the_room_in_float32(
    tmp_path: Path, config: Any, dtype: str | None, expected: int
) -> None:
    (tmp_path / "model-00001.safetensors").write_bytes(bytes(5))
    (tmp_path / "model-00002.safetensors").write_bytes(bytes(3))
    (tmp_path / "config.json").write_bytes(bytes(9))
    assert loaded_bytes(tmp_path, config, dtype) == expected
