"""The server's command line and environment, chosen for this machine; the user's flags come first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Literal

import psutil

from hallulab.scenarios.errors import UsageError

MachineKind = Literal["cpu", "gpu"]
"""Which of vLLM's two builds runs on a machine."""

GIB = 1 << 30


def detect_machine_kind(proc: Path = Path("/proc")) -> MachineKind:
    """Return `gpu` if the NVIDIA driver sees a card, by its own list or by nvidia-smi; else `cpu`."""
    cards = proc / "driver" / "nvidia" / "gpus"
    if cards.is_dir() and any(cards.iterdir()):
        return "gpu"
    return "gpu" if any(line.startswith("GPU ") for line in _listing()) else "cpu"


def list_gpu_cards(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the cards that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [card.strip() for card in visible.split(",") if card.strip()]
    return [str(number) for number in range(sum(line.startswith("GPU ") for line in _listing()))]


def _listing() -> list[str]:
    """Return the lines of `nvidia-smi -L`; none where it finds no driver."""
    lister = shutil.which("nvidia-smi")
    if lister is None:
        return []
    try:
        listing = subprocess.run([lister, "-L"], capture_output=True, text=True, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return []
    return listing.stdout.splitlines() if listing.returncode == 0 else []


def has_fast_int8(proc: Path = Path("/proc")) -> bool:
    """Return whether the processor has instructions for int8 products (VNNI or AMX).

    With AVX2 only, int8 is faster than float32 for long prompts (at 512 × 1536 × 8960 on 2 cores: int8 214,
    float32 123, bfloat16 19 billion operations a second). But it packs the weights at every step, which
    makes writing three times slower (docs/design/serving.md).
    """
    return bool(_read_processor_flags(proc) & {"avx512_vnni", "avx_vnni", "amx_int8"})


def is_without_bf16(proc: Path = Path("/proc")) -> bool:
    """Return whether the processor must emulate bfloat16, which is 7 times slower than float32 (AVX2)."""
    flags = _read_processor_flags(proc)
    return "avx2" in flags and not flags & {"avx512_bf16", "amx_bf16"}


def _read_processor_flags(proc: Path) -> Set[str]:
    """Return the system's description of the processor as words; empty if there is none."""
    try:
        return set((proc / "cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return set()


def has_compiler(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether there is a C++ compiler, which torch needs to compile a model on a CPU."""
    chosen = environ.get("CXX")
    return any(shutil.which(name) for name in ([chosen] if chosen else ["g++", "clang++"]))


def measure_available_memory() -> int:
    """Return the bytes of memory that can be used without swapping."""
    return psutil.virtual_memory().available


def measure_total_memory() -> int:
    """Return the bytes of memory of the machine."""
    return psutil.virtual_memory().total


def count_usable_cores() -> Set[int]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def as_ranges(cores: Set[int]) -> str:
    """Format {0, 1, 2, 5} as `0-2,5`, as vLLM reads core lists."""
    ranges: list[list[int]] = []
    for core in sorted(cores):
        if ranges and core == ranges[-1][-1] + 1:
            ranges[-1].append(core)
        else:
            ranges.append([core])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in ranges)


MAX_CONTEXT = 8192
"""Tokens of context to serve at most; conversations with evidence stay far below."""

MAX_KV_GIB = 4
"""GiB of cached attention on a CPU at most: enough for 16 requests of a few thousand tokens with shared
prefixes."""

RESERVED_GIB = 3
"""GiB of memory left for the server's code, activations and other programs."""

FLAGS_OF_OURS = {
    "--model": "name the model as the command's argument",
    "--served-model-name": "the model is served under the name it was asked for by",
    "--host": "the server listens on loopback only",
    "--port": "use --port before the `--`",
}
"""Flags that the user cannot pass through → why."""


def choose_flags(
    serving: Sequence[str],
    context: int | None,
    eager: bool,
    cpu: bool,
    dtype: str | None,
    extra_flags: Sequence[str],
) -> list[str]:
    """Return the flags of vLLM for this machine and model, with the user's.

    Args:
        serving: flags of a server, which a batch has not.
        context: positions of the model; None: unknown, vLLM finds out.
        eager: do not compile the model.
        cpu: whether it runs on a CPU.
        dtype: number format of the activations; None: the model's.
        extra_flags: flags of vLLM that the user passed through; each replaces ours of the same name.

    Raises:
        UsageError: a passed-through flag is in `FLAGS_OF_OURS`, or begins like one.
    """
    given = {_flag_name(flag) for flag in extra_flags if flag.startswith("--")}
    beginnings = given - {"--"}  # vLLM takes the beginning of a flag for the flag
    for flag, reason in FLAGS_OF_OURS.items():
        if any(map(flag.startswith, beginnings)):
            raise UsageError(f"the flag {flag} cannot be passed through to vLLM: {reason}.")
    ours: dict[str, str | None] = {
        # JSON output can end in endless white space, which the white-space rule prevents. vLLM accepts
        # that rule only with a named backend.
        "--structured-outputs-config": json.dumps({"backend": "xgrammar", "disable_any_whitespace": True}),
        "--enable-prefix-caching": None,
        "--enable-prompt-tokens-details": None,
        **dict.fromkeys(serving),
    }
    if eager:
        ours["--enforce-eager"] = None
    if dtype is not None:
        ours["--dtype"] = dtype
    if cpu:
        # The prefix cache shares whole blocks. The CPU's default block of 128 tokens is longer than the
        # varying end of a one-token question.
        ours["--block-size"] = "32"
        # vLLM 0.32 dies on a CPU ("CPU Generator does not use offset") when it splits the prompt of a request
        # that is sampled with a seed. Whole prompts need a batch that holds the longest one. Without
        # --max-num-batched-tokens vLLM makes the batch as long as the context.
        ours["--no-enable-chunked-prefill"] = None
    if context is not None:
        ours["--max-model-len"] = str(min(context, MAX_CONTEXT))
    chosen: list[str] = []
    for flag, value in ours.items():
        if _flag_name(flag) not in given:
            chosen += [flag] if value is None else [flag, value]
    return [*chosen, *extra_flags]


def choose_cpu_variables(cores: Set[int], available: int, weights: int) -> dict[str, str]:
    """Return vLLM's variables for a CPU: by default it leaves a core idle and guesses its memory.

    Args:
        cores: numbers of the cores to use.
        available: bytes of memory that are free.
        weights: bytes of the model's weights.
    """
    spare = (available - weights) // GIB - RESERVED_GIB
    return {
        "VLLM_CPU_KVCACHE_SPACE": str(max(1, min(MAX_KV_GIB, spare))),
        "VLLM_CPU_OMP_THREADS_BIND": as_ranges(cores),
        # vLLM 0.32 saves an ahead-of-time compiled model that it cannot load on a CPU ('function' has no
        # attribute 'finalize_loading'), so each start would compile again. torch's own cache works.
        "VLLM_USE_AOT_COMPILE": "0",
    }


def choose_server_variables(
    environ: Mapping[str, str], defaults: Mapping[str, str], cache: Path, *, offline: bool
) -> dict[str, str]:
    """Return the server's environment variables: ours without those for our Python, over the defaults.

    Args:
        defaults: variables for this machine, such as `choose_cpu_variables`.
        cache: our cache folder; vLLM and torch keep compiled code there.
        offline: whether the model is local, so the hub must not be asked.
    """
    kept = {name: value for name, value in environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    compiled = {"VLLM_CACHE_ROOT": str(cache / "vllm"), "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}
    wanted = {**compiled, **defaults, **kept}
    wanted |= {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
    return wanted | ({"HF_HUB_OFFLINE": "1"} if offline else {})


def _flag_name(flag: str) -> str:
    """Return the name of the setting of a flag.

    `--max_model_len=4096` sets `--max-model-len`, `--structured-outputs-config.backend` sets
    `--structured-outputs-config`, and `--no-enable-prefix-caching` sets `--enable-prefix-caching`.
    """
    name = "--" + flag[2:].partition("=")[0].partition(".")[0].replace("_", "-")
    return "--" + name.removeprefix("--no-") if name.startswith("--no-") else name
