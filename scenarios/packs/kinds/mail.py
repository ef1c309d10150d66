"""Text of e-mails."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from hallulab.scenarios.packs.kinds import Extracted, html
from hallulab.scenarios.packs.kinds.text import decode

_LINES = ("From", "To", "Cc", "Date")
_SIGNATURE = "-- "


def read(content: bytes) -> Extracted:
    """Return who wrote when to whom, and the message as plain text, or else as its page.

    The subject is the title. Attachments and the signature are left out.

    Raises:
        ValueError: it has neither plain text nor a page.
    """
    message = message_from_bytes(content, EmailMessage, policy=default)
    texts = (message.get_body((kind,)) for kind in ("plain", "html"))
    bodies = [one for one in texts if isinstance(one, EmailMessage)]
    if not bodies:
        raise ValueError("it has no text: it may be encrypted, or hold attachments only")
    # Some programs put an empty text beside the page.
    filled = (
        one
        for one in bodies
        if one.get_content_type() == "text/html" or bytes(one.get_payload(decode=True) or b"").strip()
    )
    body = next(filled, bodies[0])
    attached = (
        one.get_filename() or f"of the type {one.get_content_type()}" for one in message.iter_attachments()
    )
    notes = [f"its attachment {name} was not read" for name in attached]
    said = body.get_payload(decode=True)
    if not isinstance(said, bytes):
        raise ValueError("a part of it is damaged")
    text, _ = decode(said, body.get_content_charset())
    if body.get_content_type() == "text/html":
        found = html.read(text)
        text = found.text
        notes += found.notes
    else:
        text, *signature = text.replace("\r\n", "\n").split(f"\n{_SIGNATURE}\n", maxsplit=1)
        if str(body.get_param("format", "")).lower() == "flowed":  # RFC 3676
            space = "" if str(body.get_param("delsp", "")).lower() == "yes" else " "
            text = re.sub(r"(?m)^ ", "", re.sub(r"(?<=\S) \n(?=\S)(?!>)", space, text))
        if signature:
            notes.append("its signature was left out")
        quoted = sum(line.startswith(">") for line in text.split("\n"))
        if quoted:
            notes.append(f"lines that it quotes from an earlier message: {quoted}")
    head = [f"{name}: {message[name]}" for name in _LINES if message[name]]
    subject = message["Subject"]
    return Extracted("\n\n".join([*head, text.strip()]), str(subject) if subject else None, tuple(notes))
