"""Say in a sentence why a statement is wrong by the evidence.

Pure text rules, no model: the same sentence and evidence give the same answer. A reason says only what the
texts show: words that no passage has, in any form in which two words count as the same, or a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hallulab.detectors.explanations.claim import (
    ComparedSentence,
    choose_main_words,
    find_unsaid,
    list_unknown_words,
    read_claim,
)
from hallulab.detectors.explanations.evidence import (
    Sentence,
    collect_content_stems,
    read_evidence,
    read_tokens,
)
from hallulab.detectors.explanations.findings import Fault, SentenceFault, find_differences, find_wrong
from hallulab.scenarios.text.page_marks import blank_marks
from hallulab.scenarios.text.spans import Region
from hallulab.scenarios.transcript import Frozen, Passage

MOST_WORDS = 40
"""Most words of a reason; findings that do not fit are left out."""
_EXCERPT = 12
"""Words of the evidence in a quotation."""
_CHARACTERS = 160
"""Most characters of a quotation."""
_NEAR = 0.3
"""Share of the sentence from which the nearest evidence sentence is quoted."""
_LISTED = 5
"""Most items, or words, that are named; of more, all but the first four are only counted."""
_TELLING = frozenset(
    {"first", "second", "third", "last", "next", "only", "more", "most", "less", "least", "few", "many"}
    | {"all", "any", "both", "each", "every", "everyone", "everything", "everywhere", "some", "several"}
    | {"above", "below", "before", "after", "over", "under", "until", "since", "up", "down", "between"}
    | {"no", "not", "none", "never", "always", "often", "nobody", "nothing", "without", "except", "either"}
    | {"must", "cannot", "should"}
)
"""Words that are no content words, and may be all that is wrong."""
_USERS_CASE = re.compile(
    r"\b(?:in (?:your|this|the user's) case|you (?:said|mentioned|told))\b", re.IGNORECASE
)


def word_reason(claim: ComparedSentence, found: Sequence[SentenceFault]) -> str:
    """Return one or two sentences on the surest findings.

    Args:
        claim: the sentence beside its evidence.
        found: as from `find_wrong`.
    """
    if not claim.evidence.sentences:
        return f"There is no evidence that could support {_quoted(choose_main_words(claim).of(claim.text))}."
    first = found[0]
    told, *parts = _absent(claim, found) if first.fault == "absent" else _SAYING[first.fault](claim, first)
    for part in parts:
        if len(f"{told} {part}".split()) <= MOST_WORDS:
            told = f"{told} {part}"
    return told


def cut_excerpt(source: Sentence, wanted: frozenset[str], must: str = "") -> str:
    """Return the stretch of an evidence sentence, verbatim, that has most of the words wanted.

    It begins where a clause begins, unless that costs a word.

    Args:
        must: text that it has to hold, verbatim; empty: nothing.
    """
    words = [match.span() for match in re.finditer(r"\S+", source.text)]
    told = {token.start for token in source.tokens if token.content and token.stem in wanted}
    held = [any(at in told for at in range(start, end)) for start, end in words]
    inside = {at for item in source.items for at in range(item.start + 1, item.end)}
    at = source.text.find(must)
    best, chosen = -9.0, 0
    for first, (start, _) in enumerate(words):
        end = words[min(first + _EXCERPT, len(words)) - 1][1]
        holds = not must or (start <= at and at + len(must) <= end)
        opens = first == 0 or source.text[words[first - 1][1] - 1] in ",;:"
        cuts = (start in inside) + (end in inside)
        value = sum(held[first : first + _EXCERPT]) + 100 * holds + opens / 2 - cuts
        if value > best:
            best, chosen = value, first
    last = min(chosen + _EXCERPT, len(words)) - 1
    return source.text[words[chosen][0] : words[last][1]].rstrip(" ,;:.(")


def _absent(claim: ComparedSentence, found: Sequence[SentenceFault]) -> list[str]:
    missing = [one for one in found if one.fault == "absent"]
    listed = _list([one.place.of(claim.text) for one in missing], "and")
    told = f"{listed} {'is' if len(missing) == 1 else 'are'} not in the evidence"
    other = missing[0]
    if other.instead and other.source:
        excerpt = _quoted(cut_excerpt(other.source, claim.stems, other.instead))
        return [f"{told}; on the same matter it has {_quoted(other.instead)}.", f"It says: {excerpt}."]
    more = find_unsaid(claim, [one.place for one in missing])
    return [f"{told}.", *(_name_unknown(claim, more) if more else [])]


def _misattributed(claim: ComparedSentence, finding: SentenceFault) -> list[str]:
    item = _quoted(finding.place.of(claim.text))
    of_contact = finding.item is not None and finding.item.kind == "contact"
    if finding.instead and not of_contact:
        told = f"On this the evidence has {_quoted(finding.instead)}, not {item}."
        return [told, f"It has {item} in another connection: {_cited(claim, finding)}."]
    assert finding.source is not None
    there = finding.source.stems.union(token.stem for token in finding.source.tokens)
    beside = list_unknown_words(claim, finding.about, there) if finding.about else []
    told = f"The evidence has {item} in: {_cited(claim, finding)}"
    if beside:
        told += f"; {_name_words(beside, 'and')} {'is' if len(beside) == 1 else 'are'} not there"
    told += "."
    if of_contact and finding.about and finding.instead:
        return [told, f"For {_quoted(finding.about.of(claim.text))} it has {_quoted(finding.instead)}."]
    return [told, *_title(claim, finding)]


def _differs(claim: ComparedSentence, finding: SentenceFault) -> list[str]:
    if finding.fault == "condition":
        known = collect_content_stems(read_tokens(finding.instead)) & claim.stems
        left_out = f"{'partly ' if known else ''}left out here: {_quoted(_first_words(finding.instead))}"
        return [f"The nearest evidence has a condition that is {left_out}."]
    here = _quoted(finding.place.of(claim.text))
    return [f"Where the sentence says {here}, the evidence says {_quoted(finding.instead)}."]


def _unsupported(claim: ComparedSentence, finding: SentenceFault) -> list[str]:
    if _USERS_CASE.search(claim.text):
        known = claim.evidence.words | claim.said.words
        unknown = list_unknown_words(claim, finding.place, known)
        if unknown:
            return [f"Neither the evidence nor the user has {_name_words(unknown, 'or')}."]
    told = _name_unknown(claim, finding.place) or [
        f"No single sentence of the evidence has all words of {_quoted(finding.place.of(claim.text))}."
    ]
    return [*told, f"The nearest evidence is: {_cited(claim, finding)}."] if claim.share >= _NEAR else told


def _elsewhere(claim: ComparedSentence, finding: SentenceFault) -> list[str]:
    here = _quoted(finding.place.of(claim.text))
    if finding.source is None:
        return [f"{here} has no word to compare with the evidence."]
    words = list_unknown_words(claim, finding.place, claim.evidence.words, content=False)
    lacking = [word for word in words if not claim.evidence.has_text(word)]
    telling = [word for word in lacking if word.lower() in _TELLING]
    told = f"all {'content ' if lacking else ''}words of {here}"
    if telling:
        told += f", but not {_list(telling, 'or')}"
    return [
        f"The evidence has {told}; the nearest sentence is: {_cited(claim, finding)}.",
        *_title(claim, finding),
    ]


def _name_unknown(claim: ComparedSentence, place: Region) -> list[str]:
    """Return a sentence that names the words of a stretch that no passage has; nothing if all have one."""
    words = list_unknown_words(claim, place, claim.evidence.words)
    unknown = [word for word in words if not claim.evidence.has_text(word)]
    return [f"No passage has {_name_words(unknown, 'or')}."] if unknown else []


def _name_words(words: Sequence[str], joint: str) -> str:
    return f"the {'word' if len(words) == 1 else 'words'} {_list(words, joint)}"


def _list(texts: Sequence[str], joint: str) -> str:
    shown = texts if len(texts) <= _LISTED else texts[: _LISTED - 1]
    named = [*map(_quoted, shown)]
    if len(texts) > len(shown):
        named.append(f"{len(texts) - len(shown)} others")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} {joint} {named[-1]}"


_SAYING = {
    "misattributed": _misattributed,
    "replaced": _differs,
    "negated": _differs,
    "condition": _differs,
    "unsupported": _unsupported,
    "elsewhere": _elsewhere,
}


def _cited(claim: ComparedSentence, finding: SentenceFault) -> str:
    """Return the evidence sentence, or the title if only that has it."""
    assert finding.source is not None
    title = claim.evidence.titles[finding.source.passage]
    if (
        finding.fault != "unsupported"
        and title
        and not collect_content_stems(claim.inside(finding.place)) & finding.source.own
    ):
        return _quoted(_first_words(title))
    held = [known.text for known in finding.source.items if finding.item and known.key == finding.item.key]
    return _quoted(cut_excerpt(finding.source, claim.stems, held[0] if held else ""))


def _title(claim: ComparedSentence, finding: SentenceFault) -> list[str]:
    """Return what the passage is about, if neither sentence nor user speak of it."""
    title = claim.evidence.titles[finding.source.passage] if finding.source else ""
    about = claim.evidence.about[finding.source.passage] if finding.source else frozenset[str]()
    known = claim.stems | claim.said.stems
    apart = bool(title) and 2 * len(about & known) < len(about)
    return [f"That passage is about {_quoted(title)}."] if apart else []


def _first_words(text: str) -> str:
    return " ".join(text.split()[:_EXCERPT])


def _quoted(text: str) -> str:
    return f'"{" ".join(text.split())[:_CHARACTERS]}"'


_WORDLESS = "There is nothing to check here."


class WrongItem(Frozen):
    """A piece of the sentence that is wrong."""

    fault: Fault
    start: int
    """First character in the sentence."""
    end: int
    """One past the last character."""
    text: str
    """The piece: `sentence[start:end]`."""
    instead: str = ""
    """The evidence's text in its place, verbatim; empty: nothing like it."""
    evidence: str = ""
    """The evidence sentence that it was compared with; empty: none."""
    passage: int | None = None
    """Position of that sentence's passage."""


