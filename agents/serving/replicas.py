"""Several servers of one model on this machine, each with its part of the cards, or of cores and memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from hallulab.agents.serving.flags import RESERVED_GIB, choose_cpu_variables
from hallulab.agents.serving.machine import (
    GIB,
    as_ranges,
    count_usable_cores,
    list_gpu_cards,
    measure_available_memory,
)
from hallulab.agents.serving.preparation import PreparedModel
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import choose_noun, format_count

_PARALLEL = {
    "--tensor-parallel-size": "-tp",
    "--pipeline-parallel-size": "-pp",
}
"""Flags of vLLM whose product is the number of cards of a server, and their short forms."""

_LEAST_GIB = RESERVED_GIB + 1
"""GiB of memory that a server on a CPU needs besides its weights."""


def parts(
    prepared: PreparedModel,
    number: int,
    extra_flags: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> list[PreparedModel]:
    """Return the model as each of so many servers starts it; a single one has the whole machine.

    Args:
        prepared: the model.
        number: how many servers, at least 1.
        extra_flags: flags passed through to vLLM, which may give a server several cards.
        environ: this process's environment, which may hide cards.

    Raises:
        UsageError: the machine is too small for so many; says what is there.
    """
    if number == 1:
        return [prepared]
    updates = _on_cpu(prepared, number) if prepared.cpu else _on_cards(number, extra_flags, environ)
    return [prepared.model_copy(update=update) for update in updates]


def _on_cpu(prepared: PreparedModel, number: int) -> list[dict[str, Any]]:
    cores, free = sorted(count_usable_cores()), measure_available_memory()
    needed = prepared.weights + _LEAST_GIB * GIB
    _require(number, len(cores), "core", 1)
    if number > free // needed:
        raise UsageError(
            f"--replicas {number}: each server needs {-(-needed // GIB)} GiB of memory, and "
            f"{free // GIB} are free. Lower --replicas, or free memory."
        )
    shares = [
        set(cores[place * len(cores) // number : (place + 1) * len(cores) // number])
        for place in range(number)
    ]
    return [
        {
            "variables": choose_cpu_variables(share, free // number, prepared.weights),
            "part": {"VLLM_CPU_OMP_THREADS_BIND": as_ranges(share)},
        }
        for share in shares
    ]


def _on_cards(number: int, extra_flags: Sequence[str], environ: Mapping[str, str]) -> list[dict[str, Any]]:
    cards = list_gpu_cards(environ)
    each = 1
    for name, short in _PARALLEL.items():
        each *= _given(extra_flags, name, short)
    _require(number, len(cards), "card", each)
    return [
        {"part": {"CUDA_VISIBLE_DEVICES": ",".join(cards[place * each : (place + 1) * each])}}
        for place in range(number)
    ]


def _require(number: int, there: int, what: str, each: int) -> None:
    if number * each > there:
        raise UsageError(
            f"--replicas {number}: each server needs {format_count(each, what)}, and there "
            f"{choose_noun(there, 'is', 'are')} {there} for all. Lower --replicas."
        )


def _given(flags: Sequence[str], name: str, short: str) -> int:
    """Return the number that a flag gives, in any of its spellings; 1 without it."""
    found = 1
    for place, flag in enumerate(flags):
        spelt, _, value = flag.partition("=")
        if spelt.replace("_", "-") in (name, short):
            text = value or (flags[place + 1] if place + 1 < len(flags) else "")
            if not text.isdecimal() or int(text) < 1:
                raise UsageError(f"{flag}: give the number of cards, such as {name}=2.")
            found = int(text)
    return found
