"""Find texts that say nothing."""

from __future__ import annotations


def is_blank(text: str) -> bool:
    """Return whether no sign of a text can be seen: it has spaces, and signs of control or format, at most.

    >>> is_blank(" \\n\\u200b"), is_blank("…")
    (True, False)
    """
    return not any(sign.isprintable() and not sign.isspace() for sign in text)
