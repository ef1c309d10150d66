"""Messages of simulated users that are made by rule, in English, or completed by rule.

Small models do not reliably say "more", thank, or paste a letter when they are told to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz.fuzz import partial_ratio

from hallulab.agents.users.questions import (
    KEYWORDS,
    UNSAID,
    drop_questions,
    find_keywords,
    is_command,
    turn_to_first_person,
    word_command,
    word_question,
)
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Message

_CORRECTS = re.compile(r"(?:oh |but )?(?:no|nope|not|sorry|wrong|i mean|i meant|i said)\b", re.IGNORECASE)
_CONCLUDES = re.compile(r"(?:so|ok|okay|then|ah|oh|but|that means|you mean)\b", re.IGNORECASE)
_SAME = 90.0
"""A text stands in a message from this Indel similarity on (0 to 100)."""
GOES_ON = (
    "more",
    "go on",
    "and then?",
    "continue",
    "tell me more",
    "next",
    "ok and then",
    "what else",
    "more details",
    "and?",
    "more on that",
    "ok go on",
)
"""Messages that only ask the chatbot to go on."""
REQUESTS: Mapping[str, Sequence[str]] = {
    "commands": (
        "Tell me",
        "tell me",
        "please tell me",
        "Explain",
        "explain to me",
        "I need to know",
        "I want to know",
    ),
    "corrects": ("no, I mean", "No, I want to know", "sorry, I meant", "No, I asked", "not that, I mean"),
    "impatient": (
        "just tell me",
        "I only want to know",
        "once more, tell me",
        "come on, tell me",
        "Please just tell me",
    ),
}
"""Beginnings of a goal that a rule words as a request without a question mark, by act."""
ANNOYED = (
    "that does not help",
    "This is useless.",
    "you did not answer me",
    "that's not what I asked",
    "I have no time for this",
    "hurry up please",
)
"""Messages of an impatient user."""
THANKS = ("thanks", "thank you", "Thanks!", "ok thanks", "thx", "Thank you very much", "great, thank you")
"""Thanks, alone or before a message."""
ASIDE = ("ok, something else: ", "another thing. ", "ok. ", "different question - ", "and ", "anyway, ", "")
"""Before a message that changes the subject."""
BESIDE = (
    "Learn one more detail of what the assistant said last",
    "Learn what exactly that means",
    "Learn what to do first",
    "Learn how long that takes",
    "Learn an example of that",
    "Learn what happens if that does not help",
)
"""Wishes of a user whose goals are reached: they are about the last reply."""
_NOTES = (
    "My complaint as it was filed:\n\n{case}\n\nDetails:\n{facts}\n\n{name}",
    "Subject: complaint of {name}\n\nThis is what I wrote down. {case}\n{facts}\n\nRegards\n{name}",
    "Note of my call\nCaller: {name}\nMatter: {case}\nOn file:\n{facts}",
)
"""Forms of the note that is pasted."""


def write_note(persona: Persona) -> str:
    """Return the note about its own case that a persona pastes: a complaint, a mail or a note of a call."""
    form = _NOTES[int(draw_share(persona.id, "note") * len(_NOTES))]
    facts = "\n".join(f"- {fact}" for fact in persona.facts)
    return form.format(name=persona.name, case=persona.grievance.strip(), facts=facts)


@dataclass(frozen=True)
class Moment:
    """The message that a rule makes or completes."""

    persona: Persona
    seed: int
    history: Sequence[Message]
    goal: str | None
    """The goal that it is about; None: all are reached."""
    beside: str
    """The wish that it is about where it is about no goal."""

    def draw(self, phrases: Sequence[str]) -> str:
        """Draw one of several phrases, whichever chatbot answers."""
        return phrases[int(self.draw_share("phrase") * len(phrases))]

    def draw_share(self, name: str) -> float:
        """Return a number in [0, 1) for something about this message."""
        return draw_share(self.persona.id, self.seed, len(self.history) // 2, name)


def write_by_rule(act: str, moment: Moment) -> str | None:
    """Return the message of an act that needs no model; None: the model words it."""
    if act == "goes-on":
        return moment.draw(GOES_ON)
    if act == "impatient":
        wants = moment.goal is not None and moment.draw_share("wants") < 0.5
        return _word_goal(act, moment) if wants else moment.draw(ANNOYED)
    if act == "thanks-and-returns" and moment.goal is None:
        return moment.draw(THANKS)
    if act == "tells" and moment.history:
        return find_untold_fact(moment.persona, moment.history)
    return None


def complete_by_rule(act: str, text: str, moment: Moment) -> str:
    """Return the model's message with what its act adds, and without what does not belong to the act.

    Where a message shall not ask, its questions go. If nothing is left, the goal is worded as a request.
    """
    if act == "thanks-and-returns":
        thanks = moment.draw(THANKS)
        return f"{thanks}{'' if thanks.endswith('!') else '.'} {text}"
    if act == "changes-subject":
        return f"{moment.draw(ASIDE)}{text}"
    if act == "two-in-one":
        other = find_other_goal(moment.persona, moment.goal) or moment.draw(UNSAID)
        return f"{text} {moment.draw(('', 'And another thing. ', 'also, '))}{word_question(other)}"
    if act == "pastes":
        note = write_note(moment.persona)
        return f"{text}\n\n{note}" if moment.draw_share("place") < 0.5 else f"{note}\n\n{text}"
    if act == "topic":
        words = text.rstrip(" .").split()
        return find_keywords(moment.goal or text) if "?" in text else " ".join(words[:KEYWORDS])
    told = drop_questions(text)
    if told and act == "misunderstands" and _CONCLUDES.match(told) is None:
        return f"so {told}"
    begins = {"commands": is_command(told), "corrects": _CORRECTS.match(told) is not None}
    if told and begins.get(act, True):
        return told
    return moment.draw(GOES_ON) if moment.goal is None else _word_goal(act, moment)


def _word_goal(act: str, moment: Moment) -> str:
    assert moment.goal is not None
    plain = word_command(moment.goal, "").strip()
    if act == "commands" and has_said(moment.history, plain):
        return moment.draw(ANNOYED)
    return word_command(moment.goal, moment.draw(REQUESTS.get(act, REQUESTS["commands"])))


def find_other_goal(persona: Persona, goal: str | None) -> str | None:
    """Return the goal after this one, after the last one the first; None: there is no other."""
    if goal is None or len(persona.goals) == 1:
        return None
    return persona.goals[(persona.goals.index(goal) + 1) % len(persona.goals)]


def find_untold_fact(persona: Persona, history: Sequence[Message]) -> str | None:
    """Return the first fact that a persona has not written yet, as it says it; None: there is none.

    Of what it says about itself only the part before `and`: a rule cannot turn all verbs to the first person.
    """
    for fact in persona.facts:
        told = turn_to_first_person(fact)
        part = told.partition(" and ")[0]
        if told.startswith("I ") and len(part.split()) > 2:
            told = part
        if not (has_said(history, fact) or has_said(history, told)):
            return told
    return None


def has_said(history: Sequence[Message], text: str) -> bool:
    """Return whether a message of the user contains a text, slips of the finger aside."""
    said = [message.text.lower() for message in history if message.role == "user"]
    # Of a shorter message the ratio would be that of the message within the text.
    return any(len(one) >= 0.9 * len(text) and partial_ratio(text.lower(), one) >= _SAME for one in said)


def draw_share(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts only."""
    return int(digest(list(parts))[:13], 16) / 16**13
