from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.serving.flags import (
    GIB,
    as_ranges,
    choose_cpu_variables,
    choose_server_variables,
    detect_machine_kind,
    has_compiler,
    has_fast_int8,
    is_without_bf16,
    list_gpu_cards,
    measure_available_memory,
    measure_total_memory,
)
from hallulab.agents.serving.prepare import PreparedModel
from hallulab.scenarios.errors import UsageError

START = [
    "py", "-P", "-m", "vllm.entrypoints.openai.api_server", "--model", "m",
    "--served-model-name", "toy", "--host", "127.0.0.1", "--port", "8000",
]  # fmt: skip

OURS = [
    "--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}',
    "--enable-prefix-caching", "--enable-prompt-tokens-details", "--disable-uvicorn-access-log",
]  # fmt: skip


def line(
    *extra: str, context: int | None = None, eager: bool = False, cpu: bool = False, dtype: str | None = None
) -> list[str]:
    model = PreparedModel(
        name="toy",
        names=("toy",),
        source="m",
        revision=None,
        context=context,
        eager=eager,
        cpu=cpu,
        dtype=dtype,
        python=Path("py"),
        variables={},
        offline=True,
        cache=Path("cache"),
    )
    return model.command(8000, extra)


def test_without_flags_of_the_user_ours_stand() -> None:
    assert line() == START + OURS


def test_context_is_what_the_model_has_but_not_more_than_8192() -> None:
    assert line(context=2048) == [*START, *OURS, "--max-model-len", "2048"]
    assert line(context=32768) == [*START, *OURS, "--max-model-len", "8192"]


CPU = ["--block-size", "32", "--no-enable-chunked-prefill"]


def test_on_a_cpu_the_prefix_cache_shares_small_blocks_and_prompts_are_not_split() -> None:
    assert line(cpu=True) == [*START, *OURS, *CPU]
    assert line(cpu=True, context=2048) == [*START, *OURS, *CPU, "--max-model-len", "2048"]


@pytest.mark.parametrize("length", ["1024", "16384", "16k", "auto"])
def test_a_batch_is_never_shorter_than_the_context_that_the_user_wants(length: str) -> None:
    """vLLM makes it as long as needed, unless it is told how long."""
    user = ("--max-model-len", length)
    assert line(*user, cpu=True, context=32768) == [*START, *OURS, *CPU, *user]


@pytest.mark.parametrize("flag", ["--enable-chunked-prefill", "--no-enable-chunked-prefill"])
def test_the_user_says_whether_prompts_are_split(flag: str) -> None:
    assert line(flag, cpu=True) == [*START, *OURS, "--block-size", "32", flag]


def test_the_number_format_is_ours_unless_the_user_names_one() -> None:
    assert line(dtype="float32") == [*START, *OURS, "--dtype", "float32"]
    assert line("--dtype", "half", dtype="float32") == [*START, *OURS, "--dtype", "half"]


def test_without_a_compiler_the_model_is_not_compiled_unless_the_user_wants_it() -> None:
    assert line(eager=True) == [*START, *OURS, "--enforce-eager"]
    assert line("--no-enforce-eager", eager=True) == [*START, *OURS, "--no-enforce-eager"]


@pytest.mark.parametrize("spelling", [("--max-model-len", "100"), ("--max_model_len=100",)])
def test_a_flag_of_the_user_replaces_ours(spelling: tuple[str, ...]) -> None:
    assert line(*spelling, context=2048) == [*START, *OURS, *spelling]


def test_switching_off_and_a_single_field_count_as_the_flag() -> None:
    given = ("--no-enable-prefix-caching", "--structured-outputs-config.backend", "guidance")
    assert line(*given) == [*START, *OURS[3:], *given]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("--port", r"--port cannot be passed through to vLLM: use --port before"),
        ("--hos=0.0.0.0", "the flag --host cannot be passed through"),
        ("--po", "the flag --port cannot be passed through"),
        ("--served_model", "the flag --served-model-name cannot be passed through"),
    ],
)
def test_flags_that_name_the_endpoint_cannot_be_passed_through_even_in_short(given: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        line(given)


@pytest.mark.parametrize(
    ("available", "weights", "space"),
    [(24 * GIB, 2 * GIB, "4"), (8 * GIB, 2 * GIB, "3"), (4 * GIB, 3 * GIB, "1")],
)
def test_attention_cache_takes_what_is_spare_between_1_and_4_gib(
    available: int, weights: int, space: str
) -> None:
    assert choose_cpu_variables({0, 1}, available, weights) == {
        "VLLM_CPU_KVCACHE_SPACE": space,
        "VLLM_CPU_OMP_THREADS_BIND": "0-1",
        "VLLM_USE_AOT_COMPILE": "0",
    }


def test_the_users_settings_win_over_the_machines_and_our_python_path_stays_out() -> None:
    environ = {"VLLM_CPU_KVCACHE_SPACE": "9", "PYTHONPATH": "/x", "HOME": "/h"}
    assert choose_server_variables(environ, {"VLLM_CPU_KVCACHE_SPACE": "4"}, Path("/c"), offline=False) == {
        "HOME": "/h",
        "VLLM_CACHE_ROOT": "/c/vllm",
        "TORCHINDUCTOR_CACHE_DIR": "/c/inductor",
        "VLLM_CPU_KVCACHE_SPACE": "9",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONUNBUFFERED": "1",
    }


def test_only_a_local_model_keeps_the_hub_out() -> None:
    assert choose_server_variables({}, {}, Path("/c"), offline=True)["HF_HUB_OFFLINE"] == "1"


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


@pytest.mark.parametrize(
    ("script", "kind"),
    [("echo 'GPU 0: NVIDIA H100'", "gpu"), ("echo 'NVIDIA-SMI has failed'; exit 9", "cpu")],
)
def test_a_card_that_is_listed_makes_it_a_gpu(no_lister: Path, script: str, kind: str) -> None:
    lister(no_lister, script)
    assert detect_machine_kind(no_lister / "proc") == kind


@pytest.mark.parametrize(
    ("flags", "fast_int8", "without_bf16"),
    [
        ("avx avx2", False, True),
        ("avx2 avx512f", False, True),
        ("avx2 avx_vnni", True, True),
        ("avx2 avx512f avx512_vnni", True, True),
        ("avx2 avx512f amx_int8", True, True),
        ("avx2 avx512_bf16", False, False),
        ("avx2 amx_bf16", False, False),
        ("", False, False),
    ],
)
def test_what_a_processor_is_fast_at_is_read_from_its_flags(
    tmp_path: Path, flags: str, fast_int8: bool, without_bf16: bool
) -> None:
    assert not has_fast_int8(tmp_path)  # a system that does not say
    (tmp_path / "cpuinfo").write_text(f"flags\t\t: fpu {flags}\n")
    assert (has_fast_int8(tmp_path), is_without_bf16(tmp_path)) == (fast_int8, without_bf16)


def test_a_compiler_is_the_chosen_one_or_one_of_the_usual(no_lister: Path) -> None:
    assert not has_compiler({})
    (no_lister / "clang++").touch(0o755)
    assert has_compiler({})
    assert not has_compiler({"CXX": "mycxx"})


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
