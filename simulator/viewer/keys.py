"""What the viewer's page sends when somebody labels, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field, model_validator

from hallulab.scenarios.datasets.annotations import MODEL, NAMED, PERSON, require_annotator
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Count, Frozen, Verdict
from hallulab.simulator.annotate.marks import MarkKind, identify_flag

LONGEST_NAME = 60
"""Characters of an annotator's name."""


class AskedKey(Frozen):
    """What the page sends with every request that writes."""

    annotator: str = ""
    """Name of the annotator, as the page has it."""


class Key(AskedKey):
    """What the page sends when a key is pressed."""

    conversation: str
    """Identifier of the conversation."""
    turn: Count
    """Index of the turn."""
    kind: MarkKind
    flag: str | None = None
    """Which flag it is about, as the page that shows it calls it."""
    start: Count | None = None
    """First character of missed words, in the reply as it is shown."""
    end: Count | None = None
    """One past the last one."""
    text: str = Field("", max_length=100_000)
    severity: int | None = Field(None, ge=1, le=5)
    reason: str = Field("", max_length=10_000)
    adjudicate: bool = False
    """True if it settles what annotators differ in."""
    takes: str | None = None
    """Annotator whose labels are taken."""

    @model_validator(mode="after")
    def _require_kind(self) -> Key:
        if self.adjudicate and self.kind in ("right", "wrong", "unknown"):
            raise ValueError(f"`{self.kind}` does not settle a turn; leave it open instead")
        if self.kind == "take" and not self.adjudicate:
            raise ValueError("`take` needs `adjudicate`")
        return self


def name_annotator(text: str) -> str:
    """Return how labels call somebody who gives this name.

    >>> name_annotator("Asha")
    'person:Asha'

    Raises:
        UsageError: it is too long, or has characters that cannot be seen.
    """
    name = text.strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"A name has at most {LONGEST_NAME} characters that can be seen.")
    full = name if name in ("", PERSON) or name.startswith((NAMED, MODEL)) else f"{NAMED}{name}"
    try:
        return require_annotator(full or PERSON)
    except ValueError as error:
        raise UsageError(f"{error}.") from error


def map_shown(reply: str) -> list[int]:
    r"""Return the place in a reply of each character that a browser has of it, and that of the end.

    Browsers make one line end of two characters, and drop NUL.

    >>> map_shown("a\r\nb")
    [0, 1, 3, 4]
    """
    pairs = zip(f" {reply}", reply, strict=False)
    found = [at for at, pair in enumerate(pairs) if pair != ("\r", "\n") and pair[1] != "\0"]
    return [*found, len(reply)]


def read_key(key: Key, found: tuple[Conversation, Sequence[Verdict]] | None) -> dict[str, Any]:
    """Return the fields of a mark: flags by their words, and places in the reply as it is stored.

    Args:
        key: what the page sent.
        found: the conversation and the verdicts on it.

    Raises:
        UsageError: the turn does not have that flag, or the reply has other words there.
    """
    if key.kind not in ("right", "wrong", "missed"):
        return {"kind": key.kind, **({"takes": key.takes} if key.kind == "take" else {})}
    chat, verdicts = found or (None, ())
    said: dict[str, Any] = {"kind": key.kind, "severity": key.severity, "reason": key.reason}
    if key.kind == "missed":
        reply = "".join(turn.reply for turn in chat.turns if turn.index == key.turn) if chat else ""
        places = map_shown(reply)
        if key.start is None or key.end is None or not key.start < key.end < len(places):
            raise UsageError("These words do not stand in the reply. Select some of it.")
        start, end = places[key.start], places[key.end]
        if key.text != "".join(reply[at] for at in places[key.start : key.end]).replace("\r", "\n"):
            raise UsageError("The reply has other words there. Load the page anew.")
        return {**said, "start": start, "end": end, "text": reply[start:end]}
    spans = [
        (identify_flag(verdict.detector, span), span)
        for verdict in verdicts
        if verdict.turn == key.turn
        for span in verdict.spans or ()
    ]
    found_flag = next((one for one in spans if one[0].id == key.flag), None)
    if found_flag is None:
        raise UsageError("Load the page anew: this turn does not have that flag any more.")
    flag, span = found_flag
    if key.kind == "right":
        rated = None if span.severity is None else min(5, max(1, round(span.severity)))
        said |= {"severity": key.severity or rated, "reason": key.reason or span.reason}
    return {**said, **flag._asdict()}
