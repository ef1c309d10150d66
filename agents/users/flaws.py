"""Flaws of the simulated user: messages that a person in this situation would not have written.

A conversation with a flawed user says little about the chatbot, so runs are reported with and without such
conversations. All rules are rules on the transcript's text, described at each function. The papers have no
such rules; the thresholds are ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Literal

from rapidfuzz.fuzz import ratio
from rapidfuzz.process import extract_iter
from rapidfuzz.utils import default_process

from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.users.acts import allow_flaws
from hallulab.agents.users.leaked_plans import find_leaked_plan
from hallulab.agents.users.phrases import Phrases
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Conversation, Frozen, Message, Turn

USER_PROMPTS = (
    "user_opening",
    "user_message",
    "user_opening_short",
    "user_message_short",
    "user_act_opening",
    "user_act",
    "user_goal",
    "user_patience",
)
"""For the opening message and later messages (usual, short, of an act), whether a goal was told, and whether
to give up."""


FlawKind = Literal["empty", "role_swap", "leaked_instructions", "repeated", "premature_stop"]

MIN_TURNS = 2
"""A user who ends the conversation before so many replies stops prematurely."""
SAME_RATIO = 90.0
"""Two messages are the same from this Indel similarity on (0 to 100, without case and punctuation)."""
SHORT_WORDS = 4
"""Messages of fewer words, such as "Yes, please.", may be repeated."""
OVERLAP_WORDS = 8
"""So many equal words in a row count as copied."""

GOAL_WORDS = 5
"""A goal of at least so many words counts as read out if a message holds it word for word."""

_ASSISTANT_SPEECH = Phrases(
    r"\bas an ai\b",
    r"\b(?:i am|i'm) an ai\b",
    r"\bai language model\b",
    r"\bhow (?:can|may|could) i (?:help|assist)(?= (?:you|with)\b|\s*[?!.,]|\s*\Z)",
    r"\bwhat can i (?:help|assist) you\b",
    r"\b(?:i can|i will|i'll|i'd be|i am|i'm|i would be|let me) (?:\w+ ){0,3}(?:help|assist|guide) you\b",
    r"\bi(?:'m| am) here to (?:help|assist)\b",
    r"\b(?:if there(?:'s| is)|is there) anything (?:else )?i can (?:do|help|assist)\b",
    r"\bif you (?:have|need) any (?:other |more |further )?(?:questions?|help|assistance)\b",
    r"\bfeel free to (?:reach|contact|ask(?! me))\b",
    r"\bthank you for (?:reaching out|contacting)\b",
    r"\bsorry to hear (?:about your|that you)\b",
    r"\bi(?:'m| am) sorry,? but i (?:can't|cannot|can not) (?:help|assist)\b",
    r"\bi(?:'m unable to| am unable to| can't| cannot| can not) "
    r"(?:assist(?= with\b|\W*\Z)|(?:help with|fulfill) (?:this|that|your) request)\b",
    r"\b(?:i am|i'm|as) (?:just |only |merely )?an? (?:large )?language model\b",
    r"\bi (?:don't|do not) have personal (?:experiences|opinions|feelings)\b",
    r"\blet me know if you need anything\b",
    r"\bis there anything else you(?:'d| would)? (?:like|want|need) to (?:know|ask)\b",
    r"\bi hope (?:this|that) (?:helps|clarifies it)(?=\W*\Z|[.!])",
    r"(?:\A|[.!?]\s)we apologi[sz]e for (?:the|any)\b",
    r"\bi (?:would )?(?:recommend|suggest|advise)(?: that)? you\b",
    r"\b(?:provide|share|tell me|give me|send me|confirm) (?:me )?(?:with )?your "
    r"(?:full name|situation|issue"
    r"|(?:order|invoice|bill|account|purchase|policy|complaint|case|ticket) (?:number|details|date|id))\b",
    r"\bhere are (?:some|the|a few) (?:steps|things|options) (?:you|to)\b",
)
_ADVICE = Phrases(
    r"(?<!said )(?<!says )(?<!said: )(?<!says: )(?<!if )(?<!wish )(?<!that )(?<!think )"
    r"\byou (?:should|can|may|must|could|need to|have to)(?: also| then| first)? "
    r"(?:file|contact|approach|visit|call|submit|send|write|complain|consult|seek|lodge|request|check|ask|go)\b"
    r"(?! (?:me|us|my|our)\b)"
)
_SPEAKER_LABEL = re.compile(r"^\W*(?:assistant|chatbot|bot|ai)\W*:", re.IGNORECASE)
_LEAK = Phrases(
    r"\bpersonas?\b",
    r"\bsimulat(?:e|ed|ing|ion)\b",
    r"\brole-?play\w*",
    r"\bsystem prompt\b",
    r"\bstay(?:ing)? in character\b",
    r"\bgoals? ?(?:list|\d)\b",
    r"\b(?:list of|my|the user's) goals\b",
    r"\b(?:goal_reached|gave_up)\b",
    r"\bmy instructions (?:are|say|tell)\b",
    r"\binstructed to (?:act|play|speak|ask|pretend)\b",
    r"\bstill wanted\b",
    r"\bchat so far\b",
    r"\breference (?:chat|conversation|summary)\b",
    r"###|\{\{|\A\s*\{\s*\"(?:message|role|content|text|user|response|reply)\"\s*:",
    r"\[(?:your|insert|enter) [^\]\n]{1,40}\]|\[(?:order|invoice|account|shop) (?:name|number|id)\]",
    r"\[end(?: of (?:the )?(?:conversation|chat|dialogue))?\]|\[conversation end(?:s|ed)?\]|<end>",
    r"\A\W*terminate\W*\Z|\(word count:",
    r"\bthe user ends\b|\bconversation has reached its\b|\bmy character (?:wants|would|should|needs)\b",
    r"\bpretend to be (?:an?|the) (?:customer|user|client|human)\b",
    r"\bi(?:'m| am) playing (?:an?|the) (?:customer|user|client|caller)\b",
    r"\bthe user (?:asks?|asked|wants?|wanted|opened|explains?|explained|told|describes?|described)\b",
)
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our|i'm|i've)\b", re.IGNORECASE)
_STOP_WORD = re.compile(
    r"about|after|also|another|because|been|before|being|both|could|does|each|find|from|give|given|have|here"
    r"|into|know|learn|least|less|like|make|more|most|much|must|near|obtain|only|other|over|same|shall|should"
    r"|some|such|take|tell|than|that|their|them|then|there|these|they|this|those|understand|until|upon|very"
    r"|want|were|what|when|where|whether|which|while|whom|whose|will|with|would|your"
)
"""Words of goals that say nothing about their subject; shorter words are excluded by length."""


class Flaw(Frozen):
    """Something that a simulated user should not have done in a conversation."""

    turn: int
    """Index of the turn with the flawed message; for a premature stop the last turn (0 if none)."""
    kind: FlawKind
    detail: str
    """The flawed words, or the reason, for people to read."""


def find_conversation_flaws(
    conversation: Conversation, persona: Persona | None = None, *, min_turns: int = MIN_TURNS
) -> tuple[Flaw, ...]:
    """Return every flaw of the simulated user in a conversation, in order of turns.

    Args:
        persona: the user's persona; without it, goals and manner are not compared.
        min_turns: a stop before so many replies is premature.
    """
    flaws = []
    before = _TextsBefore(conversation.given)
    for turn in conversation.turns:
        found = _find_message_flaws(turn.user, before, persona)
        allowed = set(allow_flaws(turn.act))
        if conversation.pressure is not None:  # it repeats itself on purpose
            allowed.add("repeated")
        flaws += [
            Flaw(turn=turn.index, kind=kind, detail=detail) for kind, detail in found if kind not in allowed
        ]
        before.by_user.texts.append(turn.user)
        before.by_assistant.texts.append(turn.reply)
    stop = premature_stop(conversation, persona, min_turns)
    if stop is not None:
        last = max(len(conversation.turns) - 1, 0)
        flaws.append(Flaw(turn=last, kind="premature_stop", detail=stop))
    return tuple(flaws)


def find_message_flaws(
    text: str, history: Sequence[Message], persona: Persona | None = None
) -> tuple[tuple[FlawKind, str], ...]:
    """Return the flaws of a user message after `history`: (kind, flawed words), at most one of a kind."""
    return _find_message_flaws(text, _TextsBefore(history), persona)


class _Texts:
    """The texts of one side, prepared for comparing a message with all of them.

    Each text is prepared once, when it is first needed: a conversation may have many turns, and nothing is
    compared with the last reply.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._windows: set[str] = set()
        self._windowed = 0
        self._words: list[str | None] = []

    def windows(self) -> set[str]:
        """Return the word windows (`_windows`) of all texts."""
        for text in self.texts[self._windowed :]:
            self._windows.update(_windows(text))
        self._windowed = len(self.texts)
        return self._windows

    def same(self, text: str) -> str | None:
        """Return the first text that is the `_same` as this one, or None."""
        self._words += map(_long_enough, self.texts[len(self._words) :])
        words = _long_enough(text)
        if words is None:
            return None
        found = extract_iter(words, self._words, scorer=ratio, score_cutoff=SAME_RATIO)
        return next((self.texts[place] for _, _, place in found), None)


