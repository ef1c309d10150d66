"""Citations of replies: is the cited passage there, and does it support the sentence that cites it?

A citation is right if its passage is among those of the turn, and supports the sentence alone, or together
with the others that the sentence cites where these do not without it. That is the citation precision of ALCE
(Gao et al. 2023, Enabling large language models to generate text with citations, EMNLP, section 4.3). Two
things are ours. Where a sentence has marks in several places, each stands for the words since the one before.
And the support search of `support.py` decides in place of a model: it finds few right statements in other
words, so a citation that it does not support is wrong only if the passage is of something else.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hallulab.chatbots.evidence import STEP
from hallulab.detectors.explanations.evidence import TITLE
from hallulab.scenarios.text.citations import Citation, read_citations
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.declining import is_declining
from hallulab.scenarios.text.languages import ENGLISH, identify_language
from hallulab.scenarios.text.spans import Region, split_spoken_sentences
from hallulab.scenarios.transcript import Conversation, Frozen, Passage
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import LAST, Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.support import LACKS, SUPPORTS, DocumentIndex, Statement, read_statement
from hallulab.simulator.metrics.turn_reading import Library
from hallulab.simulator.show.columns import CHATBOT, GROUPED, PERCENT, Column, is_lacking
from hallulab.simulator.statistics.intervals import (
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_ratio_of_sums,
)
from hallulab.simulator.statistics.sums import PersonSums


class JudgedCitation(NamedTuple):
    """A citation, beside the passages of its turn."""

    citation: Citation
    is_there: bool
    """True if the turn has the passage."""
    is_right: bool | None
    """None: undetermined."""


def judge_citations(reply: str, passages: Sequence[Passage], user_text: str = "") -> list[JudgedCitation]:
    """Judge the citations of a reply, but those in sentences that claim nothing.

    These are questions, courtesies, and sentences that decline. In other languages than English, all
    citations are undetermined.

    Args:
        passages: those of its turn, in the order of their numbers.
        user_text: what the user said up to it; links in it are no citations.
    """
    read = read_citations(reply, [list_names(passage) for passage in passages])
    if not read.citations:
        return []
    given = "\n".join([user_text, *(passage.text for passage in passages)])
    cited = [one for one in read.citations if not one.name or one.name not in given]
    judge = _Judge(reply, passages, user_text)
    if identify_language(read.plain) not in (ENGLISH, None):
        return [JudgedCitation(one, judge.choose(one) is not None, None) for one in cited]
    in_lists = [(one, judge.choose(one) is not None) for one in cited if one.kind == "listed"]
    found = [JudgedCitation(one, there, None if there else False) for one, there in in_lists]
    for sentence, own in group_by_sentence(read.plain, [one for one in cited if one.kind != "listed"]):
        found += judge.judge_sentence(read.plain, sentence, own)
    return found


def list_names(passage: Passage) -> tuple[str, ...]:
    """Return the names by which a reply may cite a passage: identifier, document, and title."""
    first = passage.text.partition("\n")[0]
    return passage.id, passage.document, first.removeprefix(TITLE) if first.startswith(TITLE) else ""


FOREIGN, BETTER = 0.1, 0.2
"""Share of a statement's words below which a passage is about something else, and by how much more another
one has to have: a right statement in other words has few of its passage's (docs/studies/blame.md)."""
_Places = frozenset[int]
"""Places of passages in the turn, from 0."""


