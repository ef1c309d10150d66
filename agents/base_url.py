"""The address of an OpenAI-compatible endpoint, which is no secret: it stands in reports and messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def _without_secrets(url: str) -> str:
    # Not parsed: a password with a slash would pass for a part of the path.
    if "@" in url or "?" in url:
        raise ValueError(
            "a URL with `@` or `?` may hold a password, and it stands in the report; put the key into an "
            "environment variable and name that in `api_key_env`"
        )
    return url


BaseUrl = Annotated[str, AfterValidator(_without_secrets)]
"""A base URL, ending in `/v1`, without user name, password and query."""
