"""Counts of a user's messages: rules on their text alone, so that people's can be compared with them.

The rules are ours. They see no reply, because files of people's messages often have none. After a change of a
rule `python -m benchmarks.pack_human_turns` counts people's messages again of which we keep counts alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hallulab.agents.users.flaws import role_swap
from hallulab.scenarios.text.items import build_stems_key
from hallulab.scenarios.text.languages import ENGLISH, WITHOUT_SPACES, identify_language
from hallulab.scenarios.text.scripts import QUESTION_MARKS
from hallulab.scenarios.text.spans import split_sentences, split_words

FEW = 2
"""Most content words of a message whose subject is a pronoun."""
_ASKS = frozenset(
    (
        *(
            "what",
            "how",
            "why",
            "when",
            "where",
            "which",
            "who",
            "whose",
            "whom",
            "can",
            "could",
            "may",
            "is",
        ),
        *("are", "am", "was", "were", "do", "does", "did", "will", "would", "should", "has", "have"),
    )
)
"""First words of a question: in chats many people leave the question mark out."""
_PRONOUN = re.compile(
    r"\b(?:it|its|it's|they|them|their|he|him|his|she|her"
    r"|(?:this|that|these|those)(?=\s*(?:[?.!,;]|$)|\s+(?:is|are|was|were|do|does|did|can|could|will|would)\b)"
    r"|(?<=is )(?:this|that)|(?<=are )(?:these|those))\b",
    re.IGNORECASE,
)
_THANKS = re.compile(r"\b(?:thanks|thank (?:you|u)|thankyou|thx|cheers|much appreciated)\b", re.IGNORECASE)
_ENDS = re.compile(
    r"\b(?:good)?bye\b|\bsee you\b|\bhave a (?:good|great|nice|lovely)\b"
    r"|\bthat(?:'s| is| was| will be) (?:all|everything)\b(?! (?:you|they|he|she|it))"
    r"|\bno (?:more|further|other) questions\b|\bnothing else\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Messages:
    """The messages of a user in a conversation."""

    user: tuple[str, str, int]
    """Scenario, persona and seed. Their conversations with several chatbots depend on each other."""
    texts: tuple[str, ...]
    """The messages in order; the first one opens the conversation."""
    facts: tuple[str, ...] = ()
    """The persona's facts; empty: not known."""
    failed: bool = False
    """The conversation ended in an error, so that its number of turns is not the user's."""

    @property
    def first_text(self) -> str | None:
        """The message that opens the conversation; None without messages."""
        return self.texts[0] if self.texts else None

    @cached_property
    def counts(self) -> Mapping[str, tuple[float, ...]]:
        """A number for each message that a measure is about, by the measure's field."""
        first, later = (
            tuple(float(len(text.split())) for text in texts if identify_language(text) not in WITHOUT_SPACES)
            for texts in (self.texts[:1], self.texts[1:])
        )
        read = [text for text in self.texts if _is_readable(text)]
        given = (
            compute_facts_given(read[0], self.facts) if read[:1] == list(self.texts[:1]) and read else None
        )
        return {
            "turns": (float(len(self.texts)),) if self.texts and not self.failed else (),
            "first_words": first,
            "follow_up_words": later,
            "questions": tuple(float(count_questions(text)) for text in self.texts),
            "facts_given": () if given is None else (given,),
            "pronoun_only": tuple(
                float(is_only_pronouns(text)) for text in self.texts[1:] if _is_readable(text)
            ),
            "thanks": tuple(float(_THANKS.search(text) is not None) for text in read),
            "endings": tuple(
                float(_ENDS.search(_replace_curly_apostrophes(text)) is not None) for text in read
            ),
            "assistants_part": tuple(float(role_swap(text) is not None) for text in read),
        }


@dataclass(frozen=True)
class CountedMessages:
    """The same as counts, without the texts."""

    user: tuple[str, str, int]
    counts: Mapping[str, tuple[float, ...]]
    first_text: str | None = None
    """The message that opens the conversation, where it is known."""


def _is_readable(text: str) -> bool:
    """Return whether the rules read a message: it is in English, or too short to tell."""
    return identify_language(text) in (ENGLISH, None)


def count_questions(text: str) -> int:
    """Count the sentences that end with a question mark or begin with a word that asks.

    >>> count_questions("My bus was late. who pays for it? Can I insist")
    2
    """
    found = (region.of(text) for region in split_sentences(text))
    return sum(bool(QUESTION_MARKS.search(one)) or (split_words(one) or [""])[0] in _ASKS for one in found)


def is_only_pronouns(text: str) -> bool:
    """Return whether a message has a pronoun for something, and at most `FEW` content words.

    >>> is_only_pronouns("How is it created?"), is_only_pronouns("Does the bank have to pay it back?")
    (True, False)
    """
    return _PRONOUN.search(_replace_curly_apostrophes(text)) is not None and len(_extract_stems(text)) <= FEW


def compute_facts_given(text: str, facts: Sequence[str]) -> float | None:
    """Return the share of facts at least half of whose content words are in the text; None without facts.

    >>> compute_facts_given("It cost Rs 4,850.", ["The mixer cost Rs 4850", "Her phone is 55501 20114"])
    0.5
    """
    said = _extract_stems(text)
    stems = [found for found in map(_extract_stems, facts) if found]
    return sum(2 * len(found & said) >= len(found) for found in stems) / len(stems) if stems else None


def _extract_stems(text: str) -> set[str]:
    return set(build_stems_key(text).split())


def _replace_curly_apostrophes(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
