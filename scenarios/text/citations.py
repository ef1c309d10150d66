"""Citations in replies: numbers, names and links of the passages that a sentence rests on.

Read are `[1]`, `[1, 2]`, `[1–3]`, `[^1]`, `[citation:1]`, raised numbers (`free.¹`, `<sup>1</sup>`), Azure's
`[doc1]`, OpenAI's `【4:0†source】`, `[Document 2]`, `[Quelle 2]`, `[来源2]`, `(Source: refund-policy.md)`,
`[Refund policy](https://…)`, and the name of a passage where it stands in brackets, behind `according to` or
`see`, or is a file or an address. Footnotes and a list of sources at the end say what numbers stand for.
Numbers count from 1.

Every pattern looks at a bounded stretch from wherever it begins, so that its time grows with the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hallulab.scenarios.text.spans import Region

_NUMBERS = r"\^?\d{1,3}\^?(?:[ ]?[,;–-][ ]?\^?\d{1,3}\^?){0,20}"
_NUMBERED = (
    rf"\[{_NUMBERS}\](?::[ \t]++\S++(?=[ \t]*+(?:\n|\Z)))?|\[doc\d{{1,3}}\]|【[^】\n]{{0,100}}】"
    rf"|\[(?:citation|cite|doc|ref|source)[:_][ ]?{_NUMBERS}\]|［{_NUMBERS}］|\[\d{{1,3}}†[^\]\n]{{0,60}}\]"
)
NUMBERED_MARK = re.compile(_NUMBERED)
"""`[1]`, `[2, 3]`, `[^1]` and its line `[^1]: cards.md`; Azure's `[doc1]`, OpenAI's `【4:0†source】`."""
_RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_RAISED = (
    rf"<sup>\s?\[?\d{{1,3}}\]?\s?</sup>|(?:(?<=[^\W\d_]{{3}})|(?<=[.,;:!?…)\]\"'”’»。，、]))[{_RAISED_DIGITS}]{{1,3}}"
    rf"(?:[ ]?,[ ]?[{_RAISED_DIGITS}]{{1,3}}){{0,20}}"
)
"""Behind a word or a sentence; behind a short word or a number it is a power: `5 m²`."""

_LABELLED = (
    r"\[(?P<label>\[[^\[\]\n]{1,40}\]|[^\[\]\n]{1,200})\]"
    r"\((?P<address>[^()\s]{1,500}(?:\([^()\s]{0,100}\)[^()\s]{0,100})?)(?:[ ]\"[^\"\n]{0,200}\")?\)"
)
_LINK = re.compile(_LABELLED)
_LISTED_NUMBERS = r"\^?\d{1,3}(?:(?:[ ]?[,;&–-][ ]?|,?[ ]and[ ])\^?\d{1,3}){0,20}"
_SOURCES = r"sources?|quellen?|fuentes?|fontes?|fonti|来源|出处|出典|المصادر|المصدر|स्रोत|источники?|출처"
_SOURCE_LINE = (
    rf"(?:^|(?<=[.!?)\]] )|(?<=[。！？]))[*_>( -]{{0,4}}(?:{_SOURCES})[*_]{{0,2}}[ ]?[:：][*_ \t]{{0,4}}"
    r"(?P<source>[^\s\[\]][^\[\]\n]{0,299})"
)
_LEAD = r"\b(?:according to|(?:as )?(?:described|explained|mentioned|noted|stated) in|see)\s(?:the\s)?"
_SAYS = r"(?:add|confirm|emphasize|explain|highlight|indicate|mention|note|say|state|suggest)s?[ ]that"
_APART = rf"\s()（）\[\]<>\"'“”`*,;【】{_RAISED_DIGITS}"
"""Characters around the names of files and addresses, as they stand in a pattern's brackets."""
_MARK = re.compile(
    rf"!\[[^\[\]\n]{{0,200}}\]\([^()\s]{{1,500}}\)|(?P<link>{_LABELLED})|(?P<numbered>{_NUMBERED})"
    rf"|(?P<raised>{_RAISED})"
    r"|\[(?P<inside>[^\[\]\n]{1,200})\]|\((?P<aside>[^()\[\]\n]{1,200})\)|（(?P<wide>[^（）\n]{1,200})）"
    rf"|(?P<told>{_SOURCE_LINE})"
    rf"|(?P<spoken>(?:{_LEAD})?\b(?P<kind>(?:passage|excerpt|document|source)s?)[ ]"
    rf"(?P<spoken_numbers>{_LISTED_NUMBERS})\b(?:[ ]{_SAYS}\b)?)"
    rf"|(?P<lead>{_LEAD}[\"“*_`']{{0,3}})"
    rf"|(?P<token>(?<![^{_APART}])[^{_APART}./#_]{{1,100}}[./#_][^{_APART}]{{1,300}})",
    re.IGNORECASE | re.MULTILINE,
)
"""A place where a citation may stand; images are passed over, and words are read for names of files."""
_FOOTNOTE = re.compile(r"^[ \t]*+\[\^?(?P<label>[\w-]{1,40})\]:[ \t]++(?P<target>\S.*)$", re.MULTILINE)
_LIST_HEAD = re.compile(
    rf"^[ \t]*+[#*_]{{0,6}} ?(?:{_SOURCES}|references?|citations?)[*_:：]{{0,4}}[ \t]*+$",
    re.IGNORECASE | re.MULTILINE,
)
_LISTED = re.compile(
    r"^[ \t]*+(?P<mark>[-*•][ \t]++|\[\^?(?P<in_brackets>\d{1,3})\]:?|(?P<number>\d{1,3})[.):])?"
    r"[ \t]*+(?P<target>\S.*)$",
    re.MULTILINE,
)
_LOWERED = str.maketrans(_RAISED_DIGITS, "0123456789")
_RANGE = re.compile(r"(\d{1,3})(?: ?[–-] ?\^?(\d{1,3}))?")
_LONGEST_RANGE = 20
_UPLOADED = re.compile(r"(?P<first>\d{1,3})(?::(?P<second>\d{1,3}))?(?:†(?P<name>.*))?\Z")
"""`【4:0†source】` is the first file of the search, which counts from 0, `【1†source】` the first passage."""
_KINDS = (
    "chunk|context|doc(?:ument)?|excerpt|passage|ref(?:erence)?|source|quelle|dokument|textstelle|auszug|fuente"
    "|documento|pasaje|extrait|fonte|fonti|来源|出处|文档|文件|资料|資料|出典|文書|参考|المصدر|المستند|الوثيقة|स्रोत|दस्तावेज़"
    "|источник|документ|출처|문서"
)
"""Words for passages, in the languages of `hallulab.scenarios.text.refusals` and a few more."""
_NUMBERED_NAME = re.compile(
    rf"(?:(?:{_KINDS})s?:? ?[#№]?|[#№])?"
    rf"(?P<numbers>{_LISTED_NUMBERS})(?:[,;:] (?:chapter|line|p\.|page|para|section|step|§)[^\n]*)?\Z",
    re.IGNORECASE,
)
_TOLD_NAME = re.compile(rf"(?:{_SOURCES})[ ]?[:：]\s*(?P<source>.+)\Z", re.IGNORECASE)
_SEEN_NAME = re.compile(
    r"(?:see|from|cf\.|per|according to|source|ref(?:erence)?:?)\s+(?:the\s+)?", re.IGNORECASE
)
"""Words before a name, which cites only if a passage has it: `(Reference: AB-12)` may be of a booking."""
_BETWEEN = re.compile(r"[,;]")
_SECTION = re.compile(r"[,;:|(–—#]")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{1,4}\Z")
_FILE = re.compile(r"[^\s@]{1,300}\.[A-Za-z]\w{1,4}\Z|(?:https?://|www\.)\S{1,300}\Z", re.IGNORECASE)
_AROUND = " \t\"'“”‘’*_`.,;:"
_SHORTEST = 3
"""Characters of a name; a shorter one stands in too many places."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation; several numbers in the same brackets are several."""

    cited: tuple[int, ...]
    """Numbers of the passages, from 1: one, or of a name all that have it. A number may be higher than there
    are passages; a name that none has gives none."""
    name: str
    """The name that no passage has; empty of others."""
    place: Region
    marks: tuple[Region, ...]
    """The characters that say nothing but what is cited: of a link all but its label."""
    kind: Literal["mark", "words", "listed"] = "mark"
    """`mark`: behind what it is for; `words`: in a sentence, as `Passage 1 says`; `listed`: in a list of
    sources, in no sentence."""


