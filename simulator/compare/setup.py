"""The setup that decides a run's results, in a form by which two runs can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field

from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.records.experiment import Component
from hallulab.simulator.records.experiment_json import SavedExperiment, Sources

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}")
"""Texts that may stand in a baseline as they are: no path, no address."""
_SECRET = re.compile(r"key|secret|password|authori[sz]ation|header|credential|env$", re.IGNORECASE)
"""Names of options that may contain a key: neither they nor their hash are kept."""
_PERSONA = "persona "
MOST_DOCUMENTS = 1000
"""Documents of larger packs are not listed, so that a baseline stays small."""
_SETTINGS = ("min_turns", "max_turns", "reply_tokens", "top_k", "embedding_model", "decision_samples")


class ComponentSetup(Frozen):
    """The setup of a chatbot or a detector."""

    kind: str = ""
    """The name it is registered under; empty: not known."""
    version: str = ""
    """Hash of its code, prompts, options and models; empty: not known."""
    options: dict[str, str] = Field(default_factory=dict)
    """Option → its value, or a hash of it where it is no number, word or short name."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Prompt file → its version, as far as the run says."""


class RunSetup(Frozen):
    """The setup of a run, without texts, paths and keys."""

    scenario: str
    """Name of the pack; several are joined by commas."""
    scenario_version: str = ""
    """Hash of its content without its personas; empty: not known."""
    documents: dict[str, str] = Field(default_factory=dict)
    """Document → hash of it; empty: not known."""
    personas: dict[str, str] = Field(default_factory=dict)
    """Persona → hash of its description, as far as the run says."""
    models: dict[str, str] = Field(default_factory=dict)
    """Role → served name of its model."""
    revision: str = ""
    """Revision of the served model; empty: not known."""
    user: ComponentSetup = ComponentSetup()
    """The simulated user, with the rules of a conversation."""
    chatbots: dict[str, ComponentSetup] = Field(default_factory=dict)
    detectors: dict[str, ComponentSetup] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    """Setting of conversations → its value."""
    seeds: str = ""
    """The seeds, as `0 to 4`."""
    packages: dict[str, str] = Field(default_factory=dict)


class SetupChange(Frozen):
    """Something that is not the same in both runs."""

    what: str
    """Such as `prompt`, `model`, `document`, `option`, `version`."""
    of: str
    """Its owner, such as `chatbot vanilla`; empty: the run."""
    name: str
    """Its name, such as that of a prompt file; empty: it has none."""
    before: str | None
    """Its value in the reference; None: it has none there."""
    after: str | None
    """Its value in the other run, likewise."""


def describe_setup(
    saved: SavedExperiment | None, scenarios: Iterable[str], judged: Mapping[str, str]
) -> RunSetup:
    """Return what decides a run's results.

    Args:
        saved: its experiment.json; None: it has none.
        judged: the detectors that judged, and their versions.
    """
    name = ", ".join(sorted(set(scenarios)))
    if saved is None:
        detectors = {one: ComponentSetup(version=version) for one, version in sorted(judged.items())}
        return RunSetup(scenario=name, detectors=detectors)
    experiment, identity = saved.experiment, saved.identity
    pack, _, version = str(identity.get("scenario", "")).rpartition(" ")
    made_by = {} if saved.made_by is None else saved.made_by.chatbots
    sources = saved.sources or Sources()
    asked = {judge: check.prompts for judge, check in saved.claim_checks.detectors.items()}
    return RunSetup(
        scenario=name or pack,
        scenario_version=version,
        documents=sources.documents if len(sources.documents) <= MOST_DOCUMENTS else {},
        personas={
            key.removeprefix(_PERSONA): str(value)
            for key, value in sorted(identity.items())
            if key.startswith(_PERSONA)
        },
        models={
            "user": ", ".join(dict.fromkeys(map(experiment.served_name, experiment.user_models))),
            **{
                role: experiment.served_name(experiment.roles.get(role, ""))
                for role in ("chatbot", "detector")
            },
        },
        revision=saved.model_revision or "",
        user=ComponentSetup(
            version="" if saved.made_by is None else saved.made_by.user, prompts=sources.user
        ),
        chatbots=_describe_components(experiment.chatbots, made_by, sources.chatbots),
        detectors=_describe_components(experiment.detectors, {**saved.detectors, **judged}, asked),
        settings={
            **{field: _render_setting(getattr(experiment, field)) for field in _SETTINGS},
            "manners": ", ".join(experiment.manners),
            **({"pressure": ", ".join(experiment.pressure)} if experiment.pressure else {}),
            "attack": str(identity.get("attack") or "none"),
        },
        seeds=_render_seeds(saved.seeds),
        packages={**saved.packages, **({"hallulab": saved.hallulab} if saved.hallulab else {})},
    )


