"""Words of a user's message: whether it asks, and how a goal is asked for in the user's own words."""

from __future__ import annotations

import re

from hallulab.scenarios.text.words import STOP_WORDS, is_courtesy

_ASKED = re.compile(
    r"\?"
    r"|(?:\A|[.,;:!]\s+)(?:(?:and|but|so|ok|okay|then|please|thanks)\W+)*"
    r"(?:(?:(?:after|at|by|for|from|in|on|since|till|to|until|with|within)\s+)?"
    r"(?:what|when|where|who|whom|whose|which|why|how)"
    r"|do|does|did|is|are|was|were|can|could|would|will|should|may|must|have|has)\b"
    r"|\b(?:please|kindly) \w+|\b(?:tell|give|send|show|write|help|explain to) me\b"
    r"|\bi(?:'d| would)? (?:need|want|like|wish)\b|\b(?:want|need|like) to know\b"
    r"|\bi (?:do not|don't) know\b",
    re.IGNORECASE,
)
_LEARN = re.compile(r"(?:learn|find out|understand|know|see|hear|ask)\s+", re.IGNORECASE)
_GET = re.compile(r"(?:get|receive|obtain)\s+", re.IGNORECASE)
_TELL_TO_DO = re.compile(r"tell me (how|where)\s+to\s+", re.IGNORECASE)
_COMMAND = re.compile(
    r"(?:(?:please|pls|kindly|now|ok|hi|hello)\W+)*"
    r"(?:tell|explain|give|list|show|write|describe|summari[sz]e|help|send|draft|compare|clarify|provide"
    r"|i (?:need|want)|need|want)\b",
    re.IGNORECASE,
)
KEYWORDS = 8
"""Most words that are typed into a search box."""
_PERSON = re.compile(
    r"\b(?:she|he)(?P<self> (?:her|him)self)?"
    r"(?: (?P<verb>is|was|has|does|(?!always|perhaps|sometimes)\w+[^\Ws]s))?\b"
    r"|\bhim\b|\b(?P<own>his|her)(?= \w)(?! (?:and|or|as|at|by|for|from|in|of|on|to|when|while|with)\b)"
    r"|\bher\b",
    re.IGNORECASE,
)
_IRREGULAR = {"is": "am", "was": "was", "has": "have", "does": "do", "goes": "go"}


UNSAID = (
    "Learn how many people have asked for this in the last year",
    "Learn the name of the person who decides about it",
    "Learn whether somebody can come to the house for it",
    "Learn how long one waits on the telephone for it",
    "Learn whether a neighbour who did the same was lucky",
    "Learn what will change about it in the next year",
)
"""Things that few documents tell: for where a model thinks of none."""


def asks_something(message: str) -> bool:
    """Return whether a user's message asks or requests something. A courtesy does not."""
    return not is_courtesy(message) and _ASKED.search(message.replace("’", "'")) is not None


def word_question(goal: str) -> str:
    """Return the question of a persona who pursues `goal`: goals are written about her, questions by her.

    `Learn how to reach it, and its number` becomes `How can I reach it, and its number?`, `Learn whether he
    can refuse` becomes `Can you tell me whether I can refuse?`, and `Get a draft of the notice` becomes `Can
    you give me a draft of the notice?`.
    """
    wish = _word_wish(goal)
    to_do = _TELL_TO_DO.match(wish)
    if to_do is not None:
        return f"{to_do[1].capitalize()} can I {wish[to_do.end() :]}?"
    return f"Can you {wish}?"


def is_command(message: str) -> bool:
    """Return whether a message is a request to tell, explain, list or write something, and no question.

    >>> is_command("tell me the fee"), is_command("call the bank"), is_command("give me the fee?")
    (True, False, False)
    """
    return "?" not in message and _COMMAND.match(message) is not None


def word_command(goal: str, opening: str) -> str:
    """Return the request of a persona who pursues `goal`, without a question mark.

    Args:
        goal: about the persona, in the third person.
        opening: the words before what is to be learnt.

    >>> word_command("Learn whether he can refuse", "tell me")
    'tell me whether I can refuse'
    >>> word_command("Get a draft of the notice", "tell me")
    'give me a draft of the notice'
    """
    wish = _word_wish(goal)
    return f"{opening}{wish.removeprefix('tell me')}" if wish.startswith("tell me ") else wish


def find_keywords(goal: str) -> str:
    """Return the words of a goal that one types into a search box, at most `KEYWORDS`.

    >>> find_keywords("Learn how long he has to file a complaint, and the fee")
    'long file complaint fee'
    """
    words = re.findall(r"[^\W_][\w'-]*", goal.lower())[1:]
    return " ".join([word for word in words if word not in STOP_WORDS][:KEYWORDS])


def drop_questions(message: str) -> str:
    """Return a message without its sentences that end with a question mark; empty if nothing else is there.

    >>> drop_questions("No, the new flight. Do they pay it?")
    'No, the new flight.'
    """
    return re.sub(r"[^.!?\n]*\?[\"')\]]*\s*", "", message).strip()


def _word_wish(goal: str) -> str:
    plain = turn_to_first_person(goal.strip().rstrip(".?!"))
    learn, got = _LEARN.match(plain), _GET.match(plain)
    if learn is not None:
        return f"tell me {plain[learn.end() :]}"
    return f"help me to {plain[:1].lower()}{plain[1:]}" if got is None else f"give me {plain[got.end() :]}"


def turn_to_first_person(text: str) -> str:
    """Return a sentence about a person as this person says it.

    >>> turn_to_first_person("He lives in Pune, and his phone is 55501")
    'I live in Pune, and my phone is 55501'
    """

    def own(found: re.Match[str]) -> str:
        if found["own"]:
            return "my"
        if found[0].lower() in ("him", "her"):
            return "me"
        verb, subject = found["verb"], "I myself" if found["self"] else "I"
        if verb is None:
            return subject
        if verb not in _IRREGULAR and verb.endswith("ies"):
            return f"{subject} {verb[:-3]}y"
        plain = verb[:-2] if verb.endswith(("sses", "shes", "ches", "xes", "zes")) else verb[:-1]
        return f"{subject} {_IRREGULAR.get(verb, plain)}"

    said = _PERSON.sub(own, text)
    # Without `she` or `he` it is about somebody else: a buyer who works by himself.
    return re.sub(r"\b(?:her|him)self\b", "myself", said) if re.search(r"\bI\b", said) else said