class Explanation(Frozen):
    """Why a sentence is wrong."""

    items: tuple[WrongItem, ...]
    """Faults, the surest first; empty only where the sentence has no words."""
    reason: str
    """One or two sentences, at most about 40 words, with quotations; never empty."""
    passage: int | None = None
    """Position of the passage that the surest finding was compared with; None: none has a word of it."""


class Signals(Frozen):
    """How far a sentence is from its evidence; a learnt mixture reads it beside a judge's answer."""

    items: int
    """Numbers, contacts, references, dates and names in the sentence."""
    unsupported_items: float
    """Share of them that neither evidence nor user have; 0 without items."""
    misattributed: float
    """How far the evidence has an item only for something else, from 0 to 1; the largest over the items."""
    negation_differs: bool
    """True if the evidence says the opposite in nearly the same words."""
    condition_differs: bool
    """True if the evidence, in nearly the same words, has a condition that the sentence leaves out."""
    missing_in_sentence: float
    """Share of the different content words that the best evidence sentence and its passage's title lack."""
    missing_in_passage: float
    """The share that the best passage lacks."""
    missing_in_all: float
    """The share that all passages lack. The shares are 0 without content words."""


def explain(sentence: str, passages: Sequence[Passage], user_text: str = "") -> Explanation:
    """Find what is wrong in a flagged sentence beside what the user said, questions too, and say it."""
    claim = _claim(blank_marks(sentence, list_numbers=False), passages, user_text)
    if not claim.tokens:
        return Explanation(items=(), reason=_WORDLESS)
    found = find_wrong(claim)
    cited = found[0].source or claim.best
    return Explanation(
        items=tuple(
            WrongItem(
                fault=one.fault,
                start=one.place.start,
                end=one.place.end,
                text=one.place.of(sentence),
                instead=one.instead,
                evidence=one.source.text if one.source else "",
                passage=one.source.passage if one.source else None,
            )
            for one in found
        ),
        reason=word_reason(claim, found),
        passage=cited.passage if cited else None,
    )


