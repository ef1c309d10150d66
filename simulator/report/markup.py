"""What every page shares: templates that escape everything, style, and hashes for the security policy."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from simulator.report.terminal import NOTHING, number, with_interval
from simulator.report.wording import noun


def render(package: str, template: str, /, **values: Any) -> str:
    """A template of a package filled with `values`; a name that has no value is an error."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(number=number, with_interval=with_interval, nothing=NOTHING, noun=noun)
    return environment.from_string(asset(package, template)).render(values)


def asset(package: str, name: str) -> str:
    """A text file that comes with a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """SHA-256 of a script or style sheet, as a content security policy names it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