class _TextsBefore:
    """The texts of both sides before a message."""

    def __init__(self, history: Sequence[Message] = ()) -> None:
        self.by_user = _Texts([message.text for message in history if message.role == "user"])
        self.by_assistant = _Texts([message.text for message in history if message.role == "assistant"])


def _find_message_flaws(
    text: str, before: _TextsBefore, persona: Persona | None
) -> tuple[tuple[FlawKind, str], ...]:
    if not any(character.isalnum() for character in text):
        return (("empty", "no words"),)
    checks: tuple[tuple[FlawKind, str | None], ...] = (
        ("role_swap", _role_swap(text, before)),
        ("leaked_instructions", leaked_instructions(text, persona)),
        ("repeated", before.by_user.same(text)),
    )
    return tuple((kind, detail) for kind, detail in checks if detail is not None)


def role_swap(text: str, history: Sequence[Message] = ()) -> str | None:
    """Return words with which the user speaks as the assistant, or None.

    There are three rules:

    - typical phrases of assistants: an offer of help, "as an AI", a request for the user's details;
    - advice in the second person in a sentence that is not a question;
    - at least half of the 8-word sequences of what is told, not asked, stand in an earlier reply and in no
      earlier user message.
    """
    return _role_swap(text, _TextsBefore(history))


