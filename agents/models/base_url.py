"""The address of an OpenAI-compatible endpoint. It appears in reports and messages, so it holds no secret."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def _without_secrets(url: str) -> str:
    # The URL is not parsed: a password with a slash would look like part of the path.
    if "@" in url or "?" in url:
        raise ValueError(
            "a URL with `@` or `?` may hold a password, and it stands in the report; put the key into an "
            "environment variable and name that in `api_key_env`"
        )
    return url


def _with_scheme_and_host(url: str) -> str:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or any(letter.isspace() for letter in url):
        raise ValueError(
            f"{url!r} is no address; give one with `http://` or `https://` and a host, such as "
            "http://localhost:8000/v1"
        )
    return url


BaseUrl = Annotated[str, AfterValidator(_without_secrets), AfterValidator(_with_scheme_and_host)]
"""A base URL with scheme and host, ending in `/v1`, without user name, password and query."""
