"""Additions of the user to the requests to an endpoint: fields, headers, a query, and room for thoughts.

Recordings and shared answers know `extra`, because it changes answers; and the names in headers and the query
of a chatbot, because they may say which one it is.
"""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Frozen

_OWN_FIELDS = frozenset({"model", "messages", "stream", "stream_options", "n", "logprobs", "top_logprobs"})
"""Fields of a request that nobody may set: what is asked, and in which form the answer comes."""

_OWN_HEADERS = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection", "te"})

_SECRET = re.compile(r"auth|cookie|secret|passw|token|(?:^|[-_])key|apikey|sig(?:nature)?$", re.IGNORECASE)
"""In names of headers and of parts of a query whose values are secrets."""

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
API_KEY, HEADER = "an API key", "a text for a header"

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Names a variable of the environment in a header's value."""


def _check_extra(extra: dict[str, Any]) -> dict[str, Any]:
    for name in extra:
        if name in _OWN_FIELDS:
            raise ValueError(f"`{name}` is hallulab's own; leave it out")
    return extra


def check_headers(headers: dict[str, str]) -> dict[str, str]:
    """Return headers that may be set; raises ValueError for others, and for a secret in one."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
            raise ValueError(f"{name!r} is no header that can be set")
        rest = VARIABLE.sub("", value)
        if "${" in rest or not rest.isascii() or (rest and not rest.isprintable()):
            raise ValueError(f"the value of `{name}` is neither a text nor `${{VARIABLE}}`")
        secret = _SECRET.search(name) or re.match(r"(?:bearer|basic) |sk-", value, re.IGNORECASE)
        if secret and not VARIABLE.search(value):
            raise ValueError(
                f"the value of `{name}` is a secret and would stand in the run folder; put it into an "
                "environment variable and write `${VARIABLE}`"
            )
    return headers


def _check_query(query: dict[str, str]) -> dict[str, str]:
    for name in query:
        if _SECRET.search(name):
            raise ValueError(f"`{name}` may be a secret, and it stands in the report; send it in `headers`")
    return query


Extra = Annotated[dict[str, Any], AfterValidator(_check_extra)]
"""Fields added to the body of every request; null leaves one of ours out."""
Headers = Annotated[dict[str, str], AfterValidator(check_headers)]
"""Headers of every request: name → text, in which `${VARIABLE}` is the value of an environment variable."""
Query = Annotated[dict[str, str], AfterValidator(_check_query)]
"""Parameters of the address of every request."""
Thoughts = Annotated[int, Field(ge=0, le=1_000_000)]
"""Tokens added to every limit, for a model that thinks before it answers."""


class WireSettings(Frozen):
    """Additions of the user to the requests to an endpoint."""

    extra: Extra = Field(default_factory=dict)
    headers: Headers = Field(default_factory=dict)
    query: Query = Field(default_factory=dict)
    thoughts: Thoughts = 0

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables whose values the headers hold, each once."""
        found = (name for value in self.headers.values() for name in VARIABLE.findall(value))
        return tuple(dict.fromkeys(found))

    def names_header(self, name: str) -> bool:
        """Return whether a header is set, in capitals or small letters."""
        return any(one.lower() == name.lower() for one in self.headers)

    def fill_headers(self, address: str) -> dict[str, str]:
        """Return the headers with the values of the environment.

        Args:
            address: of the endpoint, for errors.

        Raises:
            UsageError: a variable is not set, or its value does not fit into a header.
        """
        values = {name: read_secret(name, address, HEADER) for name in self.variables}
        return {
            name: VARIABLE.sub(lambda found: values[found[1]], value) for name, value in self.headers.items()
        }


NO_SETTINGS = WireSettings()


_NO_SESSION_HEADERS = frozenset({"authorization", "cookie", "accept", "accept-encoding"})
"""Headers that have a form of their own, which no id has."""


def _check_session_header(name: str) -> str:
    if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS | _NO_SESSION_HEADERS:
        raise ValueError(f"{name!r} is no header for a session; give one such as X-Session-Id")
    return name


class SessionHeader(Frozen):
    """A header that holds a conversation's id."""

    header: Annotated[str, AfterValidator(_check_session_header)]


def _check_session(value: object) -> object:
    if isinstance(value, str) and value != "user":
        raise ValueError(f"{value!r} is no place for a session; give `user`, or {{header: X-Session-Id}}")
    return value


SessionPlace = Annotated[
    Annotated[Literal["user"], Tag("user")] | Annotated[SessionHeader, Tag("header")],
    Discriminator(lambda value: "user" if value == "user" else "header"),
    BeforeValidator(_check_session),
]
"""Where a conversation's id is sent: in the field `user` of the body, or in a header."""


@dataclass(frozen=True)
class ConversationMark:
    """Tells a bot that remembers which conversation a request belongs to."""

    key: str
    """Stands for the conversation, and what was said in it, in recordings."""
    id: str
    """Text sent to the bot, on the wire alone."""
    header: str | None
    """The header that holds it; None: the field `user` of the body does."""
    stateful: bool
    """True if a request that is sent twice is a message that the bot remembers twice."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that hold the id."""
        return {} if self.header is None else {self.header: self.id}

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a body that hold it."""
        return {"user": self.id} if self.header is None else {}

    def start_another(self) -> ConversationMark:
        """Return the mark of a conversation that the bot does not know, to try a request out."""
        return replace(self, id=uuid.uuid4().hex)


class _HasSettings(Protocol):
    """A model, an experiment or a chatbot's options, which say what is added."""

    @property
    def extra(self) -> dict[str, Any]: ...
    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def query(self) -> dict[str, str]: ...
    @property
    def thoughts(self) -> int: ...


def collect_settings(holder: _HasSettings) -> WireSettings:
    """Return what a model, an experiment or a chatbot's options add to requests."""
    return WireSettings.model_construct(
        extra=holder.extra, headers=holder.headers, query=holder.query, thoughts=holder.thoughts
    )


def read_secret(variable: str, address: str, what: str, otherwise: str = "") -> str:
    """Read a key, or what a header holds, from the environment at the moment of use.

    Args:
        address: who gets it, for errors.
        what: `API_KEY`, or `HEADER`.
        otherwise: another remedy than to set the variable.

    Raises:
        UsageError: the variable is not set, or its value does not fit into a header.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise UsageError(f"{address} needs {what}: set the environment variable {variable}{otherwise}.")
    if (what == API_KEY and " " in value) or not value.isascii() or not value.isprintable():
        flaws = "spaces, letters beyond ASCII" if what == API_KEY else "letters beyond ASCII"
        raise UsageError(
            f"the environment variable {variable} holds no {what.split(maxsplit=1)[1]}: there are {flaws} or "
            "control characters in it. Set it to the key alone."
        )
    return value
