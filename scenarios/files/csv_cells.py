"""Cells of CSV that a spreadsheet computes (OWASP, CSV Injection)."""

from __future__ import annotations

import unicodedata

_SIGNS = frozenset("=+-@\u2212")
"""First characters of a formula; the last is the typographic minus sign."""
_BREAKS = ("\t", "\r", "\n")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters of Korean that show nothing."""


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet may compute a cell of CSV with this text.

    Programs differ: some drop white space, invisible and combining characters before a sign, some read the
    sign's full-width and small forms, and to some a tab or the end of a line begins a cell.
    """
    if text.startswith(_BREAKS):
        return True
    seen = (one for one in text if unicodedata.category(one)[0] not in "CZM" and one not in _FILLERS)
    return unicodedata.normalize("NFKC", next(seen, "")).lstrip()[:1] in _SIGNS
