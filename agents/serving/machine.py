"""Find out about this machine: GPU, fast int8, cores, free memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Literal

import psutil

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
    makes writing three times slower (docs/serving.md).
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
