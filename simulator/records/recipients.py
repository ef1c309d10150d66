"""Who gets texts and keys of an experiment, and whether the user has said so.

A run folder may be a stranger's. So an address that only the folder names gets neither a key nor, beyond this
machine, any text: both address and variable are the user's word, on the command line, in an experiment file
that lies in no run folder, or in a confirmation that names both.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from hallulab.agents.models.endpoints import Endpoint, is_loopback, normalize_url
from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.agents.models.wire_settings import VARIABLE, WireSettings, collect_settings
from hallulab.chatbots.guarded.policy import KIND as GUARDED
from hallulab.chatbots.http_bot import KIND as HTTP
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.records.agreement import require_agreement
from hallulab.simulator.records.experiment import Component, Experiment

VIEW_FILE = "view-experiment.yaml"
"""The experiment file that the viewer writes into a run folder, for people to read."""

_OF_A_RUN = (
    VIEW_FILE,
    "experiment.json",
    "turns.jsonl",
    "stress.json",
    *(f"{journal}{part}.jsonl" for journal in ("conversations", "verdicts") for part in ("", "-00")),
)
"""Names of which a run folder has one."""

Inner = TypeVar("Inner")

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_BY_FILE = (
    "If you trust it, name both in an experiment file of your own, in no run folder, and give that with -c."
)


@dataclass(frozen=True)
class Recipient:
    """An address that is asked, and the variable whose value it gets."""

    address: str
    """The address in its usual form; of other people's components, what they are."""
    variable: str | None
    """Environment variable with the key that it gets; None: it gets none."""
    request: str = ""
    """Digest of what it is sent, where that is up to whoever names it; empty: a model is asked as usual."""

    @property
    def gets_a_key(self) -> bool:
        """True if it would get a key."""
        return self.variable is not None and bool(os.environ.get(self.variable, "").strip())

    def describe(self) -> str:
        """Say who gets what, in a line."""
        key = "" if self.variable is None else f" and the key in {self.variable}"
        what = "requests of any form" if self.request else "texts"
        return render_one_line(f"{self.address} gets {what}{key}")


def collect_endpoints(experiment: Experiment) -> dict[str, Endpoint]:
    """Return the endpoints of an experiment's models by name. One served here has no address yet."""
    url, default = experiment.base_url or "", collect_settings(experiment)
    endpoints = {DEFAULT_MODEL: Endpoint(experiment.model or "", url, experiment.api_key_env, default)}
    for name, model in experiment.models.items():
        key, settings = model.api_key_env, collect_settings(model)
        if not model.base_url:
            key = key or experiment.api_key_env
            shared = {"headers": default.headers | settings.headers, "query": default.query | settings.query}
            settings = settings.model_copy(update=shared)
        endpoints[name] = Endpoint(model.model, model.base_url or url, key, settings)
    return endpoints


def list_recipients(experiment: Experiment) -> tuple[Recipient, ...]:
    """Return whom an experiment, or a component of it, asks, each once. See `list_asked`, `list_foreign`."""
    return tuple(dict.fromkeys((*list_asked(experiment), *list_foreign(experiment))))


def list_asked(experiment: Experiment, chatbots: bool = True) -> tuple[Recipient, ...]:
    """Return the endpoints that an experiment asks. A model that is served here has none.

    Args:
        experiment: its models, several endpoints of one, and chatbots behind an endpoint.
        chatbots: whether chatbots answer; else only detectors judge.
    """
    endpoints = list(collect_endpoints(experiment).values())
    for bot in experiment.chatbots if chatbots else ():
        endpoints += list_bot_endpoints(bot)
    several = [_normalize(url) for url in experiment.base_urls]
    over_http = [one for bot in experiment.chatbots for one in _list_http_bots(bot)] if chatbots else []
    asked = (
        Recipient(address, variable)
        for endpoint in endpoints
        if endpoint.base_url
        for address in _list_addresses(_normalize(endpoint.base_url), several)
        for variable in endpoint.variables or (None,)
    )
    return tuple(dict.fromkeys((*asked, *over_http)))


def list_foreign(experiment: Experiment, chatbots: bool = True) -> tuple[Recipient, ...]:
    """Return whom components of other people may ask by themselves: nobody knows what their options mean.

    Each text with `://` counts as an address, and each word that names a variable of the environment as that.
    Arguments as of `list_asked`.
    """
    bots = experiment.chatbots if chatbots else ()
    of_bots = (one for bot in bots for one in _list_foreign("chatbot", bot))
    of_judges = (one for judge in experiment.detectors for one in _list_foreign("detector", judge))
    return tuple(dict.fromkeys((*of_bots, *of_judges)))


def list_unnamed(recipients: Sequence[Recipient], named: Collection[Recipient]) -> tuple[Recipient, ...]:
    """Return the recipients that nobody may ask as they are: the user has not named them, and it matters.

    It does where a key would be sent; beyond this machine, where texts would; and on it, where whoever names
    a server also says what is sent: it may be one that obeys whoever is here.
    """
    own, known = frozenset(named), {one.address for one in named}
    return tuple(
        one
        for one in recipients
        if one not in own
        and (one.gets_a_key or one.request or not (one.address in known or is_loopback(one.address)))
    )


