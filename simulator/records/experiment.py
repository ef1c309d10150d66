"""An experiment: what to run, with its defaults, and what in it contradicts itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError, WrapValidator, field_validator, model_validator

from hallulab.agents.models.adaptive import AUTO, MOST
from hallulab.agents.models.endpoints import BaseUrl, is_loopback, normalize_url
from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.agents.models.replicas import Limits
from hallulab.agents.models.wire_settings import Extra, Headers, Query, Thoughts
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.agents.users.personas import DEFAULT_MANNERS, JOINT, OWN, load_manners
from hallulab.chatbots.guarded.policy import KIND as GUARDED
from hallulab.chatbots.guarded.policy import find_wrapped_chatbot
from hallulab.scenarios.attacks.attack import Attack
from hallulab.scenarios.components import LeadsTo
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.packs.pack import Language
from hallulab.scenarios.transcript import Frozen, PressureKind, Seed
from hallulab.simulator.records.experiment_fields import MaybeUntilDecided, Price, require_decidable

ALL_CHATBOTS = ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")
"""The five chatbots of the HalluDetect paper, used by default."""

DEFAULT_DETECTORS = ("halludetect", "metarag")

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"

DEFAULT_SCENARIO = "consumer-grievance-india"


class Component(Frozen):
    """A chatbot or detector in an experiment: a registered kind with options, under a name.

    >>> Component.model_validate("editor")
    Component(name='editor', kind='editor', options={})
    """

    name: str = Field(pattern=NAME)
    """Its name in the report."""
    kind: str
    """The name it is registered under."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of that kind."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"name": value}
        if isinstance(value, Mapping) and "name" in value and "kind" not in value:
            kind = value["name"]
            # `my_detector:Mine` reports as `Mine`.
            name = kind.rpartition(":")[2] if isinstance(kind, str) else kind
            return {**value, "name": name, "kind": kind}
        return value


class ModelSettings(Frozen):
    """A model by name: where it is served."""

    model: Annotated[str, LeadsTo("served")]
    """Name it is served under."""
    base_url: Annotated[BaseUrl | None, LeadsTo("address")] = None
    """OpenAI-compatible endpoint; None: the experiment's own."""
    api_key_env: Annotated[str | None, LeadsTo("variable")] = None
    """Environment variable with the key; None: the experiment's, if its endpoint is asked; `none`: no key."""
    extra: Extra = Field(default_factory=dict)
    """Fields added to the body of every request, such as `reasoning_effort`; null leaves one out."""
    headers: Annotated[Headers, LeadsTo("header")] = Field(default_factory=dict)
    """Headers of every request; `${VARIABLE}` in a value stands for an environment variable."""
    query: Query = Field(default_factory=dict)
    """Parameters of the address of every request, such as `api-version`."""
    thoughts: Thoughts = 0
    """Tokens added to every limit, for a model that thinks before it answers."""


class UserSettings(Frozen):
    """Who plays the simulated users."""

    models: tuple[str, ...] = Field(min_length=1)
    """Names under `models`, or `default`, the experiment's own model. Each user, a persona with a seed, is
    played by one of them, drawn like its manner; one that stands twice is drawn twice as often."""


CONCURRENCY = 16
"""Requests under way at once where no number is given and none is found out."""


def _explain_concurrency(
    value: Any, validate: Callable[[Any], int | Literal["auto"]]
) -> int | Literal["auto"]:
    try:
        return validate(value)
    except ValidationError as error:
        raise ValueError(f"must be a number from 1 or `{AUTO}`, not {value!r}") from error


Concurrency = Annotated[Annotated[int, Field(ge=1)] | Literal["auto"], WrapValidator(_explain_concurrency)]
"""A number of requests, or `auto`: each endpoint has a limit of its own, which is found out."""


