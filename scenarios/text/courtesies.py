"""Messages of a user that are only a courtesy: thanks, a greeting, a goodbye. A text rule, no model.

A chatbot answers them without a search, because there is nothing to search for. The rule is meant to miss
some rather than to take a question for a courtesy.
"""

from __future__ import annotations

import re

_CORE = re.compile(
    r"thank|thanks|thankyou|thx|cheers|appreciate|appreciated|grateful|hello|hi|hey|greetings|"
    r"namaste|welcome|bye|goodbye|morning|afternoon|evening|regards"
)
"""Words of which a courtesy has at least one."""
_BESIDE = re.compile(
    r"a|again|all|also|am|and|are|at|best|bless|clear|day|dear|detailed|evening|ever|excellent|"
    r"explanation|fine|for|from|good|great|have|help|helped|helpful|helping|helps|i|information|is|"
    r"it|just|kind|kindly|kindness|lot|lots|madam|many|me|much|my|night|nice|now|of|ok|okay|once|"
    r"patience|perfect|please|quick|really|reply|right|said|sir|so|support|take|care|team|that|"
    r"that's|the|then|there|this|time|to|truly|understand|understood|useful|very|was|well|"
    r"wonderful|yes|you|you're|your|advice|answer|answering|answers|guidance|clarifying|"
    r"clarification|all's|that'll|do"
)
"""Words that may stand beside them and ask nothing."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NUMBER = re.compile(r"\d")


def is_courtesy(message: str) -> bool:
    """Return whether a user's message asks and tells nothing: every word is a courtesy or stands beside one.

    A question mark or a number always asks or tells something.
    """
    if "?" in message or _NUMBER.search(message):
        return False
    found = [word.replace("’", "'").lower() for word in _WORD.findall(message)]
    cores = [_CORE.fullmatch(word) is not None for word in found]
    return any(cores) and all(
        core or _BESIDE.fullmatch(word) for core, word in zip(cores, found, strict=True)
    )
