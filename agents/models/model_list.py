"""An endpoint's list of models: read it, and say why there is none."""

from __future__ import annotations

import re
from typing import Any

from openai import APIConnectionError, APIStatusError

from hallulab.agents.models.answers import BrokenAnswer
from hallulab.agents.models.complaints import WHERE, put_in_one_line, read_complaint
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.receiving import read_object
from hallulab.agents.models.tries import is_busy
from hallulab.agents.models.unreachable import THROUGH, name_trouble
from hallulab.scenarios.files.json_text import repair_value

NO_LIST = (APIConnectionError, APIStatusError, BrokenAnswer, ValueError, KeyError, TypeError, AttributeError)
"""Errors of an endpoint that gives no list of models, or no answer."""

_VERSION = re.compile(r"/v\d\w*(?:/|$)")
"""Where an OpenAI-compatible API usually begins."""

_LONGEST_ROOT = 4096
"""Characters of a `root` at most."""


def read_roots(told: Any) -> dict[str, str | None]:
    """Return each listed model with its `root`: None if that is no text or too long.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the answer is no list of models.
    """
    if told is None:
        raise ValueError("no JSON")
    return {str(entry["id"]): _clean_root(entry.get("root")) for entry in told["data"]}


def _clean_root(told: Any) -> str | None:
    if not isinstance(told, str) or len(told) > _LONGEST_ROOT:
        return None
    return " ".join(str(repair_value(told)).split()) or None


def describe_no_list(error: Exception, endpoint: Endpoint) -> str:
    """Say that an endpoint gives no list of models, why, and what to do."""
    if isinstance(error, APIStatusError):
        told = read_complaint(read_object(error.response))
        reason = f"status {error.status_code}{f': {told}' if told else ''}"
    else:
        silent = isinstance(error, APIConnectionError)
        cause = (error.__cause__ or error) if silent else error
        named = name_trouble(error).reason if silent else ""
        reason = named or put_in_one_line(str(cause)) or type(cause).__name__
    return (
        f"no OpenAI-compatible endpoint answers at {endpoint.base_url} ({reason}). "
        f"{_name_remedy(error, endpoint)}"
    )


def _name_remedy(error: Exception, endpoint: Endpoint) -> str:
    """Return what to do where there is no list of models."""
    if isinstance(error, APIStatusError) and error.status_code in (401, 403) and endpoint.variable:
        return f"Look at the key in {endpoint.variable}, or correct --base-url."
    base = endpoint.base_url.rstrip("/")
    surplus = next(
        (one for one in ("/chat/completions", "/completions", "/models") if base.endswith(one)), None
    )
    if surplus is not None:
        return f"Give --base-url without {surplus}."
    if isinstance(error, APIConnectionError):
        trouble = name_trouble(error)
        if trouble.lasts or trouble.reason.startswith(THROUGH):
            return trouble.remedy
    elif not _VERSION.search(base) and not is_busy(error):
        return WHERE
    return "Start a server (hallulab serve MODEL) or correct --base-url."
