from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.serving.flags import (
    as_ranges,
    detect_machine_kind,
    has_compiler,
    has_fast_int8,
    is_without_bf16,
    list_gpu_cards,
    measure_available_memory,
    measure_total_memory,
)


@pytest.fixture
def no_lister(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def lister(folder: Path, script: str) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)


def test_without_driver_and_lister_it_is_a_cpu(no_lister: Path) -> None:
    assert detect_machine_kind(no_lister / "proc") == "cpu"


def test_a_card_known_to_the_driver_makes_it_a_gpu(no_lister: Path) -> None:
    (no_lister / "proc/driver/nvidia/gpus/0000:01:00.0").mkdir(parents=True)
    assert detect_machine_kind(no_lister / "proc") == "gpu"


def test_a_card_that_is_listed_makes_it_a_gpu(no_lister: Path) -> None:
    lister(no_lister, "echo 'GPU 0: NVIDIA H100'")
    assert detect_machine_kind(no_lister / "proc") == "gpu"


def test_a_lister_that_finds_no_driver_means_cpu(no_lister: Path) -> None:
    lister(no_lister, "echo 'NVIDIA-SMI has failed'; exit 9")
    assert detect_machine_kind(no_lister / "proc") == "cpu"


@pytest.mark.parametrize(
    ("flags", "fast"),
    [
        ("avx avx2", False),
        ("avx2 avx512f", False),
        ("avx2 avx_vnni", True),
        ("avx2 avx512f avx512_vnni", True),
        ("avx2 avx512f amx_int8", True),
    ],
)
def test_fast_int8_is_read_from_the_processors_flags(tmp_path: Path, flags: str, fast: bool) -> None:
    (tmp_path / "cpuinfo").write_text(f"flags\t\t: fpu {flags}\n")
    assert has_fast_int8(tmp_path) is fast


@pytest.mark.parametrize(
    ("flags", "lacking"),
    [
        ("avx2", True),
        ("avx2 avx512f", True),
        ("avx2 avx512_bf16", False),
        ("avx2 amx_bf16", False),
        ("", False),
    ],
)
def test_bf16_is_lacking_where_the_processor_would_emulate_it(
    tmp_path: Path, flags: str, lacking: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(f"flags\t\t: fpu {flags}\n")
    assert is_without_bf16(tmp_path) is lacking


def test_a_compiler_is_the_chosen_one_or_one_of_the_usual(no_lister: Path) -> None:
    assert not has_compiler({})
    (no_lister / "clang++").touch(0o755)
    assert has_compiler({})
    assert not has_compiler({"CXX": "mycxx"})


def test_a_system_that_does_not_say_has_no_fast_int8(tmp_path: Path) -> None:
    assert not has_fast_int8(tmp_path)


def test_free_memory_is_a_part_of_all_memory() -> None:
    assert 0 < measure_available_memory() < measure_total_memory()


def test_cores_as_ranges() -> None:
    assert as_ranges({0, 1}) == "0-1"
    assert as_ranges({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"


def test_cards_are_those_that_are_listed(no_lister: Path) -> None:
    assert list_gpu_cards({}) == []
    lister(no_lister, "echo 'GPU 0: NVIDIA H200'; echo '  MIG 1g'; echo 'GPU 1: NVIDIA H200'")
    assert list_gpu_cards({}) == ["0", "1"]


def test_cards_that_the_environment_hides_are_not_there() -> None:
    assert list_gpu_cards({"CUDA_VISIBLE_DEVICES": "3, 1"}) == ["3", "1"]
    assert list_gpu_cards({"CUDA_VISIBLE_DEVICES": ""}) == []
