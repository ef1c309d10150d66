"""The list of conversations and a conversation: replies cut where flagging changes, and their evidence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import fsum
from typing import TYPE_CHECKING

from hallulab.detectors.explanations.evidence import TITLE
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.transcript import Conversation, Passage, Span, Step, Turn, Verdict
from hallulab.simulator.annotate.marks import identify_flag
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.cited import CitedEvidence, EvidenceFinder, is_passage
from hallulab.simulator.report.reader import cut_scored_words, cut_segments, name_state
from hallulab.simulator.report.scores import LaneScore, read_lane_scores
from hallulab.simulator.viewer.labels import Labelling
from hallulab.simulator.viewer.responses import answer_page, find_run, missing_page
from hallulab.simulator.viewer.runs import ShownRuns, read_with_evidence

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


A_PAGE = 50
"""Conversations on a page of the list."""

MOST_NAMES = 500
"""Personas up to which they are listed to choose from; of more, a name is typed."""

_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"[\"“]([^\"”]{12,})[\"”]")
"""Words that a reason quotes, if they are more than a name."""


class ConversationPages:
    """Answers the addresses of conversations."""

    def __init__(self, runs: ShownRuns, labelling: Labelling) -> None:
        self._runs = runs
        self._labelling = labelling

    def list_routes(self) -> list[Route]:
        """Return the addresses."""
        from starlette.routing import Route

        return [
            Route("/runs/{run}/conversations", self.show_list),
            Route("/runs/{run}/conversations/{chat}", self.show_conversation),
            Route("/runs/{run}/conversations/{chat}/{direction}/{turn:turn}", self.find_flagged),
        ]

    def show_list(self, request: Request) -> Response:
        """Show some conversations of a run."""
        run, asked = find_run(self._runs, request.path_params["run"]), request.query_params
        chatbot, persona, flagged = asked.get("chatbot", ""), asked.get("persona", ""), "flagged" in asked
        page = max(1, int(asked["page"])) if re.fullmatch("[0-9]{1,8}", asked.get("page", "")) else 1
        number, chats = run.index.list_chats(chatbot, persona, flagged, (page - 1) * A_PAGE, A_PAGE)
        return answer_page(
            "list.html",
            run=run,
            chats=chats,
            number=number,
            page=page,
            pages=-(-number // A_PAGE),
            asked={"chatbot": chatbot, "persona": persona, **({"flagged": "1"} if flagged else {})},
            chatbots=run.index.list_names("chatbot", MOST_NAMES),
            personas=run.index.list_names("persona", MOST_NAMES),
        )

    def show_conversation(self, request: Request) -> Response:
        """Show a conversation."""
        run = find_run(self._runs, request.path_params["run"])
        found = read_with_evidence(run, request.path_params["chat"])
        if found is None:
            raise missing_page()
        chat, verdicts = found
        return answer_page(
            "conversation.html",
            run=run,
            chat=chat,
            turns=show_turns(chat, verdicts, list_lane_scores(run.folder, verdicts)),
            others=run.index.list_case(chat.id),
            labelling=self._labelling,
            marks=f"{run.address_chat(chat.id)}/marks",
            settling=False,
        )

    def find_flagged(self, request: Request) -> Response:
        """Lead to the next or the previous flagged turn."""
        from starlette.responses import RedirectResponse

        run, asked = find_run(self._runs, request.path_params["run"]), request.path_params
        if asked["direction"] not in ("next", "previous"):
            raise missing_page()
        found = run.index.find_flagged(asked["chat"], asked["turn"], asked["direction"] == "next")
        if found is None:
            where = "end" if asked["direction"] == "next" else "start"
            return RedirectResponse(f"/runs/{run.id}/conversations/{asked['chat']}#{where}", 303)
        return RedirectResponse(f"/runs/{run.id}/conversations/{found[0]}#turn-{found[1]}", 303)


def list_detectors(saved: Iterable[SavedExperiment], verdicts: Sequence[Verdict]) -> list[str]:
    """Return the detectors of runs, in the order of what these saved, then others that judged."""
    named = [name for one in saved for name in one.detectors]
    return list(dict.fromkeys([*named, *sorted({verdict.detector for verdict in verdicts})]))


def list_lane_scores(folder: RunFolder, verdicts: Sequence[Verdict]) -> list[LaneScore]:
    """Return how the scores of a run's detectors are read, in their order."""
    known = folder.read_experiment()
    saved = [] if known is None else [known]
    return read_lane_scores(saved, list_detectors(saved, verdicts))


