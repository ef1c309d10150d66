"""The first parts of a run's page: flagged replies beside their evidence, then rows of conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hallulab.detectors.explanations.evidence import collect_content_stems, read_evidence, read_tokens
from hallulab.scenarios.text.wording import NOTHING, format_number, render_one_line
from hallulab.scenarios.transcript import Span, Turn, Verdict
from hallulab.simulator.report.reader import cut_segments
from hallulab.simulator.report.worst import WorstReplies, WorstReply, is_flagged
from hallulab.simulator.show.columns import Column
from hallulab.simulator.show.document import Folded, GroupedTable, MarkedReplies, MarkedReply, Paragraph, Part
from hallulab.simulator.show.reply_text import style_pieces

Address = Callable[[str, int], str | None]
"""Returns the address of a turn by its conversation's identifier and its index; None: it is not shown."""

EXCERPT = 240
"""Characters of a reply that are shown."""
BEFORE = 60
"""Characters at most that stand before its first marked words, if it is longer."""
OPEN = 12
"""Conversations that are listed before the rest, which is folded away."""
LINE = 160
"""Characters of a reply in a row."""
SENTENCE = 400
"""Characters of a sentence of the evidence that are shown."""


def build_marked_replies(worst: WorstReplies, detectors: Sequence[str], address: Address) -> list[Part]:
    """Return the worst replies beside the sentences nearest to what is marked; nothing without any."""
    chosen = worst.choose_replies()
    if not chosen:
        return []
    bots = {one.chatbot for one in chosen}
    title = "The worst reply" if len(chosen) == 1 else f"The {len(chosen)} worst replies"
    order = f"highest score by {detectors[0]}"
    rule = f"The {order}" if len(detectors) == 1 else f"Flagged by most detectors, then the {order}"
    spread = "; one of each chatbot before a second one of any" if len(bots) > 1 else ""
    replies = [_build_reply(one, detectors, address, names_bot=len(bots) > 1) for one in chosen]
    return [MarkedReplies(title, f"{rule}{spread}.", replies)]


def _build_reply(
    one: WorstReply, detectors: Sequence[str], address: Address, *, names_bot: bool
) -> MarkedReply:
    by, located, main = _choose_marks(one, detectors)
    evidence, source = find_nearest(one.turn, one.turn.reply if main is None else main.text)
    link = address(one.conversation, one.turn.index)
    return MarkedReply(
        where=f"{f'{one.chatbot}, ' if names_bot else ''}{one.persona}, turn {one.number}",
        pieces=cut_excerpt(one.turn.reply, located, main),
        by=by,
        verdicts=[
            (name, describe_verdict(found)) for name, found in zip(detectors, one.verdicts, strict=True)
        ],
        reason="" if main is None else main.reason,
        evidence=evidence,
        source=source,
        link=None if link is None else ("Read the conversation", link),
    )


def _choose_marks(one: WorstReply, detectors: Sequence[str]) -> tuple[str, list[Span], Span | None]:
    """Return the first detector that marks words of a reply, its located spans, and the worst of them.

    Without one, the name is empty.
    """
    for name, verdict in zip(detectors, one.verdicts, strict=True):
        spans = () if verdict is None else verdict.spans or ()
        if located := [span for span in spans if span.start is not None]:
            return name, located, max(located, key=_rate_span)
    return "", [], None


def _rate_span(span: Span) -> tuple[float, float, float, int]:
    """Return how bad a span is, by the numbers that its detector gives; of equal ones, the first is worst."""
    severity, probability, score = (
        float("-inf") if value is None else value for value in (span.severity, span.probability, span.score)
    )
    return severity, probability, score, -(span.start or 0)


def find_nearest(turn: Turn, text: str) -> tuple[str, str]:
    """Return the sentence of a turn's passages that has most of a text's words, and its document.

    Words count the more, the rarer they are in the passages. Without such a sentence, the second says why.
    """
    if not turn.passages:
        return "", "No document was retrieved for this reply."
    index = read_evidence(tuple(passage.text for passage in turn.passages))
    sentence, _ = index.best(collect_content_stems(read_tokens(text)))
    if sentence is None:
        return "", "No retrieved passage has a word of what is marked."
    return _shorten(sentence.text, SENTENCE), turn.passages[sentence.passage].document


