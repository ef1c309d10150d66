"""Endpoints of a model: their addresses, and what goes along with a request to them."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Annotated
from urllib.parse import urlsplit

import httpx2
from pydantic import AfterValidator

from hallulab.agents.models.wire_settings import API_KEY, NO_SETTINGS, WireSettings, read_secret

NO_KEY = "EMPTY"
"""Sent as the key if none is needed, as other clients do."""

NO_VARIABLE = "none"
"""Stands in `api_key_env` for: no key is sent."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model is served."""

    model: str
    """The server's name of the model."""
    base_url: str = ""
    """OpenAI-compatible base URL, ending in `/v1`. Empty: our server is not up yet (`ModelPool.bind`), or a
    replay needs none."""
    api_key_env: str | None = None
    """Environment variable that holds the key. None: OPENAI_API_KEY for a remote host, no key on loopback or
    where headers hold one. `NO_VARIABLE`: no key."""
    settings: WireSettings = field(default=NO_SETTINGS, hash=False)
    """Additions of the user to requests."""

    @cached_property
    def variable(self) -> str | None:
        """The environment variable whose value is sent as the key; None: no key is."""
        if self._brings_its_own_key:
            return None
        if self.api_key_env is None and (not self.base_url or is_loopback(self.base_url)):
            return None
        return self.api_key_env or "OPENAI_API_KEY"

    @property
    def variables(self) -> tuple[str, ...]:
        """All environment variables whose values are sent, each once."""
        key = () if self.variable is None else (self.variable,)
        return tuple(dict.fromkeys((*key, *self.settings.variables)))

    @cached_property
    def _brings_its_own_key(self) -> bool:
        """True if the usual header of a key is not sent: another one holds the key, or there is none."""
        given, settings = self.api_key_env, self.settings
        hidden = given is None and bool(settings.variables)
        return given == NO_VARIABLE or hidden or settings.names_header("Authorization")

    def api_key(self) -> str:
        """Read the key from the environment at the moment of use; it is never stored or logged.

        Raises:
            UsageError: the variable is not set, or its value does not fit into a header.
        """
        variable, address = self.variable, self.base_url or self.model
        if variable is None:
            return NO_KEY
        otherwise = f" (`api_key_env: {NO_VARIABLE}` if it takes none)" if self.api_key_env is None else ""
        return read_secret(variable, address, API_KEY, otherwise)

    def read_credentials(self) -> Credentials:
        """Read all that goes along with a request from the environment; see `api_key`."""
        key = self.api_key()
        headers = {} if self._brings_its_own_key else {"Authorization": f"Bearer {key}"}
        headers |= self.settings.fill_headers(self.base_url or self.model)
        values = (os.environ.get(name, "").strip() for name in self.settings.variables)
        return Credentials(headers, (key, *values))


@dataclass(frozen=True)
class Credentials:
    """Secrets of a request, which must not come back."""

    headers: Mapping[str, str]
    """Headers with the key, and those that the user adds."""
    secrets: tuple[str, ...] = field(repr=False)
    """Texts that are removed from answers and errors."""


SCRIPTED = "scripted"
"""Scheme of the addresses of scripted models, which answer in this process (`hallulab.testing.scripted`)."""


@lru_cache(maxsize=256)
def is_loopback(base_url: str) -> bool:
    """Return whether an address is on this machine, where no key is needed."""
    if base_url.startswith(f"{SCRIPTED}://"):
        return True
    host = urlsplit(base_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified  # servers tell 0.0.0.0 as where they listen
    except ValueError:
        return host == "localhost"


def normalize_url(url: str) -> str:
    """Return an address in its usual form: small letters in the host, no usual port, no slash at the end."""
    return str(httpx2.URL(url)).rstrip("/")


def check_url(url: str) -> str:
    """Return an address that may be asked; raises ValueError for others, and where one may hold a secret."""
    # Before the URL is parsed: a password with a slash would look like part of the path.
    if "@" in url or "?" in url:
        raise ValueError(
            "a URL with `@` or `?` may hold a password, and it stands in the report; put the key into an "
            "environment variable and name that in `api_key_env`, and what is no secret into `query`"
        )
    try:
        parts = urlsplit(url)
        httpx2.URL(url)  # whoever sends has to read it, too
        known = parts.scheme in ("http", "https", SCRIPTED) and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        known = False
    if url.lower().startswith(("ws://", "wss://")):
        raise ValueError(
            f"{url!r} is a websocket, which is not spoken here; speak it in a Python function, for a chatbot "
            "of the kind `callable`"
        )
    if not known or any(letter.isspace() for letter in url):
        raise ValueError(
            f"{url!r} is no address; give one with `http://` or `https://` and a host, such as "
            "http://localhost:8000/v1"
        )
    return url


BaseUrl = Annotated[str, AfterValidator(check_url)]
"""A base URL with scheme and host, ending in `/v1`, without user name, password and query."""