@dataclass(frozen=True)
class ReplyPiece:
    """A piece of a reply."""

    text: str
    findings: tuple[int, ...]
    """The lane's findings that cover it, by their places."""


@dataclass(frozen=True)
class ShownFinding:
    """A hallucination by a detector."""

    span: Span
    flag: str
    """Its name in the keys of annotators."""
    turn: int
    """The turn that has the passage."""
    passage: int | None
    """Place of the passage that its evidence is about; None: it cites none that the chatbot was given."""
    sentence: int | None
    """Place of the sentence of that passage that bears on it most."""
    evidence: CitedEvidence | None = None
    """The passage or words that it cites; None: it cites nothing."""
    quoted: str = ""
    again: bool = False
    """True if an earlier finding of the reply has the same evidence, so that its text is not shown again."""

    @property
    def address(self) -> str:
        """The part of the page that it is about; empty: none."""
        if self.passage is None:
            return ""
        sentence = "" if self.sentence is None else f"-{self.sentence}"
        return f"passage-{self.turn}-{self.passage}{sentence}"


@dataclass(frozen=True)
class Lane:
    """A reply as one detector judged it."""

    detector: str
    state: str
    """`clean`, `flagged`, `failed`, `abstained`, `not_localised` or `missing`."""
    score: str
    """The score of the reply with its meaning and threshold; empty: there is none."""
    error: str | None
    """Why it was not judged."""
    pieces: tuple[ReplyPiece, ...]
    findings: tuple[ShownFinding, ...]
    """The hallucinations, unlocated ones included."""
    words: tuple[tuple[str, int], ...]
    """Words with their scores in tenths, for detectors that score words."""


@dataclass(frozen=True)
class ShownPassage:
    """A passage, cut into sentences."""

    passage: Passage
    sentences: tuple[str, ...]
    """Its sentences; they join to its text."""

    @cached_property
    def text(self) -> str:
        """Its text, white space made single."""
        return " ".join(self.passage.text.split())

    @cached_property
    def quotations(self) -> Sequence[str]:
        """Its sentences without its title, white space made single."""
        return [_quote(sentence) for sentence in self.sentences]

    @cached_property
    def holders(self) -> Mapping[str, Sequence[int]]:
        """Word in lower case → the sentences that have it, by their places."""
        found = defaultdict(list)
        for number, sentence in enumerate(self.sentences):
            for word in frozenset(_WORD.findall(sentence.lower())):
                found[word].append(number)
        return found


@dataclass(frozen=True)
class ShownTurn:
    """A turn of the page."""

    turn: Turn
    depth: int
    lanes: tuple[Lane, ...]
    passages: tuple[ShownPassage, ...]
    steps: tuple[Step, ...]
    tokens: int
    seconds: float

    @property
    def flagged(self) -> bool:
        """True if some detector flags it."""
        return any(lane.state == "flagged" for lane in self.lanes)


def show_turns(
    chat: Conversation, verdicts: Sequence[Verdict], detectors: Sequence[LaneScore]
) -> list[ShownTurn]:
    """Return the turns of a conversation as its page shows them, with a lane for each detector."""
    by_turn: dict[int, dict[str, Verdict]] = {turn.index: {} for turn in chat.turns}
    for verdict in verdicts:
        by_turn.get(verdict.turn, {})[verdict.detector] = verdict
    evidence = ConversationEvidence(
        EvidenceFinder(chat), {one.index: show_passages(one) for one in chat.turns}
    )
    return [
        ShownTurn(
            turn=turn,
            depth=chat.depth(turn.index),
            lanes=tuple(
                _show_lane(turn, one, by_turn[turn.index].get(one.detector), evidence) for one in detectors
            ),
            passages=evidence.passages[turn.index],
            steps=turn.steps,
            tokens=sum(call.tokens for call in turn.calls),
            seconds=sum(call.latency_s for call in turn.calls),
        )
        for turn in chat.turns
    ]


def show_passages(turn: Turn) -> tuple[ShownPassage, ...]:
    """Return the passages of a turn, cut into sentences."""
    return tuple(ShownPassage(one, cut_sentences(one.text)) for one in turn.passages)


