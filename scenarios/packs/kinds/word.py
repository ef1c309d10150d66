"""Text of Word documents, as Markdown."""

from __future__ import annotations

import io

from hallulab.scenarios.packs.kinds import Extracted, archives, html


def read(content: bytes) -> Extracted:
    """Return the text of a document.

    Raises:
        ValueError: its parts are too large.
    """
    import mammoth

    archives.check_unpacked_size(content)
    return html.read(mammoth.convert_to_html(io.BytesIO(content)).value)