def _role_swap(text: str, before: _TextsBefore) -> str | None:
    plain = _straight(text)
    if (label := _SPEAKER_LABEL.search(plain)) is not None:
        return label[0]
    if (phrase := _ASSISTANT_SPEECH.find(plain)) is not None:
        return phrase
    # A user may ask about the reply in its own words.
    told = [one for one in re.split(r"(?<=[.!?])\s+", plain) if not one.rstrip().endswith("?")]
    for sentence in told:
        if (advice := _ADVICE.find(sentence)) is not None:
            return advice
    windows = _windows(" ".join(told))
    replies, own = before.by_assistant.windows(), before.by_user.windows()
    copied = [window for window in windows if window in replies and window not in own]
    if copied and 2 * len(copied) >= len(windows):
        return f"copies the assistant: {copied[0]}"
    return None


def leaked_instructions(text: str, persona: Persona | None = None) -> str | None:
    """Return words that reveal the simulation, or None.

    There are five rules:

    - words about persona, simulation, instructions, goals as such, or "the user";
    - plans of what to say, notes and stage directions (`hallulab.agents.users.leaked_plans`);
    - 8 words in a row from a prompt file of the simulated user or from the persona's manner, except from the
      persona's facts and grievance, which the user may quote;
    - a whole goal of at least `GOAL_WORDS` words, word for word;
    - the persona's name as that of another person ("Asha has", without a word in the first person), as in the
      persona's notes.
    """
    plain = _straight(text)
    phrase = _LEAK.find(plain) or find_leaked_plan(plain)
    if phrase is not None:
        return phrase
    secret = _prompt_windows()
    if persona is not None:
        secret = _list_secret_windows(persona.manner, (persona.grievance, *persona.facts))
    for window in _windows(text):
        if window in secret:
            return window
    said = f" {_words(plain)} "
    for goal in persona.goals if persona is not None else ():
        words = _words(goal)
        if len(words.split()) >= GOAL_WORDS and f" {words} " in said:
            return words
    if persona is not None and not _FIRST_PERSON.search(plain):
        first_name = re.escape(persona.name.split()[0])
        told = re.search(
            rf"\b{first_name}(?: \w+)? "
            r"(?:is|was|has|had|did|does|\w+ed|wants|needs|never|bought|paid|got|lost)\b",
            plain,
        )
        return told[0] if told else None
    return None