class _Judge:
    """Judges the citations of a reply."""

    def __init__(self, reply: str, passages: Sequence[Passage], user_text: str) -> None:
        self._reply = reply
        self._passages = passages
        self._user_text = user_text
        self._index = DocumentIndex(passages)

    def choose(self, citation: Citation) -> _Places | None:
        """Return the places of the cited passages: several of one document; None: they are not there."""
        places = frozenset(number - 1 for number in citation.cited)
        return places if places and 0 <= min(places) <= max(places) < len(self._passages) else None

    def judge_sentence(
        self, text: str, sentence: Region, citations: Sequence[Citation]
    ) -> Iterator[JudgedCitation]:
        """Yield the citations of a sentence, judged; nothing if it claims nothing.

        Args:
            text: the reply without marks.
            sentence: where it is.
            citations: all that it has, in order.
        """
        said = sentence.of(text)
        # `Passage 1 does not say who pays` declines, and has no subject without its mark.
        whole_said = self._reply[min(sentence.start, citations[0].place.start) : sentence.end]
        if said.rstrip(_CLOSERS).endswith("?") or is_declining(whole_said) or claims_nothing(said):
            return
        if citations[0].kind == "words" and _DESCRIBES.match(self._reply, citations[0].place.end):
            return
        whole = read_statement(said, self._user_text)
        chosen = [self.choose(one) for one in citations]
        parts = list(_split_by_place(text, sentence, citations))
        has_words = any(one.kind == "words" for one in citations)
        of_whole: dict[_Places, bool | None] = {}
        for part, first, end in parts:
            statement = None if has_words else read_statement(part.of(text), self._user_text)
            beside, known = (chosen, of_whole) if statement is None else (chosen[first:end], {})
            for one, places in zip(citations[first:end], chosen[first:end], strict=True):
                if places is not None and places not in known:
                    known[places] = self._judge(statement or whole, places, beside)
                is_right = False if places is None else known[places]
                if places is not None and is_right is False and statement is None and len(parts) > 1:
                    is_right = None  # Which words of the sentence are its own is not known.
                yield JudgedCitation(one, places is not None, is_right)

    def _judge(
        self, statement: Statement | None, own: _Places, cited: Sequence[_Places | None]
    ) -> bool | None:
        """Return whether passages are rightly cited for a statement.

        Args:
            statement: None: it has too few words.
            cited: those of all citations of the statement.
        """
        if statement is None:
            return None
        alone = self._supports(statement, own)
        others = frozenset[int]().union(*(one for one in cited if one is not None)) - own
        if others and alone is not True:
            together = self._supports(statement, own | others)
            if together is not False:
                without = self._supports(statement, others)
                if without is False:
                    return together
                alone = alone if without else None
        return None if alone is False and not self._is_foreign(statement, own) else alone

    def _supports(self, statement: Statement, places: _Places) -> bool | None:
        passages = self._pick(places)
        if any(identify_language(passage.text) not in (ENGLISH, None) for passage in passages):
            return None
        share, has_items = self._index.rate_together(statement, passages)
        if not has_items or share < LACKS:
            return False
        return True if share >= SUPPORTS else None

    def _is_foreign(self, statement: Statement, places: _Places) -> bool:
        """Return whether passages that do not support a statement are of something else.

        They lack one of its items or nearly all words, or another passage of the turn has far more.
        """
        share, has_items = self._index.rate_together(statement, self._pick(places))
        rest = [one for place, one in enumerate(self._passages) if place not in places]
        others = (self._index.rate_together(statement, [one])[0] for one in rest)
        return not has_items or share < FOREIGN or max(others, default=0.0) >= share + BETTER

    def _pick(self, places: _Places) -> list[Passage]:
        return [self._passages[place] for place in sorted(places)]


_CLOSERS = " \n\t\"'”’)]*_"
_WORD = re.compile(r"\w")
_DESCRIBES = re.compile(
    r"\W*(?:also |only )?(?:contain|cover|describe|discuss|emphasize|explain|focus|give|highlight|include"
    r"|list|offer|present|provide)(?:e?s)?\b(?! that\b)"
)
"""`Passage 1 describes the fees`: no claim, as `declining.py` has it."""


def group_by_sentence(text: str, citations: Sequence[Citation]) -> Iterator[tuple[Region, list[Citation]]]:
    """Yield the sentences that cite, with their citations.

    A mark behind a full stop belongs to the sentence before it, unless the next one goes on in small letters.
    One at the beginning of a line belongs to the next, as do words. Words without a sentence are left out:
    `Passage 1:` over a list.

    Args:
        text: the reply without marks.
        citations: in order.
    """
    sentences = split_spoken_sentences(text)
    starts = [one.start for one in sentences]
    breaks = [match.start() for match in re.finditer("\n", text)]

    def is_one_line(start: int, end: int) -> bool:
        return bisect_left(breaks, start) == bisect_left(breaks, end)

    found: dict[int, list[Citation]] = {}
    for one in citations:
        after = bisect_right(starts, one.place.start)
        place = after - 1
        if after < len(sentences) and (place < 0 or sentences[place].end <= one.place.start):
            begins = place < 0 or not is_one_line(sentences[place].end, one.place.start)
            goes_on = one.kind == "words" or text[starts[after]].islower()
            if (begins or goes_on) and is_one_line(one.place.end, starts[after]):
                place = after
        is_apart = place >= 0 and one.kind == "words" and sentences[place].end <= one.place.start
        if place >= 0 and not is_apart:
            found.setdefault(place, []).append(one)
    for place in sorted(found):
        yield sentences[place], found[place]


