"""Special needs of endpoints: a table, and how a need is found out from a refusal.

Endpoints call themselves OpenAI-compatible and refuse arguments: some take `max_completion_tokens` only,
no temperature, no `name`, no `seed`, or no system role. A need changes what is sent, never the
question: recordings and shared answers know the request as it was before.

A refusal names the argument in words, or not. The arguments in question are left out one after another until
the endpoint answers; then those that were left out for nothing come back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai import APIConnectionError, APIStatusError

from hallulab.agents.models.abilities import Ability
from hallulab.agents.models.answers import LIMITS, ModelError, read_limit
from hallulab.agents.models.receiving import read_object

Body = Mapping[str, Any]

LEAST_LIMIT = 16
"""Tokens: some endpoints take no smaller limit."""

LEAST_TEMPERATURE = 0.01
"""Sent for 0 where that is refused: nearly the same."""

OTHER_SEED = 1_000_003
"""Sent for the seed 0 where that is refused."""

MOST_IN_VAIN = 3
"""Refusals without a reason that are looked into in vain, for one model. Later ones are taken as they are."""


REPEATS = 2
"""Times that a refusal must come again, in the same words, where they name no argument."""

MOST_SIGNS = 12
"""Different refusals that are looked into in vain, for one model: some repeat a number of the request."""


@dataclass(frozen=True)
class Need:
    """A need of an endpoint."""

    name: str
    told: str
    words: re.Pattern[str]
    """Finds the argument in a refusal."""
    concerns: Callable[[Body], bool]
    """Returns whether a request has what is refused."""
    change: Callable[[Body], dict[str, Any]]
    """Returns the request without it."""
    ability: Ability | None = None
    """The ability that the endpoint lacks, if the question is another one without it."""
    is_guessed: bool = True
    """True if it is tried where a refusal names no argument, too."""


def change_limit(body: Body, change: Callable[[int], int]) -> dict[str, Any]:
    """Return a request whose limit of tokens, if it has one, is changed."""
    return {
        name: change(value) if name in LIMITS and isinstance(value, int) else value
        for name, value in body.items()
    }


def _leave_out(*names: str) -> Callable[[Body], dict[str, Any]]:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def _has(*names: str) -> Callable[[Body], bool]:
    return lambda body: any(name in body for name in names)


def _change_messages(body: Body, change: Callable[[Body], dict[str, Any]]) -> dict[str, Any]:
    return {**body, "messages": [change(message) for message in body["messages"]]}


def _fold_system(body: Body) -> dict[str, Any]:
    """Put the texts of the system before the first message of the user."""
    texts = [message["content"] for message in body["messages"] if message["role"] == "system"]
    others = [dict(message) for message in body["messages"] if message["role"] != "system"]
    first = next((one for one in others if one["role"] == "user"), None)
    if first is None:
        return {**body, "messages": [{"role": "user", "content": "\n\n".join(texts)}, *others]}
    first["content"] = "\n\n".join([*texts, first["content"]])
    return {**body, "messages": others}


def _put_into_parts(message: Body) -> dict[str, Any]:
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": parts}


def _find(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_TOO_LOW = (
    r"positive|greater|larger|at least|minimum|below|>|≥|too (?:small|low)|non-?zero|\bzero\b|less than"
    r"|higher|was reached|[(\]]0(?:\.0+)?, ?|\b0(?:\.0+)? ?<|(?:not|n't) be 0\b|\[0\.01\b"
)

_TOO_HIGH = r"too (?:large|high|long|many)|exceed|at most|less than|maximum|range|up to|\d >|<=|≤|context"
"""Words of a limit that is too high, which is none the less known by its name."""

NEEDS: tuple[Need, ...] = (
    Need(
        "log_probabilities",
        "no requests for log-probabilities",
        _find(r"log.?prob"),
        _has("logprobs"),
        _leave_out("logprobs", "top_logprobs"),
        "log_probabilities",
    ),
    Need(
        "json_schema",
        "no JSON schemas",
        _find(r"response.?format|schema|structured|guided|grammar"),
        _has("response_format"),
        _leave_out("response_format"),
        "json_schema",
    ),
    Need("no_seed", "no seed", _find(r"seed(?!-)"), _has("seed"), _leave_out("seed")),
    Need(
        "no_names",
        "no names of messages",
        _find(r"\bname\b"),
        lambda body: any("name" in message for message in body["messages"]),
        lambda body: _change_messages(body, _leave_out("name")),
    ),
    Need(
        "no_temperature",
        "no temperature",
        _find(r"temperature|greedy|sampling"),
        _has("temperature"),
        _leave_out("temperature"),
    ),
    Need(
        "least_limit",
        f"limits of at least {LEAST_LIMIT} tokens",
        _find(rf"tokens.*(?:{_TOO_LOW})|(?:{_TOO_LOW}).*tokens"),
        lambda body: (read_limit(body) or LEAST_LIMIT) < LEAST_LIMIT,
        lambda body: change_limit(body, lambda limit: max(limit, LEAST_LIMIT)),
    ),
    Need(
        "completion_limit",
        "max_completion_tokens in place of max_tokens",
        _find(
            rf"(?:use|instead).{{0,80}}max_completion_tokens|\A(?!.*(?:{_TOO_HIGH})).*max_(?:completion_)?tokens"
        ),
        _has("max_tokens"),
        lambda body: {LIMITS[1] if name == LIMITS[0] else name: value for name, value in body.items()},
    ),
    Need(
        "no_system",
        "the system's text in the user's message",
        _find(
            r"system|\broles?\b[^.]{0,80}(?:alternate|supported|allowed|user|assistant)"
            r"|(?:user|assistant)[^.]{0,40}\brole|start with a user message|invalid role|developer"
        ),
        lambda body: any(message["role"] == "system" for message in body["messages"]),
        _fold_system,
    ),
    Need("no_stop", "no stop", _find(r"\bstop\b"), _has("stop"), _leave_out("stop")),
    Need(
        "parts",
        "content as parts",
        _find(r"content.*(?:list|array|sequence|parts?\b)|(?:list|array|parts?) .*content|expected a seq"),
        lambda body: any(isinstance(message.get("content"), str) for message in body["messages"]),
        lambda body: _change_messages(body, _put_into_parts),
        is_guessed=False,
    ),
    Need(
        "stream",
        "requests for streams",
        _find(r"\bstream"),
        lambda body: not body.get("stream"),
        lambda body: {**body, "stream": True, "stream_options": {"include_usage": True}},
        is_guessed=False,
    ),
)
"""All needs, the likelier ones first. They are applied in this order."""

_MILDER = (
    Need(
        "seed_above_zero",
        f"the seed {OTHER_SEED} in place of 0",
        _find(rf"seed.*(?:{_TOO_LOW})|(?:{_TOO_LOW}).*seed"),
        lambda body: body.get("seed") == 0,
        lambda body: {**body, "seed": OTHER_SEED},
    ),
    Need(
        "temperature_above_zero",
        f"the temperature {LEAST_TEMPERATURE} in place of 0",
        _find(rf"(?:temperature|greedy).*(?:{_TOO_LOW}|top_p)|(?:{_TOO_LOW}).*temperature"),
        lambda body: body.get("temperature") == 0,
        lambda body: {**body, "temperature": LEAST_TEMPERATURE},
    ),
)
"""Needs that keep more than those of `NEEDS` about the same argument: where words name both, these are tried
first, and without words not at all."""

ALL_NEEDS: Mapping[str, Need] = {need.name: need for need in (*_MILDER, *NEEDS)}
"""By name, in the order in which they are applied."""

_NOT_ABOUT_ARGUMENTS = frozenset({401, 402, 407, 408, 409, 410, 413, 425, 429})
"""Client errors that no other argument changes."""

_ABOUT_ELSE = _find(
    r"context.{0,20}(?:length|window|size)|too long|too large|exceed|api.?key|authent|unauthor|permission"
    r"|quota|billing|credit|rate.?limit|capacity|polic(?:y|ies)|safety|moderat|not found|not exist|guardrail"
    r"|inappropriate|sensitive|inspection|content.?filter|high risk|violat|flagged|blocked|敏感|违规"
    rf"|no such model|unknown model|loading|busy|overloaded|max_(?:completion_)?tokens.*(?:{_TOO_HIGH})"
)
"""Subjects of refusals that name no argument and are about none."""

_FAILED_GENERATION = _find(r"failed_generation|json_validate_failed")
"""In refusals of Groq that quote what the model wrote: another answer may follow the schema."""

_EVERYDAY = frozenset({"no_system", "stream", "no_names", "no_stop"})
"""Needs whose words a refusal about something else may well have: "our safety system"."""


def is_about_request(status: int) -> bool:
    """Return whether a refusal with this status may be about an argument of the request.

    Servers fail at what they do not know (500), and what stands before them then calls them broken (502).
    """
    return status in (500, 501, 502) or (400 <= status < 500 and status not in _NOT_ABOUT_ARGUMENTS)


class Diagnosis:
    """Finds out which needs explain the refusals of one model's endpoint.

    Args:
        thorough: whether refusals are looked into that name no argument.
    """

    def __init__(self, thorough: bool = True) -> None:
        self._in_vain: set[tuple[int, str, tuple[str, ...]]] = set()
        """Refusals that nothing explained: status, words without numbers, what they could have been about."""
        self._unnamed_in_vain = 0 if thorough else MOST_IN_VAIN

    def expects(self, error: APIStatusError, body: Body) -> bool:
        """Return whether there is something to try: the same refusal was not looked into in vain."""
        if not is_about_request(error.status_code) or self._sign(error, body) in self._in_vain:
            return False
        if len(self._in_vain) >= MOST_SIGNS or _FAILED_GENERATION.search(_read_words(error)):
            return False
        return self._suspect(body, [], _read_words(error), error.status_code) is not None

    async def explain(
        self, error: APIStatusError, body: Body, send: Callable[[Sequence[Need]], Awaitable[object]]
    ) -> tuple[Need, ...]:
        """Find out what must be changed so that a refused request is answered.

        Args:
            send: sends the request once, changed by needs.

        Returns:
            The needs; none: nothing helps, or the endpoint broke off.
        """
        sign, unnamed = self._sign(error, body), _find_named(body, [], _read_words(error)) is None
        found = await self._search(error, body, send)
        if found == ():
            self._in_vain.add(sign)
            self._unnamed_in_vain += unnamed
        return found or ()

    async def _search(
        self, error: APIStatusError, body: Body, send: Callable[[Sequence[Need]], Awaitable[object]]
    ) -> tuple[Need, ...] | None:
        """Return the needs; none: nothing helps; None: the endpoint broke off, a later refusal may tell."""
        tried: list[Need] = []
        sure: set[str] = set()
        words, status = _read_words(error), error.status_code
        while (need := self._suspect(body, tried, words, status)) is not None:
            tried.append(need)
            refusal = await _refused(send, tried)
            if refusal is None:
                return await _leave_needed(send, tried, sure, (status, words))
            if not isinstance(refusal, APIStatusError) or not is_about_request(refusal.status_code):
                return None
            now = _read_words(refusal)
            if _names(need, status, words) and not need.words.search(now):
                sure.add(need.name)
            words, status = now, refusal.status_code
        return ()

    def _suspect(self, body: Body, tried: Sequence[Need], words: str, status: int) -> Need | None:
        """Return what to change next; None: nothing is left."""
        changed = apply_needs(body, tried)
        named = _find_named(changed, tried, words)
        if named is not None or any(need.words.search(words) for need in tried):
            return named
        if "tools" in body or _ABOUT_ELSE.search(words) or self._unnamed_in_vain >= MOST_IN_VAIN:
            return None
        left = [need for need in NEEDS if need not in tried and need.concerns(changed) and need.is_guessed]
        # Other statuses say that an argument is refused of these alone, and usually something else.
        return next((need for need in left if need.ability or status in (400, 422)), None)

    def _sign(self, error: APIStatusError, body: Body) -> tuple[int, str, tuple[str, ...]]:
        concerned = tuple(need.name for need in NEEDS if need.concerns(body))
        return error.status_code, re.sub(r"\d+", "", _read_words(error))[:300], concerned


def apply_needs(body: Body, needs: Sequence[Need]) -> dict[str, Any]:
    """Return a request as an endpoint with these needs takes it."""
    changed = dict(body)
    for need in sorted(needs, key=lambda one: list(ALL_NEEDS).index(one.name)):
        if need.concerns(changed):
            changed = need.change(changed)
    return changed


async def _leave_needed(
    send: Callable[[Sequence[Need]], Awaitable[object]],
    tried: Sequence[Need],
    sure: set[str],
    last: tuple[int, str],
) -> tuple[Need, ...] | None:
    """Return those that are needed of needs with which a request was answered.

    Args:
        tried: the needs; without the last one it was refused.
        sure: names of those that the refusal named, and then no more.
        last: status and words of the last refusal.

    Returns:
        The needs; None: the endpoint broke off, or refuses one time and answers another.
    """
    kept = list(tried)
    for need in tried:
        is_last = need is tried[-1]
        if need.name in sure or (is_last and _names(need, *last)):
            continue
        others = [one for one in kept if one is not need]
        # An endpoint that fails now and then refused by chance: by chance again, alike, and twice, is rare.
        for _ in range(REPEATS if is_last else 1):
            refusal = await _refused(send, others)
            if refusal is None:
                kept = others
                break
            if not isinstance(refusal, APIStatusError) or not is_about_request(refusal.status_code):
                return None
            if is_last and not _is_alike(refusal, last):
                return None
    return tuple(kept)


def _names(need: Need, status: int, words: str) -> bool:
    """Return whether a refusal names what a need is about.

    A server that fails (500, 502) may do so by chance, and say "stream" or "system" of itself.
    """
    return status not in (500, 502) and need.words.search(words) is not None


def _is_alike(refusal: APIStatusError, last: tuple[int, str]) -> bool:
    """Return whether a refusal has the status and the words of the last one, but for identifiers."""
    said, before = (re.sub(r"[^\s\"]*\d[^\s\"]*", "", words) for words in (_read_words(refusal), last[1]))
    return (refusal.status_code, said) == (last[0], before)


async def _refused(
    send: Callable[[Sequence[Need]], Awaitable[object]], needs: Sequence[Need]
) -> Exception | None:
    """Send a request; return the error, or None if it is answered."""
    try:
        await send(needs)
    except (APIStatusError, APIConnectionError, ModelError) as error:
        return error
    return None


def _find_named(body: Body, tried: Sequence[Need], words: str) -> Need | None:
    """Return a need that words name, and that was not tried."""
    left = [need for need in ALL_NEEDS.values() if need not in tried and need.concerns(body)]
    if _ABOUT_ELSE.search(words):
        left = [need for need in left if need.name not in _EVERYDAY]
    return next((need for need in left if need.words.search(words)), None)


def _read_words(error: APIStatusError) -> str:
    """Return the text of a refusal, with the names of its fields."""
    return json.dumps(read_object(error.response), ensure_ascii=False)[:4000]
