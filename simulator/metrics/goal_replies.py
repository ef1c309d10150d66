"""Replies to goals whose right reply is known: answered, declined or asked back, without a judge.

Labels come with the goals of a pack (`scenarios/packs/goals.py`), and simulated users note the goal that a
message is about. Rules for nine languages tell what a reply does (`find_deed`). Where the user must be asked,
only the first turn about the goal counts: later messages may have said it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from hallulab.scenarios.packs.goals import Expected, GoalLabel
from hallulab.scenarios.text.declining import classify_reply, find_declining
from hallulab.scenarios.text.items import find_items
from hallulab.scenarios.text.scripts import UNSPACED
from hallulab.scenarios.text.spans import split_spoken_sentences
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import LAST, CsvTable, Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.columns import CHATBOT, PERCENT, Column, is_lacking
from hallulab.simulator.statistics.intervals import (
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_ratio_of_sums,
)
from hallulab.simulator.statistics.sums import PersonSums

Deed = Literal["answered", "hedged", "declined", "asked-back"]
"""The deed of a reply; `hedged`: it claims something beside a refusal, which may be right or not."""

EXPECTED: tuple[Expected, ...] = get_args(Expected)
DEEDS: tuple[Deed, ...] = get_args(Deed)
_CELLS = [(expected, deed) for expected in EXPECTED for deed in DEEDS]
_RIGHT = {
    ("answer", "answered"), ("answer", "hedged"), ("decline", "declined"), ("ask-back", "asked-back"),
}  # fmt: skip

_ASKS = re.compile(
    r"\byour?\b[^?]{0,300}\?\W{0,9}\Z|(?:(?<!\byou )\bneed to know|\btell me|\blet me know)\b"
    r"(?! (?:more|about it|when you)\b)"
    r"(?! if (?:anything|something|there|this|that|it|you (?:need|want|would|have))\b)",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    r"\b(?:(?:any|more|other|further) (?:\w+ ){0,2}questions?|(?:anything|something) (?:else|more)"
    r"|answer(?:ed)? (?:all )?your|satisfied)\b|\b(?:help|helpful|clear|useful)(?: (?:to|for) you)?\W*\Z",
    re.IGNORECASE,
)
"""In questions to the user that need no answer: `Do you have any other questions?`"""
_CONTRADICTION = re.compile(
    r"\b(?:contradict|inconsisten|disagree|conflicting\b|in conflict\b"
    r"|wid[ei]rspr[eiuü]ch|contradic|discrepan|contredi|incohéren|divergent)"
    r"|\b(?:documents?|sources?|passages?|texts?|pages?|versions?|information|they|these|both)\b"
    r"[^.;!?]{0,80}\bdiffer(?:s|ed|ing)?\b"
    r"|विरोधाभास|परस्पर विरोधी|मेल नहीं खा|تتناقض|متناقض|تناقض|تتعارض|矛盾|不一致|食い違|ขัดแย้ง|ไม่ตรงกัน",
    re.IGNORECASE,
)
_DENIED = re.compile(r"(?:\b(?:not|no|never|nor|without)|n['’]t)\b[^,;]{0,80}\Z", re.IGNORECASE)
_NEAR = 100
"""Characters before words of a contradiction in which a denial is looked for."""
_BESIDE = rf"[^\W{UNSPACED}]"
"""A letter or digit that makes a wording part of a longer word; scripts without spaces have none."""


def find_deed(reply: str, label: GoalLabel) -> Deed | None:
    """Return what a reply to a labelled goal does; None: it is a courtesy, or in a language without rules.

    Where the user must be asked, a question to the user counts, also beside a conditional answer. Where
    documents contradict each other, a reply that names what both say, or says that they contradict each
    other, counts as declining.

    >>> depends = GoalLabel(expect="ask-back", because="depends", needs="her age")
    >>> find_deed("It is free below 12, and 5 euros above. How old is she?", depends)
    'asked-back'
    >>> find_deed("It is free below 12, and 5 euros above.", depends)
    'answered'
    """
    kind = classify_reply(reply)
    if kind is None:
        return None
    sentences = [region.of(reply) for region in split_spoken_sentences(reply)]
    if label.expect == "ask-back" and any(map(_asks_the_user, sentences)):
        return "asked-back"
    if label.because == "contradiction" and _names_contradiction(reply, label.says):
        return "declined"
    if kind == "answers":
        return "hedged" if any(map(find_declining, sentences)) else "answered"
    deeds: dict[str, Deed] = {"declines": "declined", "asks back": "asked-back"}
    return deeds.get(kind)


def _asks_the_user(sentence: str) -> bool:
    kind = classify_reply(sentence)
    if kind == "courtesy" or (sentence.rstrip().endswith("?") and _CLOSES.search(sentence)):
        return False
    return kind == "asks back" or _ASKS.search(sentence) is not None


def _names_contradiction(reply: str, says: Sequence[str]) -> bool:
    plain = " ".join(re.sub("[*_`]", "", reply).split())
    if all(_is_said(one, plain) for one in says):
        return True
    found = [one.start() for one in _CONTRADICTION.finditer(plain)]
    return any(_DENIED.search(plain[max(0, at - _NEAR) : at]) is None for at in found)


def _is_said(wording: str, reply: str) -> bool:
    """Return whether a reply has words of a document, or their value however it is written."""
    items = find_items(wording)
    if len(items) == 1 and items[0].text == wording:
        return any((one.kind, one.key) == (items[0].kind, items[0].key) for one in find_items(reply))
    return re.search(rf"(?<!{_BESIDE}){re.escape(wording)}s?(?!{_BESIDE})", reply, re.IGNORECASE) is not None


class GoalReplyRow(Frozen):
    """A chatbot's replies to labelled goals: a row of `goal_replies` in `report.json`."""

    chatbot: str
    turns: int
    read: int
    coverage: Rounded | None
    right: Rounded | None
    right_ci95: Interval
    """Its 95% interval over personas; None: there are too few, or all have the same share."""
    over_answered: Rounded | None
    over_declined: Rounded | None
    asked_back: Rounded | None
    expected: dict[Expected, int]
    """Replies read by what is expected."""
    deeds: dict[Expected, dict[Deed, int]]
    """Replies read by what is expected and what they do."""