def find_signals(sentence: str, passages: Sequence[Passage], user_text: str = "") -> Signals:
    """Return the same analysis as numbers, for any sentence, flagged or not. Arguments as in `explain`."""
    claim = _claim(sentence, passages, user_text)
    evidence = claim.evidence
    found = find_wrong(claim) if claim.tokens else []
    differing = {difference.kind for difference in find_differences(claim)}
    missing = [_missing(claim.stems, held) for held in evidence.passages]
    return Signals(
        items=len(claim.items),
        unsupported_items=sum(map(claim.absent, claim.items)) / max(len(claim.items), 1),
        misattributed=max((one.strength for one in found if one.fault == "misattributed"), default=0.0),
        negation_differs="negated" in differing,
        condition_differs="condition" in differing,
        missing_in_sentence=_missing(claim.stems, claim.best.stems if claim.best else frozenset()),
        missing_in_passage=min(missing, default=_missing(claim.stems, frozenset())),
        missing_in_all=_missing(claim.stems, evidence.stems),
    )


def _claim(sentence: str, passages: Sequence[Passage], user_text: str) -> ComparedSentence:
    return read_claim(sentence, read_evidence(tuple(passage.text for passage in passages)), user_text)


def _missing(wanted: frozenset[str], held: frozenset[str]) -> float:
    return len(wanted - held) / len(wanted) if wanted else 0.0
