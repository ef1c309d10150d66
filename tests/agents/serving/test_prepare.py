from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.machine.cache import StepProgress
from hallulab.agents.serving import prepare as preparation
from hallulab.agents.serving.prepare import (
    ServerEnvironment,
    loaded_bytes,
    positions,
    prepare,
    server_environment,
)
from hallulab.scenarios.errors import OperationalError, UsageError
from tests.wheels import make_wheel, only_wheels_from


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    make_wheel(folder, "toy", {"toy.py": b"print('toy')"})
    only_wheels_from(folder, monkeypatch)
    (tmp_path / "requirements.txt").write_text("# pinned\ntoy==1.0\n")
    return folder


def made(tmp_path: Path, news: list[StepProgress] | None = None) -> ServerEnvironment:
    heard: list[StepProgress] = [] if news is None else news
    return server_environment(
        kind="cpu", requirements=tmp_path / "requirements.txt", cache=tmp_path, on_progress=heard.append
    )


def test_it_is_made_once_apart_from_ours_and_reused(index: Path, tmp_path: Path) -> None:
    environment = made(tmp_path)
    run = [str(environment.python), "-c", "import toy, sys; print(sys.prefix)"]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["toy", str(environment.python.parent.parent)]
    shutil.rmtree(index)
    assert made(tmp_path) == environment


@pytest.mark.parametrize("uv", [False, True])
def test_progress_is_told_by_either_installer(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uv: bool
) -> None:
    program = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv and program is None:
        pytest.skip("there is no uv")
    monkeypatch.setattr(shutil, "which", lambda *_, **__: program if uv else None)
    news: list[StepProgress] = []
    made(tmp_path, news)
    # uv names only large packages while it downloads them.
    downloading = [] if uv else [("downloading the model server", 0, 1)]
    found = [(n.step, n.done, n.total) for n in news]
    assert found == [*downloading, ("unpacking the model server", 1, 1)]


def test_a_half_made_one_is_made_again_from_nothing(index: Path, tmp_path: Path) -> None:
    folder = made(tmp_path).python.parent.parent
    (folder / "complete").unlink()
    (folder / "rest").touch()
    made(tmp_path)
    assert (folder / "complete").exists()
    assert not (folder / "rest").exists()


def test_other_requirements_make_another_one(index: Path, tmp_path: Path) -> None:
    first = made(tmp_path)
    (tmp_path / "requirements.txt").write_text("toy\n")
    assert made(tmp_path).python != first.python


def test_a_package_that_pip_cannot_get_is_one_sentence_with_a_remedy(index: Path, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("missing==1.0\n")
    with pytest.raises(OperationalError) as error:
        made(tmp_path)
    assert str(error.value) == (
        "cannot make the model server's environment: No matching distribution found for missing==1.0. "
        "Check the network, the disk and pip's configuration, and start again."
    )


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
