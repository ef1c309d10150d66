"""Which model an endpoint serves, the numbers tuned for that model, and which models check claims.

Tuned numbers and results belong to a model, not to a name: anybody can serve any model under any name. vLLM
lists for each model its `root`: a folder or a hub name. Folders made by `hallulab serve` end with the digest
of their weights (`hallulab.agents.serving.prepare.locate_served_folder`). So `root` identifies a model of the
catalogue, whatever its served name. Where the endpoint or the recording gives none, the served name decides.

Tuned numbers stand in a package's `tuned.yaml`: number's name → model's name in the catalogue → value. The
report marks chatbots that are judged by their own verifier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING, Self

import yaml
from pydantic import Field, TypeAdapter, field_validator

from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import Prompt
from hallulab.agents.serving.catalogue import CATALOGUE, GGUF_NAME
from hallulab.agents.serving.prepare import DIGEST_DIGITS
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Frozen

if TYPE_CHECKING:
    from hallulab.agents.models.client import ModelClient


def find_catalogue_name(client: ModelClient) -> str | None:
    """Return the catalogue's name of a served model, by its `root` or else by its served name.

    None: the model is not in the catalogue, so nothing is tuned for it.
    """
    return find_known_name(client.endpoint.model, client.root)


def find_known_name(name: str, root: str | None) -> str | None:
    """Return the catalogue's name of a model, or None if it is not in the catalogue.

    Args:
        name: the endpoint's name of the model.
        root: the endpoint's `root` of the model; None: it gives none.
    """
    if root is None:
        return name if name in CATALOGUE else None
    for model in CATALOGUE.values():
        if model.wheels is None:
            is_root = root == model.hub
        else:
            # The end of the folder's name that `locate_served_folder` gives.
            is_root = PurePath(root).name.endswith(f"-{model.wheels.digests[GGUF_NAME][:DIGEST_DIGITS]}")
        if is_root:
            return model.name
    return None


def is_small_model(client: ModelClient) -> bool:
    """Return whether a served model is one that the catalogue calls small; of other models nobody knows."""
    name = find_catalogue_name(client)
    return name is not None and CATALOGUE[name].small


def identify_model(client: ModelClient) -> str:
    """Return what stands for a served model in a result's identity.

    It is its name in the catalogue, else `root ` with its root, else its served name; and the hash of what
    the user adds to requests, which changes answers.
    """
    name = find_catalogue_name(client) or (f"root {client.root}" if client.root else client.endpoint.model)
    extra = client.endpoint.settings.extra
    return f"{name} with {digest(extra)[:12]}" if extra else name


def identify_models(pool: ModelPool) -> dict[str, str]:
    """Return `identify_model` every model of a pool, by its name in the pool."""
    return {name: identify_model(pool.get(name)) for name in pool.names}


def list_model_warnings(pool: ModelPool) -> list[str]:
    """Return a warning sentence for each model whose catalogue name is wrong or cannot be checked.

    A replay without `root` gives no warning: its recording holds only names.
    """
    said = []
    for name in pool.names:
        client = pool.get(name)
        served = client.endpoint.model
        if served not in CATALOGUE:
            continue
        where = client.endpoint.base_url or "the recorded server"
        if client.root is None and not pool.recording.replaying:
            said.append(
                f"{where} does not say which model it serves as {served!r}. By its name it is taken for "
                "the catalogue's model, and numbers tuned for that model are used."
            )
        elif client.root is not None and find_catalogue_name(client) != served:
            said.append(
                f"{where} serves {client.root} as {served!r}, which is not the catalogue's model. Numbers "
                "tuned for that model are not used."
            )
    return said


EVEN_ODDS = 0.5
"""The untuned threshold of a one-token answer: it decides as the printed word does."""


def read_tuned_number(package: str, name: str, model: str | None) -> float | None:
    """Return a tuned number from a package's `tuned.yaml`; None if it was not tuned for the model.

    Args:
        package: the import package with the file.
        model: the model's name in the catalogue; None: it is not there.
    """
    return _read_numbers(package).get(name, {}).get(model or "")


@cache
def _read_numbers(package: str) -> Mapping[str, Mapping[str, float]]:
    text = files(package).joinpath("tuned.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, float]]).validate_python(yaml.safe_load(text))


class ClaimCheck(Frozen):
    """How a component checks claims against evidence with models.

    Chatbots that verify their claims, and detectors that ask a served model, have it as the attribute
    `claim_check`.
    """

    models: tuple[str, ...] = ()
    """Served names of the models that are asked whether a claim holds; empty: none."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """The prompt files with which they are asked: name → version (`Prompt.version`)."""
    methods: tuple[str, ...] = ()
    """Detectors that judge for it, by class: a detector names itself, a guarded chatbot its guard."""

    @field_validator("methods")
    @classmethod
    def _renamed(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        """Run folders made before our packages were part of `hallulab` have their names without it."""
        return tuple(f"hallulab.{name}" if name.startswith("detectors.") else name for name in methods)

    @classmethod
    def by(cls, models: Iterable[str], prompts: Iterable[Prompt]) -> Self:
        """Make one from models' served names and prompt files."""
        return cls(
            models=tuple(dict.fromkeys(models)), prompts={prompt.name: prompt.version for prompt in prompts}
        )

    def joined(self, other: ClaimCheck) -> ClaimCheck:
        """Return what both ask, and by which detectors."""
        taken = {f"{name} of the chatbot": version for name, version in other.prompts.items()}
        return ClaimCheck(
            models=tuple(dict.fromkeys((*self.models, *other.models))),
            prompts={**self.prompts, **taken},
            methods=tuple(dict.fromkeys((*self.methods, *other.methods))),
        )


def read_claim_check(owner: str, component: object) -> ClaimCheck | None:
    """Return the `claim_check` of a chatbot or detector; None if it has none.

    Args:
            owner: the component's name in the error: `chatbot mine`.

    Raises:
        UsageError: its attribute `claim_check` has another type.
    """
    told = getattr(component, "claim_check", None)
    if told is None or isinstance(told, ClaimCheck):
        return told
    raise UsageError(
        f"{owner}: its `claim_check` is {told!r}, no hallulab.ClaimCheck. Correct it or leave it out."
    )


class ClaimChecks(Frozen):
    """How the chatbots and detectors of a run check claims: `claim_checks` in `experiment.json`."""

    chatbots: dict[str, ClaimCheck | None] = Field(default_factory=dict)
    """By name; None: the chatbot does not say."""
    detectors: dict[str, ClaimCheck] = Field(default_factory=dict)