@dataclass(frozen=True, slots=True)
class CitedReply:
    """A reply, and the citations in it."""

    citations: tuple[Citation, ...]
    plain: str
    """The reply with spaces in the place of their marks, of footnotes and of a list of sources."""


def read_citations(reply: str, names: Sequence[Iterable[str]]) -> CitedReply:
    """Read the citations of a reply.

    >>> read = read_citations("It is free [1, 4]. See fees.md.", [("cards",), ("fees.md",)])
    >>> [one.cited for one in read.citations], read.plain
    ([(1,), (4,), (2,)], 'It is free       .            .')

    Args:
        names: of each passage, such as its document, title and address.
    """
    return _CitationReader(reply, names).read()


def blank_regions(text: str, regions: Iterable[tuple[int, int]]) -> str:
    """Return a text with spaces in the place of regions; all else, and line breaks, stay where they are.

    >>> blank_regions("It is [1] free.", [(6, 9)])
    'It is     free.'
    """
    signs = list(text)
    for start, end in regions:
        signs[start:end] = [" " if sign != "\n" else sign for sign in signs[start:end]]
    return "".join(signs)


class _CitationReader:
    """Reads one reply."""

    def __init__(self, reply: str, names: Sequence[Iterable[str]]) -> None:
        self._reply = reply
        self._known = _index_names(names)
        self._count = len(names)
        self._by_length = sorted(self._known, key=len, reverse=True)
        self._targets: dict[str, str] = {}
        """Number or label of a footnote, or of a line in a list of sources → what it stands for."""
        self._lines: list[re.Match[str]] = []
        """Lines in lists of sources."""
        self._used = set[str | None]()
        """Numbers that are cited."""

    def read(self) -> CitedReply:
        """Read all of it."""
        apart = [*self._read_lists(), *self._read_footnotes()]
        text = blank_regions(self._reply, apart) if apart else self._reply
        found: list[Citation] = []
        at = 0
        while (match := _MARK.search(text, at)) is not None:
            own = list(self._read_mark(match))
            if match["spoken"] or match["lead"] or match["token"]:
                own = [replace(one, kind="words") for one in own]
            found += own
            # Brackets that cite nothing may hold words that do.
            inside = match["inside"] or match["aside"] or match["wide"]
            passed = match.start() + 1 if inside else match.end()
            at = own[-1].place.end if own else passed
        for line in self._lines:
            if (line["number"] or line["in_brackets"]) not in self._used:
                one = self._cite_name(line["target"], Region(*line.span()))
                found.append(replace(one, marks=(), kind="listed"))
        return CitedReply(tuple(found), blank_regions(text, {mark for one in found for mark in one.marks}))

    def _read_lists(self) -> Iterator[Region]:
        """Yield where lists of sources are, with their headings, and keep their lines."""
        for head in _LIST_HEAD.finditer(self._reply):
            end = head.end()
            for line in _LISTED.finditer(self._reply, end):
                if not line["mark"] and not self._is_source(line["target"]):
                    break
                self._lines.append(line)
                end = line.end()
                number = line["number"] or line["in_brackets"]
                if number:
                    self._targets.setdefault(number, line["target"])
            if end > head.end():
                yield Region(head.start(), end)

    def _read_footnotes(self) -> Iterator[Region]:
        """Yield where footnotes are that name a source, and keep what they name; of others their marks."""
        for match in _FOOTNOTE.finditer(self._reply):
            is_source = self._is_source(match["target"])
            if is_source:
                self._targets.setdefault(match["label"], match["target"])
            yield Region(match.start(), match.end() if is_source else match.start("target"))

    def _read_mark(self, match: re.Match[str]) -> Iterator[Citation]:
        """Yield the citations in a match of `_MARK`."""
        place = Region(*match.span())
        if match["link"]:
            yield from self._read_link(match, place)
        elif match["numbered"]:
            yield from self._read_numbered(match["numbered"], place)
        elif match["raised"]:
            yield from self._read_raised(match["raised"], place)
        elif match["inside"] or match["aside"] or match["wide"]:
            yield from self._read_words(match, place)
        elif match["told"]:
            yield from self._read_sources(match["source"], place)
        elif match["spoken"]:
            # `Bring documents 2 days before` cites nothing.
            if match["kind"][0].isupper() or match["kind"].startswith(("passage", "excerpt")):
                yield from self._cite_numbers(match["spoken_numbers"], place)
        elif match["lead"]:
            place = Region(match.start(), match.end() + self._measure_name(match.end()))
            name = self._reply[match.end() : place.end]
            if name and not _is_plain_word(name):
                yield self._cite_name(name, place)
        elif match["token"]:
            name = match["token"].rstrip(_AROUND + "!?")
            if _fold(name) in self._known:
                yield self._cite_name(name, Region(match.start(), match.start() + len(name)))

    def _read_link(self, match: re.Match[str], place: Region) -> Iterator[Citation]:
        label, address = match["label"], match["address"]
        number, is_known = _NUMBERED_NAME.match(label.strip(" []")), bool(self._resolve(match[0]))
        if number is not None and not is_known:
            yield from self._cite_numbers(number["numbers"], place)
        elif is_known or _FILE.match(address):
            says_more = number is None and not self._resolve(label)
            end = match.end("label")
            brackets = (Region(place.start, place.start + 1), Region(end, place.end))
            yield replace(self._cite_name(match[0], place), marks=brackets if says_more else (place,))

    def _read_numbered(self, mark: str, place: Region) -> Iterator[Citation]:
        if mark[0] != "【" and "†" not in mark:
            yield from self._cite_numbers(re.split("[]］]", mark, maxsplit=1)[0], place)
            return
        inside = mark[1:-1]
        uploaded = _UPLOADED.match(inside)
        if uploaded is None:
            yield self._cite_name(inside, place)
        else:
            number = int(uploaded["first"]) if uploaded["second"] is None else int(uploaded["second"]) + 1
            yield Citation(self._resolve(uploaded["name"] or "") or (number,), "", place, (place,))

    def _read_raised(self, mark: str, place: Region) -> Iterator[Citation]:
        """Yield the citations of raised numbers; `¹²` is 12 only where there are so many passages."""
        plain = mark.translate(_LOWERED).replace(" ", "")
        numbers = re.findall(r"\d{1,3}", plain)
        is_run = "<" not in mark and len(numbers) == 1 and "0" not in plain and int(plain) > self._count
        yield from self._cite_numbers(", ".join(plain if is_run else numbers), place)

    def _read_words(self, match: re.Match[str], place: Region) -> Iterator[Citation]:
        """Yield the citations in words in brackets."""
        words = (match["inside"] or match["aside"] or match["wide"]).strip()
        numbers, told = _NUMBERED_NAME.match(words), _TOLD_NAME.match(words)
        # `(2)` is a number of a list, `(Document 2)` is none.
        if numbers is not None and (match["inside"] or words[0].isalpha()):
            yield from self._cite_numbers(numbers["numbers"], place)
        elif told is not None:
            yield from self._read_sources(told["source"], place)
        elif match["inside"] and words.removeprefix("^") in self._targets:
            yield self._cite_name(self._targets[words.removeprefix("^")], place)
        else:
            name = _SEEN_NAME.sub("", words, count=1)
            parts = _BETWEEN.split(words)
            if len(parts) > 1 and all(map(self._resolve, parts)):
                yield from (self._cite_name(part, place) for part in parts)
            elif self._resolve(name) and (match["inside"] or not _is_plain_word(name)):
                yield self._cite_name(name, place)

    def _read_sources(self, words: str, place: Region) -> Iterator[Citation]:
        """Yield the citations behind `Source:`."""
        numbers = _NUMBERED_NAME.match(words.strip(_AROUND))
        if numbers is not None:
            yield from self._cite_numbers(numbers["numbers"], place)
            return
        parts = [words] if _fold(words) in self._known else _BETWEEN.split(words)
        for name in [part for part in parts if self._is_source(part)] or [words]:
            yield self._cite_name(name, place)

    def _cite_numbers(self, numbers: str, place: Region) -> Iterator[Citation]:
        for first, last in _RANGE.findall(numbers):
            span = range(int(first), int(last or first) + 1)
            for number in span if len(span) <= _LONGEST_RANGE else ():
                target = self._targets.get(str(number))
                self._used.add(str(number))
                if target is not None and self._is_source(target):
                    yield self._cite_name(target, place)
                else:
                    yield Citation((number,), "", place, (place,))

    def _cite_name(self, name: str, place: Region) -> Citation:
        cited = self._resolve(name)
        return Citation(cited, "" if cited else _list_spellings(name)[0].strip(_AROUND), place, (place,))

    def _is_source(self, words: str) -> bool:
        """Return whether words are the name of a passage, or of a file or page that no passage is of."""
        return bool(self._resolve(words)) or _FILE.match(_list_spellings(words)[0].strip(_AROUND)) is not None

    def _resolve(self, name: str) -> tuple[int, ...]:
        """Return the numbers of the passages that have a name, perhaps with a section behind it."""
        for spelling in _list_spellings(name):
            for part in (spelling, _SECTION.split(spelling, maxsplit=1)[0]):
                if found := self._known.get(_fold(part)):
                    return found
        return ()

    def _measure_name(self, start: int) -> int:
        """Return the length of the longest name that the reply has at a place; 0: it has none."""
        said = self._reply[start : start + len(next(iter(self._by_length), "")) + 1].casefold()
        for name in self._by_length:
            if said.startswith(name) and not said[len(name) : len(name) + 1].isalnum():
                return len(name)
        return 0


def _index_names(names: Sequence[Iterable[str]]) -> dict[str, tuple[int, ...]]:
    """Return name → numbers of the passages that have it, also without folders and the suffix of a file."""
    found: dict[str, dict[int, None]] = {}
    for number, own in enumerate(names, start=1):
        for name in own:
            whole = _fold(name)
            base = whole.rstrip("/").rpartition("/")[2]
            stem = _SUFFIX.sub("", base)
            for key in (whole, base, stem, re.sub("[-_]+", " ", stem)):
                if len(key) >= _SHORTEST and not key.isdigit():
                    found.setdefault(key, {})[number] = None
    return {key: tuple(numbers) for key, numbers in found.items()}


def _fold(name: str) -> str:
    return " ".join(name.split()).casefold().strip(_AROUND)


def _is_plain_word(name: str) -> bool:
    """Return whether a name may as well be a word of the sentence: `see films`."""
    return name.isalpha() and name.islower()


def _list_spellings(name: str) -> tuple[str, ...]:
    """Return the address and the label of a link; of another name, it."""
    link = _LINK.search(name)
    return (name,) if link is None else (link["address"], link["label"])
