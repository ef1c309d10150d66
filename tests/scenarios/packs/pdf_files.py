"""PDF files for tests, written byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

Text = tuple[float, float, str] | tuple[float, float, str, float]
"""Where a text begins, from the left and from below, what it says, and its font's size (11)."""


def write_pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    """Return a file of objects; the first is the catalogue."""
    written, places = b"%PDF-1.5\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        trailer,
        len(written),
    )
    return written + head + table + tail


def write_pages(
    *pages: Sequence[Text] | str,
    font: str = "/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding",
    annotations: Sequence[str] = (),
    title: str = "",
) -> bytes:
    """Return a file of pages of 612 by 792 points.

    Args:
        pages: for each, its texts, or the operators that draw it.
        font: the rest of the font's dictionary; the object after the last is `annotations`' first.
        annotations: dictionaries of the first page's annotations; those with /FT are fields of a form.
        title: of the document's properties; "": none.
    """
    first = 5 + 2 * len(pages)
    fields = "".join(f"{first + at} 0 R " for at, one in enumerate(annotations) if "/FT" in one)
    kids = "".join(f"{5 + 2 * at} 0 R " for at in range(len(pages)))
    objects = [
        f"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[{fields}]>>>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}/MediaBox[0 0 612 792]"
        "/Resources<</Font<</F1 3 0 R>>>>>>",
        f"<</Type/Font/Subtype{font}>>",
        f"<</Title({title})>>",
    ]
    for at, page in enumerate(pages):
        drawn = page if isinstance(page, str) else "\n".join(draw(*text) for text in page)
        notes = "".join(f"{first + number} 0 R " for number in range(len(annotations) if at == 0 else 0))
        objects.append(f"<</Type/Page/Parent 2 0 R/Contents {6 + 2 * at} 0 R/Annots[{notes}]>>")
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    objects.extend(annotations)
    info = b"/Info 4 0 R" if title else b""
    return write_pdf(*(one.encode("latin-1") for one in objects), trailer=info)


def draw(left: float, low: float, text: str, size: float = 11) -> str:
    """Return the operators that draw a text."""
    return f"BT /F1 {size} Tf 1 0 0 1 {left} {low} Tm ({text}) Tj ET"
