"""Grounds of a judgement: evidence, further passages, and the user's words.

Measure how much of a sentence the evidence lacks, word for word: a sample of the analysis without a model.
The paper describes its analysis as relying on "factual overlap and entity-level consistency" (section 5.2.1).
A small model judges meaning but overlooks digits; this rule looks at words and digits alone.

The user's own words are no hallucination (HalluDetect section 5.2.1, the false positive).
Exact matching, no model: small models overlook an address that stands in the dialogue and not in a document.
Each text is searched once, for all sentences of a reply.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from hallulab.agents.models.prompt import Prompt, format_dialogue
from hallulab.agents.models.session import Session
from hallulab.agents.retrieval.knowledge import reformulate
from hallulab.detectors.base.judging import format_evidence
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.spans import compute_unknown_share, split_sentences, split_words
from hallulab.scenarios.text.words import STOP_WORDS, is_courtesy
from hallulab.scenarios.transcript import Frozen, Message, Passage
from hallulab.scenarios.turn_views import TurnView

MEMORY_TOKENS = 120
USER_SHARE = 0.25
"""Share of the evidence's room that the user's own messages may take."""


class EvidenceContext(Frozen):
    """Everything that a reply may rest on."""

    documents: str
    """The numbered passages as they read in a prompt."""
    text: str
    """The documents, then what the user said and the memory of the dialogue."""
    passages: tuple[Passage, ...]
    """The passages in it: the turn's own first, then what doubled retrieval found, then earlier turns'."""
    found: tuple[Passage, ...] = ()
    """Further passages of doubled retrieval, if they are not shown with every sentence."""
    user_text: str
    """Every message of the user, in full."""
    query: str | None
    """The reformulated query; None when there was nothing to search."""
    memory: str | None
    """The summary of the dialogue; None at its first turn."""
    truncated: bool
    """True if something had to be left out."""

    @property
    def passage_text(self) -> str:
        """The passages' own text, without numbers."""
        return "\n".join(passage.text for passage in self.passages)

    @property
    def user_statements(self) -> str:
        """The user's statements, without questions: to ask whether something is so is not to say it."""
        lines = self.user_text.split("\n")
        said = [region.of(line) for line in lines for region in split_sentences(line)]
        return " ".join(sentence for sentence in said if not sentence.endswith("?"))


async def gather_grounds(
    session: Session, view: TurnView, memory_prompt: Prompt, *, factor: int, max_characters: int
) -> EvidenceContext:
    """Search with the reformulated query, summarize the history, and put everything together.

    Up to two calls: one if there is a knowledge base to search, one if there is a history.

    Raises:
        OperationalError: a model or the knowledge base failed.
    """
    query, found = await search_doubled(session, view, factor)
    memory = await _summarize_history(session, view.history, memory_prompt) if view.history else None
    passages = merge_passages(view.own_passages, found)
    user_text = view.user_text
    room = int(USER_SHARE * max_characters)
    texts = {passage.text for passage in found}
    earlier = [passage for passage in view.earlier_passages if passage.text not in texts]
    evidence = format_evidence(passages, max_characters - min(room, len(user_text)), earlier)
    parts = [evidence.text] if evidence.text else []
    spoken = " ".join(user_text.split())
    if spoken:
        parts.append(f"Words of the user: {spoken[-room:]}")
    if memory:
        parts.append(f"Memory of the conversation: {memory}")
    return EvidenceContext(
        documents=evidence.text,
        text="\n".join(parts),
        passages=evidence.passages,
        user_text=user_text,
        query=query,
        memory=memory,
        truncated=evidence.truncated or len(spoken) > room,
    )


async def search_doubled(
    session: Session, view: TurnView, factor: int
) -> tuple[str | None, tuple[Passage, ...]]:
    """Return the reformulated query and what it finds; None and nothing if there is nothing to search.

    One call, or none without a knowledge base and for a courtesy.

    Args:
        factor: passages searched for, as a multiple of the turn's own.

    Raises:
        OperationalError: the model or the knowledge base failed.
    """
    if view.knowledge is None or is_courtesy(view.question):
        return None, ()
    query = await reformulate(session, view.history, view.question)
    return query, await view.knowledge.search(query, factor * max(len(view.own_passages), 1))


async def _summarize_history(session: Session, history: Sequence[Message], prompt: Prompt) -> str:
    answer = await session.text(
        "memory", prompt.fill(conversation=format_dialogue(history)), max_tokens=MEMORY_TOKENS
    )
    return " ".join(answer.split())


