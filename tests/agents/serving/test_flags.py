from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.serving.flags import GIB, choose_cpu_variables, choose_server_variables
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
    *extra: str,
    context: int | None = None,
    eager: bool = False,
    cpu: bool = False,
    dtype: str | None = None,
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


def test_without_a_compiler_the_model_is_not_compiled() -> None:
    assert line(eager=True) == [*START, *OURS, "--enforce-eager"]


def test_the_user_can_have_it_compiled() -> None:
    assert line("--no-enforce-eager", eager=True) == [*START, *OURS, "--no-enforce-eager"]


@pytest.mark.parametrize("spelling", [("--max-model-len", "100"), ("--max_model_len=100",)])
def test_a_flag_of_the_user_replaces_ours(spelling: tuple[str, ...]) -> None:
    assert line(*spelling, context=2048) == [*START, *OURS, *spelling]


def test_switching_off_and_a_single_field_count_as_the_flag() -> None:
    assert line("--no-enable-prefix-caching", "--structured-outputs-config.backend", "guidance") == [
        *START,
        "--enable-prompt-tokens-details",
        "--disable-uvicorn-access-log",
        "--no-enable-prefix-caching",
        "--structured-outputs-config.backend",
        "guidance",
    ]


def test_flags_that_name_the_endpoint_cannot_be_passed_through() -> None:
    with pytest.raises(UsageError, match=r"--port cannot be passed through to vLLM: use --port before"):
        line("--port", "1")


@pytest.mark.parametrize(
    ("given", "meant"),
    [("--hos=0.0.0.0", "--host"), ("--po", "--port"), ("--served_model", "--served-model-name")],
)
def test_nor_can_their_short_forms_which_vllm_takes_for_them(given: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"the flag {meant} cannot be passed through"):
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
