"""Text of HTML pages, as Markdown."""

from __future__ import annotations

import re

from hallulab.scenarios.packs.kinds import Extracted

_NOT_SAID = ("head", "script", "style", "template", "noscript", "img")
"""Elements of a page that are no part of its text."""
_BLANKS = 100
"""Blanks of a row in a page that are read, at most."""
_MANY_BLANKS = re.compile(rf"[ \t]{{{_BLANKS},}}+")


def read(content: bytes | str) -> Extracted:
    """Return the text of a page."""
    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    soup = BeautifulSoup(content, "html.parser")
    for element in soup.find_all(_NOT_SAID):
        element.extract()
    # A page shows a row of blanks as one, and markdownify's time grows with the square of its length.
    for text in soup.find_all(string=_MANY_BLANKS):
        text.replace_with(type(text)(_MANY_BLANKS.sub(" " * _BLANKS, text)))
    plain = MarkdownConverter(
        heading_style=ATX,
        strip=["a", "b", "strong", "em", "i"],
        escape_asterisks=False,
        escape_underscores=False,
    )
    return Extracted(str(plain.convert_soup(soup)))
