"""Which model an endpoint serves under a name. Tuned numbers and results belong to a model, not to a name.

Anybody can serve any model under any name. vLLM lists for each model its `root`: a folder or a hub name.
Folders made by `hallulab serve` end with the digest of their weights
(`hallulab.agents.serving.conversion.locate_served_folder`). So `root` identifies a model of the catalogue,
whatever its served name. If the endpoint or the recording gives no `root`, the served name decides.

Files of tuned numbers use the catalogue's names.
"""

from __future__ import annotations

from pathlib import PurePath

from hallulab.agents.models.client import ModelClient
from hallulab.agents.models.model import ModelPool
from hallulab.agents.serving.catalogue import CATALOGUE, GGUF_NAME, CatalogueModel
from hallulab.agents.serving.conversion import DIGEST_DIGITS


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
    return next((model.name for model in CATALOGUE.values() if _is_root_of(model, root)), None)


def identify_model(client: ModelClient) -> str:
    """Return what stands for a served model in a result's identity.

    That is its name in the catalogue, else `root ` with its root, else its served name.
    """
    return find_catalogue_name(client) or (f"root {client.root}" if client.root else client.endpoint.model)


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


def _is_root_of(model: CatalogueModel, root: str) -> bool:
    if model.wheels is None:
        return root == model.hub
    return PurePath(root).name.endswith(f"-{model.wheels.digests[GGUF_NAME][:DIGEST_DIGITS]}")
