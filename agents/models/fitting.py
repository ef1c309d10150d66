"""Fit the requests for one model to its endpoint: what it needs, what it lacks, what the user adds.

Findings hold for all further requests, and are recorded: a replay knows them, too.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from openai import APIStatusError

from hallulab.agents.models.abilities import Ability, Capabilities, LackingAbility
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.needs import ALL_NEEDS, Body, Diagnosis, Need, apply_needs, change_limit
from hallulab.agents.models.recording import Recording
from hallulab.agents.models.wire_settings import WireSettings
from hallulab.scenarios.files.json_text import digest

_log = logging.getLogger(__name__)

FOUND = "found"
"""Kind of the recording entries that say what an endpoint needs, by `identify_asked` and the need."""


class Fitting:
    """Makes the requests for one model as its endpoint takes them.

    Args:
        recording: keeps what is found out, and says what was.
        identity: the model's `identify_asked`.
        thorough: whether refusals are looked into that name no argument.
    """

    def __init__(
        self, settings: WireSettings, recording: Recording, identity: str, thorough: bool = True
    ) -> None:
        self.abilities = Capabilities()
        """Abilities of the endpoint; until it is asked, all are assumed."""
        self.model: str | None = None
        """The endpoint's own name of the model; None: the one that it is asked by."""
        self._settings = settings
        self._recording = recording
        self._identity = identity
        self._needs: tuple[Need, ...] = ()
        self._diagnosis = Diagnosis(thorough)
        self._lost: list[Ability] = []
        """Abilities that a replayed endpoint lacked from some time on."""
        for name, need in ALL_NEEDS.items():
            if recording.get(FOUND, f"{identity} {name}") is None:
                continue
            if need.ability is not None and recording.replaying:
                # When it was lost is not known; requests that lack an answer show it.
                self._lost.append(need.ability)
            else:
                self._take(need)

    @property
    def state(self) -> object:
        """State by which requests are made; it is equal until something is found out."""
        return self._needs, self.abilities

    def build(self, body: Body, more: Sequence[Need] = ()) -> dict[str, Any]:
        """Return the body to send.

        Args:
            body: the request as recordings know it.
            more: needs that are tried, besides those that are known.
        """
        seedless = [ALL_NEEDS["no_seed"]] if self.abilities.seed == "refused" else []
        sent = apply_needs(body, [*self._needs, *seedless, *more])
        if "response_format" in sent:
            sent["response_format"] = make_strict(sent["response_format"])
        if self._settings.thoughts:
            sent = change_limit(sent, lambda limit: limit + self._settings.thoughts)
        if self.model is not None:
            sent["model"] = self.model
        sent |= self._settings.extra
        return {name: value for name, value in sent.items() if value is not None}

    def expects(self, error: BaseException, body: Body) -> bool:
        """Return whether an error is a refusal that may mean something for further requests."""
        return isinstance(error, APIStatusError) and self._diagnosis.expects(error, self.build(body))

    async def explain(
        self,
        error: APIStatusError,
        body: Body,
        send: Callable[[Sequence[Need]], Awaitable[object]],
        where: str | None,
    ) -> bool:
        """Find out what a refusal means for further requests, and keep it.

        Args:
            send: sends it once, changed by needs.
            where: the model and its address, to tell the user what changes; None: nothing was asked before.

        Returns:
            True if there was a finding, so that the request must be sent again.
        """
        found = await self._diagnosis.explain(error, self.build(body), send)
        for need in found:
            self._take(need)
            if where is not None:
                _log.warning("From here on, %s gets %s, because it refuses other requests.", where, need.told)
            if where is not None or need.ability is None:
                self._recording.put(FOUND, f"{self._identity} {need.name}", True)
        return bool(found)

    def lose(self, ability: Ability, where: str) -> None:
        """Note that an endpoint left out of an answer what an ability gives, and keep it.

        A replay has the further answers as they were, so there it changes nothing.

        Args:
            where: the model and its address, to tell the user what changes.
        """
        if self._recording.replaying or not getattr(self.abilities, ability):
            return
        need = next(one for one in ALL_NEEDS.values() if one.ability == ability)
        self._take(need)
        _log.warning("From here on, %s gets %s, because an answer came without them.", where, need.told)
        self._recording.put(FOUND, f"{self._identity} {need.name}", True)

    def require(self, body: Body, reason: str, status: int) -> None:
        """Raise LackingAbility if a refused request needs an ability that the endpoint lacks."""
        for need in ALL_NEEDS.values():
            if need.ability is not None and not getattr(self.abilities, need.ability) and need.concerns(body):
                raise LackingAbility(reason, status, need.ability)

    def require_recorded(self, body: Body, where: str) -> None:
        """Raise LackingAbility if an endpoint that is replayed lost an ability that a request needs."""
        for need in ALL_NEEDS.values():
            if need.ability in self._lost and need.ability is not None and need.concerns(body):
                raise LackingAbility(f"{where} got {need.told} from some time on.", 400, need.ability)

    def tell_needs(self, seed: bool) -> tuple[str, ...]:
        """Return what the endpoint needs, in words, whichever was found out first.

        Args:
            seed: whether a refused seed is told, too; else the abilities tell it.
        """
        return tuple(sorted(need.told for need in self._needs if seed or need.name != "no_seed"))

    def _take(self, need: Need) -> None:
        if need.ability is not None:
            self.abilities = self.abilities.model_copy(update={need.ability: False})
        else:
            self._needs = (*self._needs, need)
        if need.name == "no_seed":
            self.abilities = self.abilities.model_copy(update={"seed": "refused"})


def identify_asked(endpoint: Endpoint, scope: Sequence[str]) -> str:
    """Return what stands for a model in recordings, besides its requests: its name, and what is added.

    Args:
        endpoint: where it is served.
        scope: as of `hallulab.agents.models.client.ModelClient`.
    """
    added = [digest([endpoint.settings.extra])[:12]] if endpoint.settings.extra else []
    return " ".join([*scope, endpoint.model, *added])


def make_strict(response_format: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `response_format` whose schema keeps the rules of strict endpoints.

    Each object has `additionalProperties: false`, and all its properties are required.
    """
    described = response_format.get("json_schema")
    if not isinstance(described, Mapping) or not described.get("strict"):
        return dict(response_format)
    return {**response_format, "json_schema": {**described, "schema": _close(described["schema"])}}


def _close(schema: Any) -> Any:
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_close(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {name: _close(part) for name, part in schema.items()}
    if closed.get("type") == "object" and isinstance(closed.get("properties"), Mapping):
        closed.setdefault("additionalProperties", False)
        closed["required"] = list(closed["properties"])
    return closed