def repeated(text: str, history: Sequence[Message]) -> str | None:
    """Return the earlier user message that `text` repeats, or None.

    Two messages are the same from a similarity of `SAME_RATIO` on. Messages of fewer than `SHORT_WORDS` words
    are not compared.
    """
    return _TextsBefore(history).by_user.same(text)


def premature_stop(
    conversation: Conversation, persona: Persona | None = None, min_turns: int = MIN_TURNS
) -> str | None:
    """Return why the user's own decision to stop came too early, or None.

    It is too early with fewer than `min_turns` replies, and at `goal_reached` if no reply is about any goal.
    A reply is about a goal if at least half of the goal's content words occur in it. Content words are
    numbers and words of four letters or more without stop words; their first five letters are compared.
    """
    if conversation.pressure is not None or conversation.stop_reason not in ("goal_reached", "gave_up"):
        return None
    replies = [turn.reply for turn in conversation.turns]
    if len(replies) < min_turns:
        return f"{conversation.stop_reason} after {len(replies)} of at least {min_turns} replies"
    if persona is None or conversation.stop_reason == "gave_up":
        return None
    given = [set(_content_words(reply)) for reply in replies]
    for wanted in (set(_content_words(goal)) for goal in persona.goals):
        if wanted and any(len(wanted & words) >= math.ceil(len(wanted) / 2) for words in given):
            return None
    return "goal_reached, but no reply has to do with any goal"


def is_loop(turns: Sequence[Turn]) -> bool:
    """Return whether a conversation goes round in circles; the runner then stops it.

    True if the last exchange equals an earlier one on both sides (at any length), or if the last three user
    messages are the same (by the rule of `repeated`).
    """
    if not turns:
        return False
    last = turns[-1]
    for earlier in turns[:-1]:
        if _similar(earlier.user, last.user) and _similar(earlier.reply, last.reply):
            return True
    said = [turn.user for turn in turns[-3:]]
    return len(said) == 3 and _same(said[0], said[2]) and _same(said[1], said[2])


def _similar(one: str, other: str) -> bool:
    return ratio(_words(one), _words(other)) >= SAME_RATIO


def _same(one: str, other: str) -> bool:
    return None not in (_long_enough(one), _long_enough(other)) and _similar(one, other)


def _long_enough(text: str) -> str | None:
    """Return the words of a message, or None if there are too few to compare."""
    words = _words(text)
    return words if len(words.split()) >= SHORT_WORDS else None


def _content_words(text: str) -> Iterator[str]:
    for word in default_process(text).split():
        if (len(word) >= 4 or word.isdigit()) and not _STOP_WORD.fullmatch(word):
            yield word[:5]


def _words(text: str) -> str:
    return " ".join(default_process(_straight(text)).split())


def _windows(text: str) -> list[str]:
    words = _words(text).split()
    return [" ".join(words[i : i + OVERLAP_WORDS]) for i in range(len(words) - OVERLAP_WORDS + 1)]


@lru_cache(maxsize=64)
def _list_secret_windows(manner: str, quotable: tuple[str, ...]) -> frozenset[str]:
    """Return the windows of the prompts and of a persona's manner, without those of what it may quote."""
    return (_prompt_windows() | set(_windows(manner))).difference(*map(_windows, quotable))


@cache
def _prompt_windows() -> frozenset[str]:
    templates = (load_prompt("hallulab.agents.users", name).template for name in USER_PROMPTS)
    return frozenset(window for template in templates for window in _windows(template))


def _straight(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
