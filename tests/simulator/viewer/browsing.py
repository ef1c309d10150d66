"""Where the browser is, and what axe says of a page."""

from __future__ import annotations

import shutil
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")


def find_violations(page: Page) -> list[tuple[str, Any]]:
    """What axe calls serious or critical."""
    page.evaluate(files("axe_core_python").joinpath("axe.min.js").read_text())
    found = page.evaluate("axe.run()")["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