def _split_by_place(
    text: str, sentence: Region, citations: Sequence[Citation]
) -> Iterator[tuple[Region, int, int]]:
    """Yield the parts of a sentence, and the range of their citations: the words up to marks side by side.

    Args:
        text: the reply without marks.
        sentence: where it is.
        citations: in order.
    """
    ends = [
        number
        for number, (one, other) in enumerate(pairwise(citations), start=1)
        if _WORD.search(text, one.place.end, other.place.start)
    ]
    start = sentence.start
    for first, end in pairwise([0, *ends, len(citations)]):
        stop = citations[end - 1].place.end if end < len(citations) else sentence.end
        yield Region(start, stop), first, end
        start = stop


class CitationRow(Frozen):
    """The citations of a chatbot."""

    chatbot: str
    citations: int
    judged: int
    """Those that are known to be right or wrong."""
    coverage: Rounded | None
    right: Rounded | None
    """Share of those judged that are right; None: there are none."""
    right_ci95: Interval
    """Its 95% interval over personas; None: there are too few, or all have the same share."""
    not_there: int


class CitedPassages(TableMetric[CitationRow]):
    """Counts citations that are right.

    Turns without passages are left out: it is not known if the chatbot read none.
    """

    NAME, TITLE, LINK, ROW = "citations", "Citations", "Citations", CitationRow
    ORDER, TERMINAL_ORDER = 23, LAST + 2
    COLUMNS = (
        CHATBOT,
        Column("Citations", "citations",
               "citations (number, name, link) in sentences that claim something and in lists of sources",
               GROUPED, short="Citations"),
        Column("Judged %", "coverage", "share of these that rules can tell right from wrong", PERCENT,
               short="Judged\n%", warns=is_lacking),
        Column("Citations right %", "right",
               "share of those judged whose passage is in the turn and supports the sentence, alone or as a "
               "necessary part of those cited", PERCENT, beside="right_ci95", short="Citations\nright %"),
        Column("Not there", "not_there", "citations of a passage that the turn lacks; they are wrong",
               GROUPED, short="Not\nthere"),
    )  # fmt: skip

    COUNTS = ("_sums",)

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._sums = PersonSums(4)
        """By chatbot: citations, judged ones, right ones, and those that are not there."""
        self._library = Library((), run.planned)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the citations of a conversation."""
        if not self._library.is_examined(conversation):
            return
        person = (conversation.scenario, conversation.persona)
        said = [message.text for message in conversation.given if message.role == "user"]
        for turn in conversation.turns:
            said.append(turn.user)
            if not turn.passages or any(step.name == STEP for step in turn.steps):
                continue
            for one in judge_citations(turn.reply, turn.passages, "\n".join(said)):
                is_absent = one.is_right is False and not one.is_there
                counts = (1, int(one.is_right is not None), int(one.is_right is True), int(is_absent))
                self._sums.add(person, (conversation.chatbot,), counts)

    def table(self, tallied: Tallied) -> Sequence[CitationRow]:
        """Return a row for each chatbot, also one that cites nothing; none if no chatbot cites."""
        if not any(True for _ in self._sums.keys):
            return []
        return [self._row(chatbot) for chatbot in self.run.chatbots]

    @classmethod
    def hints(cls, report: RunReport) -> Sequence[str]:
        """Explain the rules."""
        return [
            "Rules compare the sentence that cites with the cited passage, by words and numbers, as they do "
            "for whose fault a hallucination is (docs/blame.md). Where that is not clear, and in other "
            "languages than English, a citation is not judged. Of large runs, the conversations of a part of "
            f"the users are examined. {report.intervals.hint}"
        ]

    def _row(self, chatbot: str) -> CitationRow:
        sums = [numbers for _, numbers in self._sums.items((chatbot,))]
        citations, judged, _, not_there = [sum(column) for column in zip(*sums, strict=True)] or [0] * 4
        ratios = [Ratio(one[2], one[1]) for one in sums if one[1]]
        return CitationRow(
            chatbot=chatbot,
            citations=citations,
            judged=judged,
            coverage=judged / citations if citations else None,
            right=compute_ratio_of_sums(ratios),
            right_ci95=compute_interval(ratios, "share"),
            not_there=not_there,
        )
