"""Contradictions between a claim and the evidence: numbers, dates, names and negations."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal, NamedTuple

from hallulab.detectors.explanations.claim import (
    CLAUSE_END,
    REACH,
    ComparedSentence,
    find_lacking,
    find_unsaid,
    widen_to_items,
)
from hallulab.detectors.explanations.evidence import Sentence, Token, collect_content_stems
from hallulab.detectors.explanations.other_forms import is_written
from hallulab.scenarios.text.items import Item, build_stems_key
from hallulab.scenarios.text.spans import Region

NEAR_VERBATIM = 0.7
"""Two sentences are compared if the evidence has at least this share of the content words."""
MOST_WORDS = 120
"""Longer sentences are not compared: it would take too long, and they are lists."""
_LONGEST = 4
"""Most words that may replace others; if more differ, the sentences say different things."""
_BEFORE = 3
"""Words quoted before those that differ."""
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|none|nobody|nothing)\b|n['’]t\b", re.IGNORECASE
)
_CONDITION = re.compile(
    r"\A(?:for|where|if|when|in|unless|except|only|within|after|before|until|during|under)\b[^,;]*,"
    r"|\b(?:unless|except(?: for)?|only if|only after|provided that|as long as|if|where|when)\b[^,;.]*",
    re.IGNORECASE,
)


class Mismatch(NamedTuple):
    """A place where a sentence and its evidence differ."""

    kind: Literal["replaced", "negated", "condition"]
    """Other words; a `not` in only one of the two; a limit or condition that only the evidence has."""
    place: Region
    """Its place in the sentence."""
    instead: str


def find_differences(claim: ComparedSentence) -> Iterator[Mismatch]:
    """Yield the differences from the evidence sentence that has most of the claim, if the two are near."""
    source = claim.best
    if source is None or claim.evidence.share(claim.stems, source.own) < NEAR_VERBATIM:
        return
    if max(len(claim.tokens), len(source.tokens)) <= MOST_WORDS:
        ours, theirs = claim.tokens, source.tokens
        matcher = SequenceMatcher(None, [t.stem for t in ours], [t.stem for t in theirs], autojunk=False)
        codes = matcher.get_opcodes()
        same = next((place for place, code in enumerate(codes) if code[0] == "equal"), len(codes))
        for kind, a, b, c, d in codes[same:]:
            if kind == "equal" or max(b - a, d - c) > _LONGEST:
                continue
            mine, other = _between(ours, claim.text, a, b), _between(theirs, source.text, c, d)
            stems, known = collect_content_stems(ours[a:b]), collect_content_stems(theirs[c:d])
            # A number in only one of the two, which the source has elsewhere, only stands in another place.
            apart = any(stem[0].isdigit() for stem in stems) != any(stem[0].isdigit() for stem in known)
            if negates(mine) != negates(other):
                yield Mismatch("negated", _stretch(ours, a, b), _cut(source, c, d))
            elif stems and known and not (apart and stems <= source.own):
                yield Mismatch("replaced", _stretch(ours, a, b), _cut(source, c, d))
    starts, ends = [token.start for token in source.tokens], [token.end for token in source.tokens]
    for match in _CONDITION.finditer(source.text):
        inside = source.tokens[bisect_left(starts, match.start()) : bisect_right(ends, match.end())]
        words = collect_content_stems(inside)
        if words and 3 * len(words & claim.stems) <= len(words):
            yield Mismatch("condition", claim.main_words, match[0].strip(" ,"))


def negates(text: str) -> bool:
    """Return whether a text has an odd number of negations."""
    return len(_NEGATION.findall(text)) % 2 == 1


def _between(tokens: Sequence[Token], text: str, first: int, after: int) -> str:
    return text[tokens[first].start : tokens[after - 1].end] if first < after else ""


def _stretch(tokens: Sequence[Token], first: int, after: int) -> Region:
    """Return the words that differ and some before them; if there are none, also the next one."""
    last = after - 1 if after > first else min(after, len(tokens) - 1)
    return Region(tokens[max(0, first - _BEFORE)].start, tokens[last].end)


def _cut(source: Sentence, first: int, after: int) -> str:
    """Return the stretch, with the rest of an item that it ends in: `2%`, `three months`."""
    place = _stretch(source.tokens, first, after)
    ends = [item.end for item in source.items if item.start < place.end <= item.end]
    return source.text[place.start : max([place.end, *ends])]


Fault = Literal["absent", "misattributed", "replaced", "negated", "condition", "unsupported", "elsewhere"]
"""The evidence does not have the item; has it for something else; has other words in its place; says the
opposite; says it only of some, or under a condition; does not say the phrase; has all of the words, but in a
sentence about something else."""

MOST_COMPARED = 3
"""Absent items for which the evidence's item of the same matter is looked for."""
ATTACHED = 0.6
"""An evidence sentence with the item says the same if it has this share of the words around the item."""
ATTACHED_AT_BEST = 0.45
"""The same share, where no evidence sentence has more."""
SUBJECT = 0.75
"""The same share, of the words for what a phone number or address belongs to."""
SAME_MATTER = 0.5
"""An item of the evidence is about the same matter if its sentence and title have at least this share of the
words around the absent item in the claim's clause."""
_OF_CONTACTS = re.compile(
    r"call|dial|reach|contact|phone|number|visit|writ|e?mail|toll|free|avail|telephon|follow|address"
)
"""Beginnings of stems that say how a contact is used, not whose it is."""
_TIMES = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
_MONEY = frozenset({"rupee", "dollar", "euro", "pound"})