def merge_passages(own: Sequence[Passage], found: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return the turn's own passages, then those found that are not among them (by id)."""
    known = {passage.id for passage in own}
    return (*own, *(passage for passage in found if passage.id not in known))


def choose_nearest_passages(passages: Sequence[Passage], text: str, room: int) -> tuple[Passage, ...]:
    """Return the passages that share most with `text`, at least one, in their own order.

    They have up to `room` characters.

    A shared word counts ln(1 + passages / passages that have it), once. Support is a maximum over passages,
    so a passage that is left out could only have cleared what is flagged.

    Args:
        room: characters of all kept passages together; a first passage that is longer stays whole.
    """
    vocabularies = [set(split_words(passage.text)) for passage in passages]
    spread = Counter(word for vocabulary in vocabularies for word in vocabulary)
    wanted = set(split_words(text))
    shared = [
        math.fsum(math.log(1 + len(passages) / spread[word]) for word in wanted & vocabulary)
        for vocabulary in vocabularies
    ]
    kept: list[int] = []
    for place in sorted(range(len(passages)), key=lambda place: -shared[place]):
        room -= len(passages[place].text)
        if kept and room < 0:
            break
        kept.append(place)
    return tuple(passages[place] for place in sorted(kept))


def adds_support(sentence: str, own: Sequence[Passage], found: Passage) -> bool:
    """Return whether a passage that the turn did not have is worth a second question about a sentence.

    Own passages come first: a document about another matter often only seems to support a sentence. So each
    own passage must say nothing (it holds less than half of the sentence's words of four letters or more),
    and the found one must be near (it holds two thirds of them).
    """
    wanted = {word for word in split_words(sentence) if len(word) > 3}
    if not wanted:
        return False
    held = max((len(wanted & set(split_words(passage.text))) for passage in own), default=0)
    return 2 * held < len(wanted) and 3 * len(wanted & set(split_words(found.text))) >= 2 * len(wanted)


_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NUMBER = re.compile(r"\+?\d(?:[\d\s().,/-]*\d)?")
_WORD = re.compile(r"[^\W\d_]{4,}")
_LABEL = re.compile(
    r"address|amount|concerning|contact|date|dear|email|from|mail|message|mobile|name|number|paid|phone|price"
    r"|regards|respected|subject|telephone|that|this|value|with|yours?"
)
"""Words of forms and letters that claim nothing."""
KNOWN_SHARE = 2 / 3
"""Share of a sentence's other words that must be known, too."""


def repeats_user(sentence: str, user_text: str) -> bool:
    """Return whether a sentence only repeats addresses, phone numbers or other numbers of the user.

    There must be at least one, and each must stand in `user_text` (numbers by their digits). Of the
    sentence's other words at least `KNOWN_SHARE` must stand there, too. Stop words, `Rs`, `yes`, and labels
    such as "phone" or "amount" do not count.
    """
    found = find_details(sentence)
    if not found or not found <= find_details(user_text):
        return False
    said = set(split_words(user_text))
    others = [
        word
        for word in split_words(_EMAIL.sub(" ", sentence))
        if not (word[0].isdigit() or word in STOP_WORDS or word in ("rs", "yes") or _LABEL.fullmatch(word))
    ]
    return sum(word in said for word in others) >= KNOWN_SHARE * len(others)


def find_clearing_rule(sentence: str, grounds: EvidenceContext) -> str | None:
    """Return why a sentence needs no judging, or None."""
    if claims_nothing(sentence):
        return "claims nothing"
    if repeats_user(sentence, grounds.user_statements):
        return "repeats what the user said"
    return None


def draws_on_user(sentence: str, user_text: str, evidence_text: str) -> bool:
    """Return whether a sentence must be compared with the user's words, too.

    This is so if it has a number or e-mail address of the user's. It is also so if at least half of the words
    of four letters or more that the evidence lacks are the user's. To show the user's words always would be
    simpler, but a small model takes a question for a fact.
    """
    if find_details(sentence) & find_details(user_text):
        return True
    known = set(_list_words(evidence_text))
    unknown = [word for word in _list_words(sentence) if word not in known]
    own = set(_list_words(user_text))
    return bool(unknown) and 2 * sum(word in own for word in unknown) >= len(unknown)


@lru_cache(maxsize=256)
def find_details(text: str) -> frozenset[str]:
    """Return e-mail addresses in lower case, and numbers as digits only."""
    emails = {email.lower() for email in _EMAIL.findall(text)}
    rest = _EMAIL.sub(" ", text)
    return frozenset(emails | {re.sub(r"\D", "", number) for number in _NUMBER.findall(rest)})


@lru_cache(maxsize=256)
def _list_words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(text))


def measure_lack_of_overlap(sentence: str, known_text: str) -> float:
    """Return the share of the sentence that `known_text` lacks, in [0, 1].

    It is the share of the words. If there are numbers or e-mail addresses, it is the mean of that and of
    their share.

    Raises:
        ValueError: the sentence has no words.
    """
    share = compute_unknown_share(sentence, set(split_words(known_text)))
    if share is None:
        raise ValueError(f"no words in {sentence!r}")
    details = find_details(sentence)
    if not details:
        return share
    return (share + len(details - find_details(known_text)) / len(details)) / 2
