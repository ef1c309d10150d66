"""Audit of the simulated user: which of its messages a person in that situation would not have written.

A conversation whose user errs says little about the chatbot, so runs are reported with and without such
conversations. All rules are plain text rules, stated at each function: they see nothing that the reader of
a transcript does not see. Thresholds are ours; the papers have no such audit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

from rapidfuzz.fuzz import ratio
from rapidfuzz.process import extract_iter
from rapidfuzz.utils import default_process

from agents.models.prompt import load_prompt
from agents.users.user_prompts import USER_PROMPTS
from scenarios.packs.pack import Persona
from scenarios.transcript import Conversation, Frozen, Message, Turn

FlawKind = Literal["empty", "role_swap", "leaked_instructions", "repeated", "premature_stop"]

MIN_TURNS = 2
"""A user who ends the conversation before so many replies stops prematurely."""
SAME_RATIO = 90.0
"""Indel similarity (0 to 100, case and punctuation aside) from which two messages are the same."""
SHORT_WORDS = 4
"""Messages of fewer words, such as "Yes, please.", may be said again."""
OVERLAP_WORDS = 8
"""So many words in a row are taken over, not hit upon."""

GOAL_WORDS = 5
"""A goal of so many words, said as it stands on the list, is read out rather than pursued."""

_ASSISTANT_SPEECH = re.compile(
    r"\bas an ai\b|\b(?:i am|i'm) an ai\b|\bai language model\b"
    r"|\bhow (?:can|may|could) i (?:help|assist)(?= (?:you|with)\b|\s*[?!.,]|\s*$)"
    r"|\bwhat can i (?:help|assist) you\b"
    r"|\b(?:i can|i will|i'll|i'd be|i am|i'm|i would be|let me) (?:\w+ ){0,3}(?:help|assist|guide) you\b"
    r"|\bi(?:'m| am) here to (?:help|assist)\b"
    r"|\b(?:if there(?:'s| is)|is there) anything (?:else )?i can (?:do|help|assist)\b"
    r"|\bif you (?:have|need) any (?:other |more |further )?(?:questions?|help|assistance)\b"
    r"|\bfeel free to (?:reach|contact|ask(?! me))\b"
    r"|\bthank you for (?:reaching out|contacting)\b|\bsorry to hear (?:about your|that you)\b"
    r"|\bi(?:'m| am) sorry,? but i (?:can't|cannot|can not) (?:help|assist)\b"
    r"|\bi (?:would )?(?:recommend|suggest|advise)(?: that)? you\b"
    r"|\b(?:provide|share|tell me|give me|send me|confirm) (?:me )?(?:with )?your "
    r"(?:full name|situation|issue"
    r"|(?:order|invoice|bill|account|purchase|policy|complaint|case|ticket) (?:number|details|date|id))\b"
    r"|\bhere are (?:some|the|a few) (?:steps|things|options) (?:you|to)\b",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"(?<!said )(?<!says )(?<!said: )(?<!says: )(?<!if )(?<!wish )(?<!that )(?<!think )"
    r"\byou (?:should|can|may|must|could|need to|have to)(?: also| then| first)? "
    r"(?:file|contact|approach|visit|call|submit|send|write|complain|consult|seek|lodge|request|check|ask|go)\b"
    r"(?! (?:me|us|my|our)\b)",
    re.IGNORECASE,
)
_SPEAKER_LABEL = re.compile(r"^\W*(?:assistant|chatbot|bot|ai)\W*:", re.IGNORECASE)
_LEAK = re.compile(
    r"\bpersonas?\b|\bsimulat(?:e|ed|ing|ion)\b|\brole-?play\w*|\bsystem prompt\b"
    r"|\bstay(?:ing)? in character\b"
    r"|\bgoals? ?(?:list|\d)\b|\b(?:list of|my|the user's) goals\b|\b(?:goal_reached|gave_up)\b"
    r"|\bmy instructions (?:are|say|tell)\b|\binstructed to (?:act|play|speak|ask|pretend)\b"
    r"|\bstill wanted\b|\bchat so far\b|\breference (?:chat|conversation|summary)\b|###|\{\{"
    r"|\bthe user (?:asks?|asked|wants?|wanted|opened|explains?|explained|told|describes?|described)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our|i'm|i've)\b", re.IGNORECASE)
_STOP_WORD = re.compile(
    r"about|after|also|another|because|been|before|being|both|could|does|each|find|from|give|given|have|here"
    r"|into|know|learn|least|less|like|make|more|most|much|must|near|obtain|only|other|over|same|shall|should"
    r"|some|such|take|tell|than|that|their|them|then|there|these|they|this|those|understand|until|upon|very"
    r"|want|were|what|when|where|whether|which|while|whom|whose|will|with|would|your"
)
"""Words of goals that say nothing of their subject; shorter ones are left out by length."""


class Flaw(Frozen):
    """Something in a conversation that its simulated user should not have done."""

    turn: int
    """Index of the turn whose user message is at fault; for a premature stop the last turn (0 if none)."""
    kind: FlawKind
    """Which rule was broken."""
    detail: str
    """The words at fault, or the reason, for a person to read."""


def audit(
    conversation: Conversation, persona: Persona | None = None, *, min_turns: int = MIN_TURNS
) -> tuple[Flaw, ...]:
    """Every flaw of the simulated user in a conversation, in order of turns.

    Args:
        conversation: finished conversation.
        persona: who the user was to be; without it, goals and manner are not compared.
        min_turns: replies before which no stop is in time.
    """
    flaws = []
    before = _Said()
    for turn in conversation.turns:
        found = _message_flaws(turn.user, before, persona)
        flaws += [Flaw(turn=turn.index, kind=kind, detail=detail) for kind, detail in found]
        before.by_user.texts.append(turn.user)
        before.by_assistant.texts.append(turn.reply)
    stop = premature_stop(conversation, persona, min_turns)
    if stop is not None:
        last = max(len(conversation.turns) - 1, 0)
        flaws.append(Flaw(turn=last, kind="premature_stop", detail=stop))
    return tuple(flaws)


def message_flaws(
    text: str, history: Sequence[Message], persona: Persona | None = None
) -> tuple[tuple[FlawKind, str], ...]:
    """Flaws of one user message that follows `history`: (kind, words at fault), at most one of a kind."""
    return _message_flaws(text, _Said(history), persona)


class _Texts:
    """What one side has said, in the forms in which a message is compared with all of it.

    The forms are made when they are asked for, once: a conversation may have any number of turns, and
    nothing is compared with the last reply.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._windows: set[str] = set()
        self._windowed = 0
        self._words: list[str | None] = []

    def windows(self) -> set[str]:
        """All that `_windows` makes of the texts."""
        for text in self.texts[self._windowed :]:
            self._windows.update(_windows(text))
        self._windowed = len(self.texts)
        return self._windows

    def same(self, text: str) -> str | None:
        """The first text that is the `_same` as this one."""
        self._words += map(_long_enough, self.texts[len(self._words) :])
        words = _long_enough(text)
        if words is None:
            return None
        found = extract_iter(words, self._words, scorer=ratio, score_cutoff=SAME_RATIO)
        return next((self.texts[place] for _, _, place in found), None)