def cut_excerpt(reply: str, spans: Sequence[Span], main: Span | None) -> list[tuple[str, bool, str]]:
    """Return the stretch of a reply around the worst marked words, in pieces: marked or not, and their style.

    Args:
        spans: located spans, all of which are marked.
        main: the worst of them; None: the stretch begins where the reply does.
    """
    first, last = _choose_stretch(reply, 0 if main is None or main.start is None else main.start)
    pieces: list[tuple[str, bool, str]] = [("… ", False, "")] if first else []
    for piece in style_pieces(cut_segments(reply, spans)):
        text = piece.text[max(0, first - piece.start) : max(0, last - piece.start)]
        if text:
            pieces.append((text, bool(piece.covering), piece.style))
    return [*pieces, (" …", False, "")] if last < len(reply) else pieces


def _choose_stretch(reply: str, start: int) -> tuple[int, int]:
    """Return the ends of a stretch that begins and ends between words, if there are spaces."""
    if len(reply) <= EXCERPT:
        return 0, len(reply)
    if start <= BEFORE:
        first = 0
    else:
        line = reply.rfind("\n", start - BEFORE, start)
        first = (line if line >= 0 else reply.find(" ", start - BEFORE, start)) + 1 or start
    last = first + EXCERPT
    if last >= len(reply):
        return first, len(reply)
    space = reply.rfind(" ", first + BEFORE, last)
    return first, last if space < 0 else space


def describe_verdict(verdict: Verdict | None) -> str:
    """Return a verdict in a few words.

    >>> describe_verdict(None)
    'no verdict'
    """
    if verdict is None:
        return "no verdict"
    if verdict.outcome != "scored":
        return verdict.outcome
    said = "flagged" if is_flagged(verdict) else "not flagged"
    return said if verdict.score is None else f"{said}, {format_number(verdict.score, 2)}"


def build_rows(
    worst: WorstReplies, detectors: Sequence[str], address: Address, conversations: int
) -> list[Part]:
    """Return a table of the worst conversations, the worst first; nothing without any, or without detectors.

    Args:
        conversations: all there are.
    """
    listed = worst.list_conversations()
    if not listed or not detectors:
        return []
    bots = {one.chatbot for one in listed}
    columns = [
        Column("Conversation", "name", "the persona, and the turn of the worst reply", kind="name",
               address="address"),
        *([Column("Chatbot", "chatbot", "its name", kind="text")] if len(bots) > 1 else []),
        Column("Worst reply", "reply", "the reply that most detectors flag, then with the highest scores",
               kind="long"),
        *(
            Column(name, str(at), "its verdict on this reply: whether it flags it, and its score",
                   describe_verdict, warns=is_flagged)
            for at, name in enumerate(detectors)
        ),
        Column("Flagged", "flagged", "scored turns of the conversation that some detector flags"),
    ]  # fmt: skip
    rows = [_build_row(one, detectors, address) for one in listed]
    some = f"The {len(rows)} worst of {conversations:,}" if len(rows) < conversations else "All"
    hint = Paragraph(f"{some} conversations, each with its worst reply; the worst first.")
    table = GroupedTable(columns, [rows[:OPEN]], dense=True)
    more = GroupedTable(columns, [rows[OPEN:]], dense=True)
    return [hint, table, *([Folded(f"{len(rows) - OPEN} more", [more])] if rows[OPEN:] else [])]


def _build_row(one: WorstReply, detectors: Sequence[str], address: Address) -> dict[str, Any]:
    """Return a row. Names of detectors may have dots, so their fields are numbers."""
    _, located, main = _choose_marks(one, detectors)
    shown = "".join(text for text, _, _ in cut_excerpt(one.turn.reply, located, main))
    return {
        "name": f"{one.persona}, turn {one.number}",
        "chatbot": one.chatbot,
        "reply": _shorten(render_one_line(shown), LINE) or NOTHING,
        "flagged": f"{one.flagged} of {one.scored}" if one.scored else NOTHING,
        "address": address(one.conversation, one.turn.index),
        **{str(at): verdict for at, verdict in enumerate(one.verdicts)},
    }


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