class SentenceFault(NamedTuple):
    """Something wrong in a sentence."""

    fault: Fault
    place: Region
    """Its place in the sentence."""
    item: Item | None = None
    """The wrong item; None: a phrase."""
    instead: str = ""
    """The evidence's text in its place; empty: nothing like it."""
    source: Sentence | None = None
    """The evidence sentence that it is compared with."""
    about: Region | None = None
    """Subject to which the sentence relates the item; None: not known."""
    strength: float = 1.0
    """How far the evidence is from it, from 0 to 1."""

    @property
    def rank(self) -> int:
        """Order of findings: numbers, then differences of near-verbatim sentences, then names."""
        named = self.item is not None and self.item.kind == "name"
        if self.fault in ("replaced", "negated"):
            return 1
        if self.fault == "absent":
            return 2 if named else 0
        if self.fault == "misattributed":
            return 3 if self.instead or not named else 6
        return {"condition": 4, "unsupported": 5, "elsewhere": 7}[self.fault]


def find_wrong(claim: ComparedSentence) -> list[SentenceFault]:
    """Return all that is found, the surest first; never nothing."""
    found = [*_absent(claim), *_misattributed(claim)]
    found += [
        SentenceFault(one.kind, widen_to_items(claim, *one.place), None, one.instead, claim.best)
        for one in find_differences(claim)
    ]
    place = find_unsaid(claim) or find_lacking(claim, claim.held)
    holders = claim.saying(place) if place else []
    if place and holders:
        found.append(SentenceFault("elsewhere", place, source=_nearest(claim, claim.stems, holders)[1]))
    elif place:
        found.append(SentenceFault("unsupported", place, source=claim.best, strength=1 - claim.share))
    if not found:
        found.append(SentenceFault("elsewhere", claim.main_words, source=claim.best))
    once: dict[tuple[Fault, str | Region], SentenceFault] = {}
    for one in found:
        once.setdefault((one.fault, one.item.key if one.item else one.place), one)
    return sorted(once.values(), key=lambda one: one.rank)


def _absent(claim: ComparedSentence) -> Iterator[SentenceFault]:
    found = [
        item
        for item in claim.items
        if claim.absent(item) and not is_written(item, claim.evidence, claim.best)
    ]
    # The first one of the surest is named with what stands in its place; a list of thousands is not compared.
    for place, item in enumerate(sorted(found, key=lambda item: item.kind == "name")):
        other, source = _find_same_matter(claim, item) if place < MOST_COMPARED else ("", None)
        yield SentenceFault("absent", Region(item.start, item.end), item, other, source)


def _misattributed(claim: ComparedSentence) -> Iterator[SentenceFault]:
    for item in claim.items:
        if item.kind == "number" or claim.said.has(item):
            continue  # A bare number has too many neighbours to belong to one.
        holders = claim.evidence.holding(item)
        subject = _subject(claim, item) if item.kind == "contact" else None
        around = claim.around(item, subject)
        if not holders or not around:
            continue
        share, source = _nearest(claim, around, holders)
        if subject is None:
            near, near_source = _nearest(claim, claim.around(item, claim.clause(item)), holders)
            share, source = (near, near_source) if near > share else (share, source)
            if around not in claim.rivals:
                claim.rivals[around] = claim.evidence.best(around)[0]
            rival = claim.rivals[around]
            at_best = rival is not None and any(holder is rival for holder in holders)
            attached = share >= (ATTACHED_AT_BEST if at_best else ATTACHED)
            if attached or (item.kind == "name" and at_best):
                continue
        elif share >= SUBJECT:
            continue
        other, _ = _other_item(claim, item, around, SUBJECT if subject else ATTACHED)
        mine, known = (set(build_stems_key(name).split()) for name in (item.text, other))
        if item.kind == "name" and (mine <= known or known <= mine):
            other = ""  # one name is the other in fewer words: `Reserve Bank`, `Reserve Bank of India`
        # Or else what the evidence sentence with the item does not say, in the item's clause or anywhere.
        about = subject or find_lacking(claim, source.stems, claim.clause(item))
        about = about or find_lacking(claim, source.stems)
        yield SentenceFault(
            "misattributed", Region(item.start, item.end), item, other, source, about, 1 - share
        )