def list_changes(before: RunSetup, after: RunSetup) -> tuple[SetupChange, ...]:
    """List what was changed between two runs: prompts, documents and models first, packages last."""
    return tuple(_iterate_changes(before, after))


def _iterate_changes(before: RunSetup, after: RunSetup) -> Iterator[SetupChange]:
    bots = [
        ("chatbot", name, before.chatbots, after.chatbots) for name in _join(before.chatbots, after.chatbots)
    ]
    judges = [
        ("detector", name, before.detectors, after.detectors)
        for name in _join(before.detectors, after.detectors)
    ]
    pairs = [
        *(
            (f"{role} {name}", one[name], other[name])
            for role, name, one, other in (*bots, *judges)
            if name in one and name in other
        ),
        ("simulated user", before.user, after.user),
    ]
    explained: set[str] = set()
    for change in _iterate_component_changes(pairs):
        explained.add(change.of)
        yield change
    documents = list(_compare("document", before.documents, after.documents))
    yield from documents
    if not documents:
        yield from _compare_one("scenario", before.scenario_version, after.scenario_version)
    shared = [name for name in before.personas if name in after.personas]
    old, new = ({name: run.personas[name] for name in shared} for run in (before, after))
    yield from _compare("persona", old, new)
    yield from _compare("model", before.models, after.models)
    yield from _compare_one("model revision", before.revision, after.revision)
    yield from _compare("setting", before.settings, after.settings)
    yield from _compare_one("seeds", before.seeds, after.seeds)
    for owner, one, other in pairs:
        for change in _compare_one("version", one.version, other.version, owner):
            if owner not in explained:
                yield change
    yield from _compare("package", before.packages, after.packages)


def _iterate_component_changes(
    pairs: Iterable[tuple[str, ComponentSetup, ComponentSetup]],
) -> Iterator[SetupChange]:
    """Yield what was changed in chatbots and detectors that both runs have, prompts first."""
    known = list(pairs)
    for owner, one, other in known:
        if not (one.kind and other.kind) or one.kind == other.kind:  # another kind has other files anyway
            yield from _compare("prompt", one.prompts, other.prompts, owner)
    for owner, one, other in known:
        yield from _compare_one("kind", one.kind, other.kind, owner)
        if one.kind and one.kind == other.kind:
            for name in sorted(one.options.keys() | other.options.keys()):
                before, after = one.options.get(name), other.options.get(name)
                if before != after:
                    yield SetupChange(what="option", of=owner, name=name, before=before, after=after)


def _compare(
    what: str, before: Mapping[str, str], after: Mapping[str, str], of: str = ""
) -> Iterator[SetupChange]:
    """Yield the entries that differ; none where one of the runs says nothing."""
    if before and after:
        for name in _join(before, after):
            if before.get(name) != after.get(name):
                yield SetupChange(what=what, of=of, name=name, before=before.get(name), after=after.get(name))


def _compare_one(what: str, before: str, after: str, of: str = "") -> Iterator[SetupChange]:
    """Yield a value that differs and is known of both."""
    if before and after and before != after:
        yield SetupChange(what=what, of=of, name="", before=before, after=after)


def _join(one: Iterable[str], other: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*one, *other)))


def _describe_components(
    components: Iterable[Component], versions: Mapping[str, str], prompts: Mapping[str, Mapping[str, str]]
) -> dict[str, ComponentSetup]:
    """Return the components by name, those of earlier starts of the run included."""
    known = {one.name: one for one in components}
    return {
        name: ComponentSetup(
            kind=known[name].kind if name in known else "",
            version=versions.get(name, ""),
            options=_describe_options(known[name].options) if name in known else {},
            prompts=dict(prompts.get(name, {})),
        )
        for name in _join(known, versions)
    }


def _describe_options(options: Mapping[str, Any], within: str = "") -> dict[str, str]:
    """Return options as texts, those of parts with their way: `chatbot.options.style`."""
    found: dict[str, str] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            if not _SECRET.search(name):
                found |= _describe_options(value, f"{within}{name}.")
        elif isinstance(value, bool | int | float) or value is None:
            found[f"{within}{name}"] = _render_setting(value)
        elif not _SECRET.search(name):
            plain = isinstance(value, str) and _PLAIN.fullmatch(value)
            found[f"{within}{name}"] = value if plain else f"sha256 {digest(value)[:12]}"
    return found


def _render_setting(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _render_seeds(seeds: Iterable[int]) -> str:
    """Return seeds as text, a run of them as `0 to 4`."""
    listed = sorted(set(seeds))
    if not listed:
        return ""
    if listed == list(range(listed[0], listed[-1] + 1)):
        return str(listed[0]) if len(listed) == 1 else f"{listed[0]} to {listed[-1]}"
    return ", ".join(map(str, listed))