_COUNTS = [Column("", f"deeds.{expected}.{deed}") for expected, deed in _CELLS]
"""Columns of the CSV file alone."""


class GoalReplies(TableMetric[GoalReplyRow]):
    """Counts replies to labelled goals by what is expected and what they do."""

    NAME, TITLE, LINK, ROW = "goal_replies", "Goals with a known right reply", "Known goals", GoalReplyRow
    ORDER, TERMINAL_ORDER = 22, LAST + 1
    FILE = "with rows"
    COLUMNS = (
        CHATBOT,
        Column("Right %", "right", "share of the replies read that do what the goal's label expects", PERCENT,
               beside="right_ci95", short="Right %"),
        Column("of", "read", "replies to labelled goals that answer, decline or ask back", short="of"),
        Column("Over-answered %", "over_answered",
               "share that answers, without any refusal, where it should decline", PERCENT,
               short="Over-\nanswered %"),
        Column("of", "expected.decline", "replies that should decline"),
        Column("Over-declined %", "over_declined", "share that declines where the documents have the answer",
               PERCENT, short="Over-\ndeclined %"),
        Column("of", "expected.answer", "replies that should answer"),
        Column("Asked back %", "asked_back", "share that asks the user where it should", PERCENT,
               short="Asked\nback %"),
        Column("of", "expected.ask-back", "replies that should ask back"),
        Column("Coverage %", "coverage", "share of the turns about labelled goals whose reply is read",
               PERCENT, short="Cov.\n%", warns=is_lacking),
        Column("of", "turns", "turns about labelled goals"),
    )  # fmt: skip

    COUNTS = ("_sums",)
    HINTS = (
        "Some goals of the pack have a label: the documents answer them, do not, contradict each other, "
        "or the answer depends on what the user must be asked. Rules tell what each reply does; "
        "courtesies and replies in languages without rules are only in Coverage. They do not tell whether "
        "an answer is true. A reply that claims something beside a refusal is neither right nor "
        "over-answered where it should decline.",
    )

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._sums = PersonSums(1 + len(_CELLS))
        """By chatbot: turns about labelled goals, and the replies read by what is expected and done."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the replies of a conversation."""
        person = (conversation.scenario, conversation.persona)
        earlier = set[str]()
        for turn in conversation.turns:
            label = self.run.labels.get((conversation.persona, turn.goal or ""))
            if label is None or turn.goal is None:
                continue
            if label.expect == "ask-back" and turn.goal in earlier:
                continue
            earlier.add(turn.goal)
            done = (label.expect, find_deed(turn.reply, label))
            self._sums.add(person, (conversation.chatbot,), (1, *(cell == done for cell in _CELLS)))

    def table(self, tallied: Tallied) -> Sequence[GoalReplyRow]:
        """Return a row for each chatbot with a turn about a labelled goal."""
        return [
            _build_row(name, people)
            for name in self.run.chatbots
            if (people := [numbers for _, numbers in self._sums.items((name,))])
        ]

    @classmethod
    def csv(cls, report: RunReport) -> CsvTable | None:
        """Return the table with the counts of all replies read, by what is expected and what they do."""
        table = super().csv(report)
        return None if table is None else replace(table, columns=(*table.columns, *_COUNTS))


def _build_row(chatbot: str, people: Sequence[Sequence[int]]) -> GoalReplyRow:
    turns, *sums = map(sum, zip(*people, strict=True))
    counts = dict(zip(_CELLS, sums, strict=True))
    deeds = {expected: {deed: counts[expected, deed] for deed in DEEDS} for expected in EXPECTED}
    totals = {expected: sum(own.values()) for expected, own in deeds.items()}
    right = [
        Ratio(sum(number for cell, number in zip(_CELLS, own, strict=True) if cell in _RIGHT), sum(own))
        for _, *own in people
        if sum(own)
    ]

    def share(expected: Expected, deed: Deed) -> float | None:
        return compute_ratio_of_sums([Ratio(counts[expected, deed], totals[expected])])

    return GoalReplyRow(
        chatbot=chatbot,
        turns=turns,
        read=sum(totals.values()),
        coverage=compute_ratio_of_sums([Ratio(sum(totals.values()), turns)]),
        right=compute_ratio_of_sums(right),
        right_ci95=compute_interval(right, "share"),
        over_answered=share("decline", "answered"),
        over_declined=share("answer", "declined"),
        asked_back=share("ask-back", "asked-back"),
        expected=totals,
        deeds=deeds,
    )
