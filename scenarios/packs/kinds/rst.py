"""Text of reStructuredText."""

from __future__ import annotations

import re
from typing import Any

from hallulab.scenarios.packs.kinds import Extracted, html, note_pictures
from hallulab.scenarios.packs.kinds.text import decode

_SETTINGS: dict[str, Any] = {
    # Nothing is read but the document itself: no files, no addresses, no settings from the folder.
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "math_output": "LaTeX",
    "syntax_highlight": "none",
    "line_length_limit": 50_000_000,
    "report_level": 5,
    "halt_level": 5,
}
_NOT_READ = re.compile(r'Unknown directive type "([^"]+)"|"([^"]+)" directive disabled')


def read(content: bytes) -> Extracted:
    """Return the text of a document, without its comments, pictures and table of contents."""
    from docutils import nodes
    from docutils.core import publish_doctree, publish_from_doctree

    text, encoding = decode(content)
    document = publish_doctree(text, settings_overrides=_SETTINGS)
    notes = [] if encoding == "utf-8" else [f"is not UTF-8, and was read as {encoding}"]
    for message in (*document.parse_messages, *document.transform_messages):
        if found := _NOT_READ.search(message.astext()):
            notes.append(f"its directive {found[1] or found[2]} was not read")
    notes += note_pictures(sum(1 for _ in document.findall(nodes.image)))
    for node in list(document.findall(nodes.Node)):
        contents = isinstance(node, nodes.topic) and "contents" in node["classes"]
        if contents or isinstance(node, nodes.image | nodes.comment | nodes.system_message):
            node.parent.remove(node)
    page = publish_from_doctree(document, writer="html5", settings_overrides=_SETTINGS).decode("utf-8")
    # Notes and footnotes stand aside in it, as menus do in pages.
    page = re.sub(r"<(/?)aside\b", r"<\1div", page)
    return Extracted(html.read(page).text, document.get("title") or None, tuple(dict.fromkeys(notes)))