def _nearest(
    claim: ComparedSentence, wanted: frozenset[str], holders: list[Sentence]
) -> tuple[float, Sentence]:
    words = claim.evidence.weigh(wanted)
    shares = [words.share(holder.stems) for holder in holders]
    return max(shares), holders[shares.index(max(shares))]


def _other_item(
    claim: ComparedSentence, item: Item, wanted: frozenset[str], least: float
) -> tuple[str, Sentence | None]:
    """Return the item of the same kind in the evidence sentence nearest to `wanted`."""
    best, found, source = least, "", None
    words = claim.evidence.weigh(wanted)
    for sentence in claim.evidence.sentences:
        known = next((known for known in _list_alike(claim, item, sentence)), None)
        share = words.share(sentence.stems) if known else 0.0
        if known and share >= best and (share > best or source is None):
            best, found, source = share, known.text, sentence
    return found, source


def _find_same_matter(claim: ComparedSentence, item: Item) -> tuple[str, Sentence | None]:
    """Return the evidence's item of the same matter and kind, and its sentence; nothing of two that tie.

    The sentence, with its passage's title, has at least `SAME_MATTER` of the words around the item in the
    claim's clause. Of several items of one sentence it is the one whose own clause has most of them.
    """
    words = claim.evidence.weigh(claim.around(item, claim.clause(item)) or claim.around(item))
    best: tuple[float, float] = (SAME_MATTER, 0.0)
    found: list[tuple[Item, Sentence]] = []
    for sentence in claim.evidence.sentences:
        alike = _list_alike(claim, item, sentence)
        share = words.share(sentence.stems) if alike else 0.0
        clauses = _list_clauses(sentence) if share >= best[0] else []
        for known in alike if clauses else ():
            own = next(stems for region, stems in clauses if known.start < region.end)
            near = (share, words.share(own))
            if near > best or (near == best and not found):
                best, found = near, []
            if near == best and all(known.key != other.key for other, _ in found):
                found.append((known, sentence))
    return (found[0][0].text, found[0][1]) if len(found) == 1 else ("", None)


def _list_clauses(sentence: Sentence) -> list[tuple[Region, frozenset[str]]]:
    """Return the clauses of a sentence with the stems of their content words."""
    cuts = [match.start() for match in CLAUSE_END.finditer(sentence.text)]
    regions = [Region(start, end) for start, end in pairwise([0, *cuts, len(sentence.text) + 1])]
    starts = [token.start for token in sentence.tokens]
    return [
        (
            region,
            collect_content_stems(
                sentence.tokens[bisect_left(starts, region.start) : bisect_left(starts, region.end)]
            ),
        )
        for region in regions
    ]


def _list_alike(claim: ComparedSentence, item: Item, sentence: Sentence) -> list[Item]:
    """Return the items of an evidence sentence that could stand in the place of one, and the claim lacks."""
    return [known for known in sentence.items if known.key not in claim.keys and _alike(item, known)]


def _alike(item: Item, known: Item) -> bool:
    """Return whether two different items could stand in each other's place."""
    if item.kind != known.kind or item.key == known.key:
        return False
    if item.kind == "quantity":
        return _dimension(item.key) == _dimension(known.key)
    if item.kind == "contact":
        return (item.key.isdigit(), "@" in item.key) == (known.key.isdigit(), "@" in known.key)
    if item.kind == "reference":
        return item.text[:3].lower() == known.text[:3].lower()
    if item.kind == "name":
        return item.key.split()[-1] == known.key.split()[-1]
    return item.kind == "date"


def _dimension(key: str) -> str:
    unit = key.split()[-1]
    if unit.startswith("t+"):
        return "t+"
    return "time" if unit in _TIMES else "money" if unit in _MONEY else unit


def _subject(claim: ComparedSentence, item: Item) -> Region | None:
    """Return what a contact is for: the name before it in its clause, else the content words before it.

    They are at most `REACH` words.
    """
    start = claim.clause(item).start
    for place in reversed(range(bisect_right(claim.item_ends, item.start))):
        other = claim.items[place]
        if other.start < start:
            break
        if other.kind == "name":
            return Region(other.start, other.end)
    run: list[Token] = []
    for place in reversed(range(claim.find_words(Region(0, item.start))[1])):
        token = claim.tokens[place]
        gap = claim.text[token.end : run[-1].start] if run else ""
        if token.content and not _OF_CONTACTS.match(token.stem) and not re.search(r"[,;:(]", gap):
            run.append(token)
        elif run:
            break
        if len(run) == REACH:
            break
    return Region(run[-1].start, run[0].end) if run else None
