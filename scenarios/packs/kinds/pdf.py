"""Text of PDF documents."""

from __future__ import annotations

import io

from hallulab.scenarios.packs.kinds import Extracted


def read(content: bytes) -> Extracted:
    """Return the text of a PDF document, its pages parted by a blank line."""
    from pypdf import PdfReader

    return Extracted("\n\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages))
