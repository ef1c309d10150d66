"""Marks in a reply whose sentences were flagged, and the words for the user.

The paper highlights spans and "enforces inline citations to retrieved evidence". How they read is our choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hallulab.chatbots.guarded.record import Action, Attempt, GuardRecord
from hallulab.chatbots.guarded.topics import Tags
from hallulab.detectors.features.batch import ReplyWithEvidence, make_batch
from hallulab.detectors.features.matching import make_terms, match_by_overlap
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.spans import Region
from hallulab.scenarios.transcript import Passage, Span

OPEN, CLOSE = "⟦", "⟧"
"""Around an unsupported span."""

NO_SOURCE = "[no source]"
"""In place of a citation, where no passage supports a sentence."""

SUPPORT = 0.5
"""Share of a sentence's content words from which a passage counts as its source: more than half of what it
says can be read there."""

_OWN_MARKS = re.compile(rf" ?(?:\[\d{{1,3}}\]|{re.escape(NO_SOURCE)})")
"""Citations that the bot wrote itself: only the guard's may stand in the reply."""
_BRACKETS = re.compile(f"[{OPEN}{CLOSE}]")
_STOPS, _CLOSERS = ".!?…:", "\"'”’)]*_"
_WORD = re.compile(r"\w")


def add_marks(
    reply: str, spans: Sequence[Span], passages: Sequence[Passage], *, highlight: bool, cite: bool
) -> str:
    """Return the reply with highlighted spans, and with `[n]` or `[no source]` in each sentence that claims.

    A citation stands before the sentence's full stop and names the n-th passage. A flagged sentence has no
    source.

    Args:
        spans: what is unsupported; those without a place are not highlighted.
        passages: the evidence, in the order of the citations.
        highlight: whether to highlight.
        cite: whether to cite.
    """
    places = [
        Region(span.start, span.end) for span in spans if span.start is not None and span.end is not None
    ]
    # Marks that the bot wrote itself would look like the guard's.
    patterns = [*([_BRACKETS] if highlight else []), *([_OWN_MARKS] if cite else [])]
    removed = {at for pattern in patterns for found in pattern.finditer(reply) for at in range(*found.span())}
    inserted: dict[int, list[str]] = {}
    if highlight:
        for place in _join(places):
            end = _trim_end(reply, place)
            if end > place.start:
                inserted.setdefault(place.start, []).append(OPEN)
                inserted.setdefault(end, []).insert(0, CLOSE)
    if cite:
        for sentence, passage in list_sources(reply, passages):
            said = "".join(reply[at] for at in range(sentence.start, sentence.end) if at not in removed)
            if not _WORD.search(said) or claims_nothing(said):
                continue
            flagged = any(place.start < sentence.end and sentence.start < place.end for place in places)
            mark = NO_SOURCE if passage is None or flagged else f"[{passage + 1}]"
            inserted.setdefault(_trim_end(reply, sentence), []).append(f" {mark}")
    made = []
    for at in range(len(reply) + 1):
        made += inserted.get(at, [])
        if at < len(reply) and at not in removed:
            made.append(reply[at])
    return "".join(made)


def list_sources(reply: str, passages: Sequence[Passage]) -> list[tuple[Region, int | None]]:
    """Return the sentences of a reply, each with the index of the passage that supports it best, or None.

    This is the passage of the chunk that holds most of its content words, as EvidenceChain's coverage
    (`hallulab.detectors.features.matching`); None below `SUPPORT`.
    """
    batch = make_batch([ReplyWithEvidence(reply, tuple(passages), "qa")])
    match = match_by_overlap(make_terms(batch, stems=True))
    found: list[tuple[Region, int | None]] = []
    for number in range(len(batch.sentences)):
        region = Region(int(batch.sentences.start[number]), int(batch.sentences.end[number]))
        chunk = int(match.chunk[number])
        supported = chunk >= 0 and match.score[number] >= SUPPORT
        found.append((region, int(batch.chunk_passage[chunk]) if supported else None))
    return found


def _join(places: Iterable[Region]) -> list[Region]:
    """Return the places in order, those that overlap as one."""
    joined: list[Region] = []
    for place in sorted(places):
        if joined and place.start < joined[-1].end:
            joined[-1] = Region(joined[-1].start, max(place.end, joined[-1].end))
        else:
            joined.append(place)
    return joined


def _trim_end(reply: str, region: Region) -> int:
    """Return the end of a region without the punctuation at its end, so that sentences still end there."""
    return region.start + len(region.of(reply).rstrip().rstrip(_CLOSERS).rstrip(_STOPS))


DONE: dict[Action, str] = {
    "passed": "shown as it is",
    "marked": "shown with marks",
    "cured": "made again and shown",
    "abstained": "withheld",
    "human": "handed to a human",
    "unjudged": "shown without a judgement",
}
"""Action → words."""


def format_threshold(threshold: float | None) -> str:
    """Return a threshold in words."""
    return "the detector's own threshold" if threshold is None else f"τ = {threshold:.2f}"


def word_escalation(attempts: Sequence[Attempt], threshold: float | None, tags: Tags) -> str:
    """Say why a reply is flagged, what is unsupported in it, and what became of it when it was made again."""
    first = attempts[0]
    about = f" on the topic {', '.join(tags.found)}" if tags.found else ""
    about += " (the topic is not known, so it counts as sensitive)" if tags.error else ""
    quoted = ", ".join(f"“{span.text}”" for span in first.spans or ())
    said = f"H = {first.score:.2f} reaches {format_threshold(threshold)}{about}"
    said += f": unsupported is {quoted}" if quoted else ""
    again = []
    for attempt in attempts[1:]:
        failed = "the chatbot failed" if attempt.reply is None else "the reply could not be judged"
        again.append(f"{failed} ({attempt.error})" if attempt.score is None else f"H = {attempt.score:.2f}")
    return f"{said}; made again, {' and then '.join(again)}" if again else said


def make_readable(record: GuardRecord) -> str:
    """Return a record in a few lines."""
    topics = [f"{name} ({why})" for name, why in record.topics.items()] or ["none"]
    lines = [
        f"policy {record.policy}, detector {record.detector}",
        f"topics: {', '.join(topics)}{' – sensitive' if record.sensitive else ''}",
    ]
    if record.topics_error:
        lines.append(f"the tagger failed: {record.topics_error}")
    unmarked = record.action == "marked" and record.marked in [one.reply for one in record.attempts]
    done = "shown as it is, for the policy marks nothing" if unmarked else DONE[record.action]
    lines.append(f"{done}: {record.reason}")
    if record.marked is not None:
        lines.append(f"flagged: {record.marked}")
    return "\n".join(lines)
