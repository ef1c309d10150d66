"""Plain text and Markdown in another encoding than UTF-8."""

from __future__ import annotations

from hallulab.scenarios.packs.kinds import Extracted, encodings


def read(content: bytes) -> Extracted:
    """Return a text, decoded as browsers and editors do."""
    text, encoding = encodings.decode(content)
    return Extracted(text, None, (f"is not UTF-8, and was read as {encoding}",))
