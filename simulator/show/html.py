"""Documents as pages: templates that escape everything, style, security policy.

Our own small SVG templates draw the charts, not a plotting library. They take colours and fonts from the
page's style sheet, so they follow light, dark and print. They need no inline styles, which the page's content
security policy forbids. Their text stays text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.text.wording import NOTHING, choose_noun, format_number
from hallulab.simulator.show.document import ShownDocument

if TYPE_CHECKING:
    from jinja2 import Template

_COLOURS = 6


def render_page(document: ShownDocument, data: Any = None) -> str:
    """Return a document as a page of its own, in one file.

    A name without a value is an error. The page's security policy allows its own style sheet and script only,
    by hash.

    Args:
        data: JSON values of the conversations that the page's script shows; None: it has no script.
    """
    style = load_asset(__package__, "page.css")
    script = None if data is None else load_asset(__package__, "page.js")
    return _load_template(__package__, "document.html").render(
        document=document.of("page"),
        data=None if data is None else escape_json(data),
        style=style,
        style_hash=_hash_for_policy(style),
        script=script,
        script_hash=None if script is None else _hash_for_policy(script),
    )


def render_part(package: str, template: str, /, **values: Any) -> str:
    """Render a part of a page from a template of a package."""
    return _load_template(package, template).render(values)


@cache
def _load_template(package: str, name: str) -> Template:
    """Load a template of a package, which may extend and include those of this one."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def load(name: str) -> str | None:
        for place in (package, __package__):
            if files(place).joinpath(name).is_file():
                return load_asset(place, name)
        return None

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(load),
    )
    environment.globals.update(
        number=format_number,
        nothing=NOTHING,
        noun=choose_noun,
        paint=get_style_classes,
        shorten=shorten_name,
    )
    return environment.get_template(name)


def load_asset(package: str, name: str) -> str:
    """Read a text file of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _hash_for_policy(text: str) -> str:
    """Return the SHA-256 of a script or style sheet, as a content security policy names it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def escape_json(value: Any) -> Any:
    """Return JSON that cannot end its script element, marked as safe for the template."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - every character that HTML could read as markup is escaped above


def get_style_classes(number: int) -> str:
    """Return the style classes of a name's place: six colours, then the same ones hollow and dashed."""
    return f"d{number % _COLOURS}" + (" hollow" if number // _COLOURS % 2 else "")


def shorten_name(name: str, most: int) -> str:
    """Return a name with at most so many characters; names that begin alike mostly differ at their ends."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - half]}…{name[-half:]}"


@dataclass(frozen=True)
class Box:
    """Where a chart is drawn, in the SVG's units; the page scales it."""

    width: float
    height: float
    left: float
    """Margin of the plot on this side; so are the next three."""
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Tick:
    """A grid line."""

    at: float
    """Its place, horizontal or vertical."""
    label: str