@dataclass(frozen=True)
class ConversationEvidence:
    """The passages of a conversation, and what judgements cite of them."""

    finder: EvidenceFinder
    passages: Mapping[int, tuple[ShownPassage, ...]]
    """Turn → its passages."""

    def show(self, span: Span, verdict: Verdict) -> ShownFinding:
        """Return a hallucination with what it cites."""
        cited = self.finder.find(span, verdict)
        flag = identify_flag(verdict.detector, span).id
        turn = verdict.turn if cited is None or cited.turn is None else cited.turn
        place, sentence = find_citation(span, self.passages[turn])
        shown = self.passages[turn]
        quoted = "" if place is None or sentence is None else shown[place].quotations[sentence]
        return ShownFinding(span, flag, turn, place, sentence, cited, quoted)


def _quote(sentence: str) -> str:
    """Return a sentence without its passage's title, white space made single."""
    body = sentence.partition("\n")[2] if sentence.startswith(TITLE) else ""
    return " ".join((body or sentence).split())


def _show_lane(
    turn: Turn, reading: LaneScore, verdict: Verdict | None, evidence: ConversationEvidence
) -> Lane:
    detector = reading.detector
    if verdict is None:
        return Lane(detector, "missing", "", None, (ReplyPiece(turn.reply, ()),), (), ())
    spans = verdict.spans or ()
    findings, shown = [], set()
    for finding in [evidence.show(span, verdict) for span in spans]:
        cited = (finding.address, finding.evidence)
        findings.append(replace(finding, again=any(cited) and cited in shown))
        shown.add(cited)
    return Lane(
        detector=detector,
        state=name_state(verdict),
        score=reading.describe(verdict),
        error=verdict.error,
        pieces=tuple(ReplyPiece(text, covering) for text, covering in cut_segments(turn.reply, spans)),
        findings=tuple(findings),
        words=tuple(
            (text, round(10 * min(1.0, max(0.0, score))))
            for text, score in cut_scored_words(turn.reply, verdict.word_scores or ())
        ),
    )


def find_citation(span: Span, passages: Sequence[ShownPassage]) -> tuple[int | None, int | None]:
    """Return the places of the passage and of its sentence that a judgement is about.

    Detectors cite passages, and some quote words in their reason. A passage that is cited and is not among
    them has no place. A sentence with quoted words comes first.
    Else it is, of the passages that the evidence names or quotes (of all, where it names none), the sentence
    that shares most with the flagged text; a word counts the less, the more sentences have it. None: no
    sentence shares a word.
    """
    evidence = " ".join(span.evidence.split())
    named = (span.evidence, span.evidence.partition(": ")[0])
    cited = [
        place
        for place, shown in enumerate(passages)
        if shown.passage.id in named or (len(evidence) >= 20 and evidence in shown.text)
    ]
    if not cited and is_passage(span.evidence):
        return None, None
    bearing = cited or range(len(passages))
    # No quotation ends after the last of these marks: from each that only opens, all would be read.
    end = max(span.reason.rfind('"'), span.reason.rfind("”")) + 1
    quoted = [" ".join(quote.split()) for quote in _QUOTED.findall(span.reason, 0, end)]
    for place in bearing:
        repeated = [quote for quote in quoted if quote in passages[place].text]
        for number, sentence in enumerate(passages[place].sentences if repeated else ()):
            plain = " ".join(sentence.split())
            if any(quote in plain for quote in repeated):
                return place, number
    shared: dict[tuple[int, int], list[float]] = defaultdict(list)
    for word in frozenset(_WORD.findall(span.text.lower())):
        common = sum(len(shown.holders.get(word, ())) for shown in passages)
        for place in bearing:
            for number in passages[place].holders.get(word, ()):
                shared[place, number].append(1 / common)
    if not shared:
        return (cited[0], None) if cited else (None, None)
    # Exact sums: words come in an order that differs from process to process.
    return min(shared, key=lambda at: (-fsum(shared[at]), at))


def cut_sentences(text: str) -> tuple[str, ...]:
    """Cut a text before each sentence; the parts join to the text.

    >>> cut_sentences("A fee is due. It is small.")
    ('A fee is due. ', 'It is small.')
    """
    starts = [region.start for region in split_sentences(text)]
    cuts = [0, *starts[1:], len(text)]
    return tuple(text[left:right] for left, right in pairwise(cuts) if left < right)
