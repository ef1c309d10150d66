"""Several servers share a machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hallulab.agents.serving import command as replicas
from hallulab.agents.serving.command import parts
from hallulab.agents.serving.flags import GIB
from hallulab.agents.serving.prepare import PreparedModel
from hallulab.scenarios.errors import UsageError
from tests.agents.serving.fake_server import ANSWERS, fake_prepared
from tests.kit.refusals import refusal


@pytest.fixture
def on_gpu(tmp_path: Path) -> PreparedModel:
    return fake_prepared(tmp_path, ANSWERS)


@pytest.fixture
def on_cpu(on_gpu: PreparedModel, monkeypatch: pytest.MonkeyPatch) -> PreparedModel:
    """A model of 2 GiB on five cores with 14 GiB of free memory."""
    monkeypatch.setattr(replicas, "count_usable_cores", lambda: {0, 1, 2, 3, 6})
    monkeypatch.setattr(replicas, "measure_available_memory", lambda: 14 * GIB)
    return on_gpu.model_copy(update={"cpu": True, "weights": 2 * GIB})


def test_a_single_server_has_the_whole_machine(on_cpu: PreparedModel) -> None:
    assert parts(on_cpu, 1) == [on_cpu]


def test_the_users_attention_cache_stays(on_cpu: PreparedModel) -> None:
    found = [one.environ({"VLLM_CPU_KVCACHE_SPACE": "1"}) for one in parts(on_cpu, 2)]
    assert [one["VLLM_CPU_KVCACHE_SPACE"] for one in found] == ["1", "1"]


def test_on_a_cpu_each_has_its_cores_and_its_share_of_memory(on_cpu: PreparedModel) -> None:
    found = [one.environ({"VLLM_CPU_OMP_THREADS_BIND": "0-6"}) for one in parts(on_cpu, 2)]
    assert [one["VLLM_CPU_OMP_THREADS_BIND"] for one in found] == ["0-1", "2-3,6"]
    assert [one["VLLM_CPU_KVCACHE_SPACE"] for one in found] == ["2", "2"]


@pytest.mark.parametrize(
    ("flags", "number", "cards"),
    [
        ((), 2, ["4", "5"]),
        (("--tensor-parallel-size", "2"), 2, ["4,5", "6,7"]),
        (("--tensor_parallel_size=2",), 2, ["4,5", "6,7"]),
        (("-tp", "1", "-pp=2"), 2, ["4,5", "6,7"]),
    ],
)
def test_on_gpus_each_has_as_many_cards_as_its_flags_say(
    on_gpu: PreparedModel, flags: Sequence[str], number: int, cards: list[str]
) -> None:
    visible = {"CUDA_VISIBLE_DEVICES": "4,5,6,7"}
    found = parts(on_gpu, number, flags, visible)
    assert [one.environ(dict(visible))["CUDA_VISIBLE_DEVICES"] for one in found] == cards


@pytest.mark.parametrize(
    ("model", "number", "flags", "said"),
    [
        ("on_cpu", 3, (), "6 GiB of memory, and 14 are free. Lower --replicas, or free memory."),
        ("on_cpu", 6, (), "1 core, and there are 5 for all. Lower --replicas."),
        ("on_gpu", 2, ("-tp", "2"), "2 cards, and there are 3 for all. Lower --replicas."),
    ],
    ids=["memory", "cores", "cards"],
)
def test_more_servers_than_the_machine_has_room_for_are_refused(
    model: str, number: int, flags: Sequence[str], said: str, request: pytest.FixtureRequest
) -> None:
    prepared = request.getfixturevalue(model)
    complaint = refusal(parts, prepared, number, flags, {"CUDA_VISIBLE_DEVICES": "0,1,2"})
    assert complaint == f"--replicas {number}: each server needs {said}"


def test_a_flag_without_a_number_is_refused(on_gpu: PreparedModel) -> None:
    for flags in (("--tensor-parallel-size",), ("--tensor-parallel-size", "9" * 5_000)):
        with pytest.raises(UsageError, match=r"--tensor-parallel-size: give the number of cards"):
            parts(on_gpu, 2, flags, {"CUDA_VISIBLE_DEVICES": "0,1"})