class _Said:
    """What was said before a message."""

    def __init__(self, history: Sequence[Message] = ()) -> None:
        self.by_user = _Texts([message.text for message in history if message.role == "user"])
        self.by_assistant = _Texts([message.text for message in history if message.role == "assistant"])


def _message_flaws(text: str, before: _Said, persona: Persona | None) -> tuple[tuple[FlawKind, str], ...]:
    if not any(character.isalnum() for character in text):
        return (("empty", "no words"),)
    found: list[tuple[FlawKind, str]] = []
    checks: tuple[tuple[FlawKind, str | None], ...] = (
        ("role_swap", _role_swap(text, before)),
        ("leaked_instructions", leaked_instructions(text, persona)),
        ("repeated", before.by_user.same(text)),
    )
    for kind, detail in checks:
        if detail is not None:
            found.append((kind, detail))
    return tuple(found)


def role_swap(text: str, history: Sequence[Message] = ()) -> str | None:
    """Words by which the user speaks as the assistant, or None.

    Three rules: set phrases of assistants (an offer of help, "as an AI", a request for the other's details);
    advice in the second person in a sentence that is no question; and a message of which at least half of
    the 8-word sequences stand in an earlier reply and in no earlier message of the user.
    """
    return _role_swap(text, _Said(history))


