"""Which model it is that an endpoint serves under a name: what numbers are tuned for, and results made with.

Anybody may serve anything under any name. vLLM says in its list of models what it serves (`root`: a folder,
or a name on the hub), and folders that `hallulab serve` makes are named by the digest of their weights
(`agents.serving.conversion.served_folder`). So a model of the catalogue is known by its `root`, whatever it
is served as. Where the endpoint tells no `root`, as of a recording that has none, the name has to do.

Files of tuned numbers name their models as the catalogue does.
"""

from __future__ import annotations

from pathlib import PurePath

from agents.models.client import ModelClient
from agents.models.model import ModelPool
from agents.serving.catalogue import CATALOGUE, GGUF_NAME, CatalogueModel
from agents.serving.conversion import DIGEST_DIGITS


def catalogue_name(client: ModelClient) -> str | None:
    """The catalogue's name of a served model: by its `root`, or by its name where that is all there is.

    None: it is none of the catalogue's, so nothing is tuned for it.
    """
    return known_as(client.endpoint.model, client.root)


def known_as(name: str, root: str | None) -> str | None:
    """The catalogue's name of what is served under a name, or None.

    Args:
        name: what the endpoint calls the model.
        root: what the endpoint says that it serves; None: it does not say.
    """
    if root is None:
        return name if name in CATALOGUE else None
    return next((model.name for model in CATALOGUE.values() if _is_root_of(model, root)), None)


def identity_of(client: ModelClient) -> str:
    """What stands for a served model in the identity of a result: its name in the catalogue, else `root ` and
    its root, else the name that it is served under."""
    return catalogue_name(client) or (f"root {client.root}" if client.root else client.endpoint.model)


def identities(pool: ModelPool) -> dict[str, str]:
    """`identity_of` for every model of a pool, by its name there."""
    return {name: identity_of(pool.get(name)) for name in pool.names}


def doubts(pool: ModelPool) -> list[str]:
    """What a user should know of models that bear a name of the catalogue: a sentence for each that is
    another one, or that is taken for it by its name alone. A replay knows names alone, and says no more."""
    said = []
    for name in pool.names:
        client = pool.get(name)
        served = client.endpoint.model
        if served not in CATALOGUE:
            continue
        where = client.endpoint.base_url
        if client.root is None and not pool.recording.replaying:
            said.append(
                f"{where} does not say what it serves as {served!r}: by its name alone it is taken for the "
                "model of the catalogue, and the numbers tuned for that hold."
            )
        elif client.root is not None and catalogue_name(client) != served:
            said.append(
                f"{where} serves {client.root} as {served!r}, which is not the model of the catalogue: the "
                "numbers tuned for that do not hold."
            )
    return said


def _is_root_of(model: CatalogueModel, root: str) -> bool:
    if model.wheels is None:
        return root == model.hub
    return PurePath(root).name.endswith(f"-{model.wheels.digests[GGUF_NAME][:DIGEST_DIGITS]}")