@dataclass(frozen=True)
class UserWords:
    """The user's own words about an experiment out of a run folder."""

    given: Experiment
    """Fields from flags, and from an experiment file that lies in no run folder."""
    source: Path
    """The file that says the rest."""

    def require(self, experiment: Experiment, recipients: Sequence[Recipient]) -> None:
        """Check that the user has named them, or agrees.

        Call this before any request, and before anything is written.

        Raises:
            UsageError: the user has not named all, and nobody can be asked or says no.
        """
        unnamed = list_unnamed(recipients, list_recipients(self.given))
        remedy = _suggest_flags(experiment, unnamed) or _BY_FILE
        require_agreement(self.source, [one.describe() for one in unnamed], remedy)


def find_run_folder(file: Path) -> Path | None:
    """Return the run folder that a file lies in, at any depth and also by a link; None: in none.

    Files written by the viewer count as a run folder's, wherever they are.
    """
    places = (Path(os.path.abspath(file)), Path(os.path.realpath(file)))
    for place in places:
        if place.name == VIEW_FILE:
            return place.parent
        for folder in place.parents:
            if any(os.path.lexists(folder / name) for name in _OF_A_RUN):
                return folder
    return None


def _list_addresses(address: str, several: Sequence[str]) -> list[str]:
    """Return the addresses that requests to one may go to: those of the first of several go to all."""
    shared = several and f"{address}/".startswith(f"{several[0]}/")
    return [address, *several] if shared else [address]


def _normalize(address: str) -> str:
    try:
        return normalize_url(address)
    except httpx2.InvalidURL:
        return address


def _unfold(what: str, kind: str, options: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield what a component is, its kind and its options; and those of the parts of a guarded chatbot."""
    yield what, kind, options
    if kind == GUARDED:
        for name in ("chatbot", "detector"):
            part = options.get(name)
            if isinstance(part, Mapping):
                inner = part.get("options")
                yield from _unfold(name, str(part.get("kind")), inner if isinstance(inner, Mapping) else {})


def list_bot_endpoints(bot: Component) -> Iterator[Endpoint]:
    """Yield the endpoints that the options of a chatbot name, also of the parts of a guarded one."""
    for _, _, options in _unfold("chatbot", bot.kind, bot.options):
        address, variable, headers = (options.get(name) for name in ("base_url", "api_key_env", "headers"))
        if isinstance(address, str):
            sent = (
                {str(name): str(value) for name, value in headers.items()}
                if isinstance(headers, Mapping)
                else {}
            )
            session = options.get("session")
            if isinstance(session, Mapping) and isinstance(session.get("header"), str):
                sent[session["header"]] = ""  # the conversation's id
            query = options.get("query")
            settings = WireSettings.model_construct(
                headers=sent, query=query if isinstance(query, dict) else {}
            )
            yield Endpoint("", address, variable if isinstance(variable, str) else None, settings)


def _list_http_bots(bot: Component) -> Iterator[Recipient]:
    """Yield whom a chatbot over HTTP asks: once for each variable in its headers, which may hold a key."""
    for _, kind, options in _unfold("chatbot", bot.kind, bot.options):
        address, headers = options.get("url"), options.get("headers")
        if kind == HTTP and isinstance(address, str):
            texts = iterate_inner(headers, str)
            variables = [name for text in texts for name in VARIABLE.findall(text)]
            request = digest(options)
            yield from (Recipient(_normalize(address), variable, request) for variable in variables or [None])


def _list_foreign(what: str, component: Component) -> Iterator[Recipient]:
    from hallulab.chatbots.registry import CHATBOTS  # all detectors and chatbots come with them
    from hallulab.detectors.registry import DETECTORS

    for part, kind, options in _unfold(what, component.kind, component.options):
        if kind in (DETECTORS if part == "detector" else CHATBOTS):
            continue
        variables: list[str | None] = [
            name for name in sorted(set(_WORD.findall(json.dumps(options)))) if name in os.environ
        ]
        addresses = [_normalize(text) for text in iterate_inner(options, str) if "://" in text]
        for address in addresses or ([f"the {part} {kind}"] if variables else []):
            for variable in variables or [None]:
                yield Recipient(address, variable)


def iterate_inner(value: Any, kind: type[Inner]) -> Iterator[Inner]:
    """Yield what is of a kind in a value, in mappings (without keys), lists and tuples at any depth."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from iterate_inner(inner, kind)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from iterate_inner(inner, kind)


def _suggest_flags(experiment: Experiment, unnamed: Sequence[Recipient]) -> str:
    """Say which flags name these recipients; empty: flags cannot."""
    urls = experiment.base_urls or ((experiment.base_url,) if experiment.base_url else ())
    endpoint = collect_endpoints(experiment)[DEFAULT_MODEL]
    named = {Recipient(_normalize(url), endpoint.variable) for url in urls}
    if not named.issuperset(unnamed):
        return ""
    flags = [f"--base-url {shlex.quote(_normalize(url))}" for url in urls]
    if endpoint.variable is not None:
        flags.append(f"--api-key-env {shlex.quote(endpoint.variable)}")
    return f"If you trust it, give {' '.join(flags)}."