def _role_swap(text: str, before: _Said) -> str | None:
    plain = _straight(text)
    phrase = _SPEAKER_LABEL.search(plain) or _ASSISTANT_SPEECH.search(plain)
    if phrase:
        return phrase[0]
    for sentence in re.split(r"(?<=[.!?])\s+", plain):
        advice = _ADVICE.search(sentence)
        if advice and not sentence.rstrip().endswith("?"):
            return advice[0]
    windows = _windows(text)
    replies, own = before.by_assistant.windows(), before.by_user.windows()
    copied = [window for window in windows if window in replies and window not in own]
    if copied and 2 * len(copied) >= len(windows):
        return f"copies the assistant: {copied[0]}"
    return None


def leaked_instructions(text: str, persona: Persona | None = None) -> str | None:
    """Words that give the set-up away, or None.

    Four rules: talk of persona, simulation, instructions, goals as such, or of "the user"; 8 words in a row
    from one of the simulated user's prompt files or from the persona's manner; and a whole goal of at least
    `GOAL_WORDS` words, word for word; and the persona told of by name as somebody else ("Asha has", with no
    word in the first person), which is how the notes speak. Facts and grievance may be quoted, whatever the
    prompts hold: they are the user's to tell.
    """
    plain = _straight(text)
    phrase = _LEAK.search(plain)
    if phrase:
        return phrase[0]
    secret = set(_prompt_windows())
    if persona is not None:
        secret.update(_windows(persona.manner))
        secret.difference_update(*map(_windows, (persona.grievance, *persona.facts)))
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
    """The earlier user message that `text` says again, or None.

    Two messages are the same from a similarity of `SAME_RATIO` on; messages under `SHORT_WORDS` words are
    not compared.
    """
    return _Said(history).by_user.same(text)


def premature_stop(
    conversation: Conversation, persona: Persona | None = None, min_turns: int = MIN_TURNS
) -> str | None:
    """Why the user's own decision to stop came too early, or None.

    Either there were fewer than `min_turns` replies, or the goal is said to be reached although no reply has
    to do with any goal. A reply has to do with a goal when at least half of the goal's content words (four
    letters or more, or numbers; stop words aside; compared by their first five letters) occur in it.
    """
    if conversation.stop_reason not in ("goal_reached", "gave_up"):
        return None
    replies = [turn.reply for turn in conversation.turns]
    if len(replies) < min_turns:
        return f"{conversation.stop_reason} after {len(replies)} of at least {min_turns} replies"
    if persona is None or conversation.stop_reason == "gave_up":
        return None
    if any(_about(goal, reply) for goal in persona.goals for reply in replies):
        return None
    return "goal_reached, but no reply has to do with any goal"


def is_loop(turns: Sequence[Turn]) -> bool:
    """Whether a conversation goes round in circles, so that the runner stops it.

    True when the last exchange is the same, on both sides, as an earlier one (any length), or when the last
    three user messages are the same (`repeated`'s rule).
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
    if min(len(_words(text).split()) for text in (one, other)) < SHORT_WORDS:
        return False
    return _similar(one, other)


def _long_enough(text: str) -> str | None:
    """The words of a message, or None where there are too few for it to be compared."""
    words = _words(text)
    return words if len(words.split()) >= SHORT_WORDS else None


def _about(goal: str, reply: str) -> bool:
    wanted = set(_content_words(goal))
    given = set(_content_words(reply))
    return bool(wanted) and len(wanted & given) >= math.ceil(len(wanted) / 2)


def _content_words(text: str) -> Iterator[str]:
    for word in default_process(text).split():
        if (len(word) >= 4 or word.isdigit()) and not _STOP_WORD.fullmatch(word):
            yield word[:5]


def _words(text: str) -> str:
    return " ".join(default_process(_straight(text)).split())


def _windows(text: str) -> list[str]:
    words = _words(text).split()
    return [" ".join(words[i : i + OVERLAP_WORDS]) for i in range(len(words) - OVERLAP_WORDS + 1)]


@cache
def _prompt_windows() -> frozenset[str]:
    templates = (load_prompt("agents.users", name).template for name in USER_PROMPTS)
    return frozenset(window for template in templates for window in _windows(template))


def _straight(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