class Experiment(Frozen):
    """A whole experiment, resolved.

    >>> experiment = Experiment.model_validate({"chatbots": ["vanilla"], "limit": 2})
    >>> [bot.name for bot in experiment.chatbots], [one.name for one in experiment.detectors]
    (['vanilla'], ['halludetect', 'metarag'])
    """

    scenario: Annotated[str, LeadsTo("pack")] = DEFAULT_SCENARIO
    """Name of a built-in pack, or path of a pack's folder or YAML file. In an experiment file a relative path
    begins at the file's folder, otherwise at the working directory."""
    chatbots: tuple[Component, ...] = Field(
        default=tuple(Component(name=name, kind=name) for name in ALL_CHATBOTS), min_length=1
    )
    """The chatbots under test."""
    detectors: tuple[Component, ...] = tuple(Component(name=name, kind=name) for name in DEFAULT_DETECTORS)
    """The judges."""
    model: Annotated[str | None, LeadsTo("served")] = None
    """The model that plays every role without one of its own."""
    base_url: Annotated[BaseUrl | None, LeadsTo("address")] = None
    """Where it is served; None: hallulab serves it itself."""
    base_urls: Annotated[tuple[BaseUrl, ...], LeadsTo("address")] = ()
    """Several endpoints that serve it, in place of `base_url`, which is then the first of them."""
    endpoint_limits: Limits | None = None
    """Limits of each of these endpoints; None: `concurrency` alone is the limit."""
    api_key_env: Annotated[str | None, LeadsTo("variable")] = None
    """Environment variable with the endpoint's key; `none`: no key is sent."""
    extra: Extra = Field(default_factory=dict)
    """Fields added to the body of every request to it, such as `reasoning_effort`; null leaves one out."""
    headers: Annotated[Headers, LeadsTo("header")] = Field(default_factory=dict)
    """Headers of every request to it; `${VARIABLE}` in a value stands for an environment variable."""
    query: Query = Field(default_factory=dict)
    """Parameters of the address of every request to it, such as `api-version`."""
    thoughts: Thoughts = 0
    """Tokens added to every limit, for a model that thinks before it answers."""
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    """Further models, for `roles` and for detectors' options."""
    roles: dict[str, str] = Field(default_factory=dict)
    """Role (`user`, `chatbot` or `detector`) → name under `models`."""
    user: UserSettings | None = None
    """Several models that play users; None: the one of `roles`."""
    personas: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Personas to simulate, by identifier; None: all, in the pack's order."""
    limit: int | None = Field(default=None, ge=1)
    """At most this many personas."""
    repeats: int = Field(default=1, ge=1)
    """Conversations of each persona with each chatbot, with seeds seed, seed + 1, …
    (`hallulab.simulator.engine.plan.MOST_CONVERSATIONS`)."""
    count: int | None = Field(default=None, ge=1)
    """So many users are drawn, each a persona with a seed, instead of `repeats` of every persona
    (`hallulab.simulator.records.choices.enumerate_users`). Each talks with every chatbot."""
    seed: Seed = 0
    """Seed of the first repeat, or of the first users drawn."""
    manners: tuple[str, ...] = DEFAULT_MANNERS
    """How simulated users speak: each draws one of these, by persona and seed
    (`hallulab.agents.users.personas`). `terse+misspelling` is a mixture; empty, or `own`: as their personas
    do."""
    pressure: tuple[PressureKind, ...] = ()
    """How simulated users press chatbots to say something false (docs/attacks.md): each draws one of these
    kinds, by persona and seed, in place of a manner; empty: they do not."""
    language: Language | None = None
    """Language that simulated users write, such as `de` or `hi`; None: that of the pack, else English."""
    min_turns: int = Field(default=2, ge=1)
    """The simulated user does not decide to stop before this many replies."""
    max_turns: int = Field(default=8, ge=1)
    """The conversation is stopped after this many replies."""
    reply_tokens: int | None = Field(default=None, ge=1)
    """Limit of what the simulated user says, and of a reply of those of the five chatbots whose options have
    no `max_tokens`; None: theirs."""
    top_k: int = Field(default=4, ge=1)
    """Passages retrieved for a query (HalluDetect section 4.1)."""
    attack: Attack | None = None
    """Attack on documents and users; None: there is none."""
    embedding_model: Annotated[str, LeadsTo("embedding")] = "all-minilm-l6-v2"
    """Catalogue name, path or hub name of a sentence-transformers model."""
    concurrency: Concurrency = Field(default_factory=lambda known: choose_concurrency(known))
    """Model requests under way at once; `auto` by default where the default model is on another machine."""
    timeout: float = Field(default=300.0, gt=0, le=1e9)
    """Seconds of all tries of a model request and the pauses between them, at most."""
    decision_samples: int = Field(default=1, ge=1, le=100)
    """How often a model is asked for a decision if its endpoint gives no log-probabilities. Once: the printed
    word counts. Several times: its share counts."""
    until_decided: MaybeUntilDecided = None
    """Personas are drawn in batches until it is decided which chatbots differ
    (`hallulab.simulator.decide.run`); None: all are taken. `true` is all defaults."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Model, by the name it is served under → what a million of its tokens cost, in any one currency. The
    report and `--estimate` then show money; of a model without a price they say that it is unknown."""
    timed: bool = True
    """True if the seconds of calls are kept. Else they are 0, and runs of a script are equal to the byte."""
    _places: tuple[tuple[Component, str], ...] = PrivateAttr(default=())
    """Chatbots and detectors of an experiment file, and their places in it."""

    @model_validator(mode="before")
    @classmethod
    def _first_of_several(cls, values: Any) -> Any:
        """Several endpoints have the address of the first, wherever one address is asked for."""
        several = values.get("base_urls") if isinstance(values, dict) else None
        if not several or not isinstance(several, list | tuple):
            return values
        if values.get("base_url") not in (None, several[0]):
            raise ValueError("`base_url` and `base_urls` exclude each other; give one of them")
        return {**values, "base_url": several[0]}

    @field_validator("base_urls")
    @classmethod
    def _addresses_differ(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        usual = [normalize_url(url) for url in urls]
        twice = [url for number, url in enumerate(urls) if usual[number] in usual[:number]]
        if twice:
            raise ValueError(f"{twice[0]} stands twice")
        return urls

    @field_validator("chatbots", "detectors")
    @classmethod
    def _names_differ(cls, components: tuple[Component, ...]) -> tuple[Component, ...]:
        twice = sorted(_list_repeated(component.name for component in components))
        if twice:
            raise ValueError(f"the name {twice[0]!r} stands twice; give each its own `name`")
        return components

    @field_validator("personas")
    @classmethod
    def _personas_differ(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        twice = _list_repeated(names or ())
        if twice:
            raise ValueError(f"{twice[0]!r} stands twice; name each once, or raise `repeats`")
        return names

    @field_validator("manners")
    @classmethod
    def _manners_exist(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for part in (part for name in names for part in name.split(JOINT)):
            if part not in load_manners():
                near = suggest_name(part, load_manners())
                raise ValueError(f"there is no manner {part!r}{near}; there are {', '.join(load_manners())}")
        return () if set(names) == {OWN} else names

    @field_validator("roles")
    @classmethod
    def _roles_exist(cls, roles: dict[str, str]) -> dict[str, str]:
        known = ("user", "chatbot", "detector")
        unknown = sorted(roles.keys() - set(known))
        if unknown:
            near = suggest_name(unknown[0], known)
            raise ValueError(f"unknown role {unknown[0]!r}{near}; there are user, chatbot and detector")
        return roles

    def options_of(self, chatbot: Component) -> dict[str, Any]:
        """Return the options of a chatbot: its own, and the experiment's limit of a reply."""
        if self.reply_tokens is None:
            return chatbot.options
        if chatbot.kind == GUARDED:
            wrapped = find_wrapped_chatbot(chatbot.options)
            if wrapped is None or wrapped.kind not in ALL_CHATBOTS:
                return chatbot.options
            limited = {"max_tokens": self.reply_tokens, **wrapped.options}
            return {**chatbot.options, "chatbot": {"kind": wrapped.kind, "options": limited}}
        if chatbot.kind not in ALL_CHATBOTS:
            return chatbot.options
        return {"max_tokens": self.reply_tokens, **chatbot.options}

    def with_places_of(self, file: Experiment) -> Experiment:
        """Return the same experiment; errors about components that are in `file`, too, name that place."""
        return self.with_places(file._places)

    def with_places(self, places: tuple[tuple[Component, str], ...]) -> Experiment:
        """Return the same experiment; errors about these components name their places in a file."""
        copy = self.model_copy()
        copy._places = places
        return copy

    @contextmanager
    def placing_errors(self, component: Component) -> Iterator[None]:
        """Add the place in the experiment file to errors about a component."""
        place = next((place for known, place in self._places if known == component), None)
        try:
            yield
        except UsageError as error:
            if place is None:
                raise
            raise UsageError(f"{place}: {error}") from error

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        if self.endpoint_limits is not None and self.base_url is None:
            raise ValueError("`endpoint_limits` are those of `base_url` or `base_urls`; give one of these")
        if self.api_key_env is None and len({is_loopback(url) for url in self.base_urls}) > 1:
            raise ValueError(
                "some of `base_urls` are on this machine and need no key, others do; all get the same one, "
                "so name its variable in `api_key_env`"
            )
        for number, name in ((self.repeats, "repeats"), (self.count or 1, "users")):
            if self.seed + number > 2**63:
                raise ValueError(f"seed {self.seed} and {number} {name} lead beyond 64 bits")
        if self.count is not None and self.repeats > 1:
            raise ValueError("`count` and `repeats` exclude each other; give one of them")
        if self.until_decided is not None:
            require_decidable(len(self.chatbots), len(self.detectors), self.count)
        if self.min_turns > self.max_turns:
            raise ValueError(
                f"min_turns {self.min_turns} is more than max_turns {self.max_turns}; lower the one or raise "
                "the other"
            )
        if DEFAULT_MODEL in self.models:
            raise ValueError(
                f"`{DEFAULT_MODEL}` is the experiment's own model; give that as `model`, or call the one "
                "under `models` otherwise"
            )
        unknown = sorted(set(self.roles.values()) - self.models.keys())
        if unknown:
            near = suggest_name(unknown[0], self.models)
            raise ValueError(f"roles name the model {unknown[0]!r}{near}, which is not under `models`")
        return self

    @model_validator(mode="after")
    def _user_models_differ(self) -> Self:
        if self.user is None:
            return self
        if "user" in self.roles:
            raise ValueError("`user` and `roles.user` exclude each other; give one of them")
        unknown = sorted(set(self.user.models) - self.models.keys() - {DEFAULT_MODEL})
        if unknown:
            near = suggest_name(unknown[0], [*self.models, DEFAULT_MODEL])
            raise ValueError(f"`user.models` names {unknown[0]!r}{near}, which is not under `models`")
        served = [self.served_name(name) for name in dict.fromkeys(self.user.models)]
        twice = _list_repeated(served)
        if twice:
            raise ValueError(
                f"two of `user.models` are served as {twice[0]!r}, so that no conversation could say which "
                "one it had; leave one out"
            )
        return self

    @property
    def at_once(self) -> int:
        """Model requests under way at once at most."""
        return MOST if self.concurrency == AUTO else self.concurrency

    @property
    def measured_at_once(self) -> int:
        """Pieces of work at once where seconds are measured, which must not hold the wait for a limit."""
        return CONCURRENCY if self.concurrency == AUTO else self.concurrency

    @property
    def user_models(self) -> tuple[str, ...]:
        """The names of the models that play users: each under `models`, or `default`."""
        return self.user.models if self.user else (self.roles.get("user", DEFAULT_MODEL),)

    def served_name(self, name: str) -> str:
        """Return the name that a model of `models`, or the default one, is served under."""
        return self.models[name].model if name in self.models else self.model or DEFAULT_CPU_MODEL


def _list_repeated(names: Iterable[str]) -> list[str]:
    """Return the names that stand more than once, each once, in their order."""
    return [name for name, number in Counter(names).items() if number > 1]


def choose_concurrency(known: Mapping[str, Any]) -> int | Literal["auto"]:
    """Return the default of `concurrency` for the other fields of an experiment.

    It is found out if the default model is on another machine. A bot with a process for each conversation
    keeps the number, which says how many processes there are.
    """
    urls = (known.get("base_url"), *known.get("base_urls", ()))
    remote = any(url is not None and not is_loopback(url) for url in urls)
    own = any(_has_process(bot.kind, bot.options) for bot in known.get("chatbots", ()))
    return AUTO if remote and not own else CONCURRENCY


def _has_process(kind: str, options: Mapping[str, Any]) -> bool:
    if kind == GUARDED:
        wrapped = find_wrapped_chatbot(options)
        return wrapped is not None and _has_process(wrapped.kind, wrapped.options)
    return kind in ("callable", "autogen")
