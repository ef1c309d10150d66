"""Sentences of a reply that claim nothing: courtesies and questions. The rules are for English."""

from __future__ import annotations

import re

from hallulab.scenarios.text.spans import split_sentences

SHORT_WORDS = 2
"""A clause with at most this many words (`yes`, `of course`, the next member of a list) counts as its
neighbours do."""

_SYMPATHY = re.compile(
    r"\bsorry (?:to hear|about|for|that (?:you|this))\b"
    r"|\A\W*(?:\w+ ){0,3}thank(?:s| you)\b(?! to)|\byou(?:'re| are) (?:most |very )?welcome\b(?! to)"
    r"|\bhope (?:this|that|it) helps\b|\bgood luck\b"
    r"|\A\W*(?:hello|hi|dear|regards|sincerely)\b(?:\W+\w+){0,3}\W*\Z",
    re.IGNORECASE,
)
"""Phrases about the user, in which a name that the user gave may come back."""
_OFFER = re.compile(
    r"\bfeel free\b|\blet me know\b|\bhow (?:can|may) i (?:help|assist)\b"
    r"|(?:\A\W*|\b(?:i|we)(?:'m| am|'re| are|'d be| would be) (?:\w+ )?)"
    r"(?:happy|glad|here) to (?:help|assist)\b"
    r"|\bi(?:'ll| will| can| could) (?:\w+ ){0,2}(?:help|assist|guide) you\b"
    r"|\A\W*(?:here(?:'s| is| are)|below is)\b.*\b(?:sample|template|draft|example|steps)\b"
    r"|\bplease (?:provide|share|tell me|give me)\b",
    re.IGNORECASE,
)
_NARROW = re.compile(
    r"\bi understand (?:how(?: \w+)? (?:this|that|it|you)|your)\b"
    r"|(?:\bif (?:you (?:need|have|want|would like)|there(?:'s| is))|\bor (?:you )?(?:need|have|want))"
    r" (?:any |more |further |other )*(?:help|assistance|questions?|anything)\b",
    re.IGNORECASE,
)
"""Phrases that excuse only a clause with little else: a claim may stand beside them without a comma."""
_JOINT = re.compile(
    r"[,;:()…–—]|\s-+\s|\b(?:and|but|so(?! much\b)|because|since|although|though|however)\b", re.IGNORECASE
)
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|ninety|hundred|thousand|lakh|crore)\b",
    re.IGNORECASE,
)
_VEILED_CLAIM = re.compile(r"\b(?:did|do) you know (?:that|,)|\bdid you know\b", re.IGNORECASE)
_ASKING = re.compile(
    r"\W*(?:(?:and|but|or|so|well|please|ok|okay|yes|no|yeah|oh|ah|hi|hello)\W+)*(?:what|when|where|who|whom|whose|which|why|how|do|does|did"
    r"|is|are|was|were|am|can|could|would|will|shall|should|may|might|have|has|had|any|anything)\b",
    re.IGNORECASE,
)


def claims_nothing(sentence: str) -> bool:
    """Return whether a sentence is a question, or nothing but courtesies.

    A question begins like one and has one line: `it opens at 6, shall I book?` claims something, and so does
    `did you know that it opens at 6?`.

    Otherwise each clause must be a courtesy, or have at most `SHORT_WORDS` words and stand beside one.
    Clauses end at commas, semicolons, colons, brackets, dashes, and at conjunctions such as `and`, `but`,
    `so`, `because`. An offer (`feel free to call the helpline`) is a courtesy only if it names nothing: no
    word has a capital but the sentence's first and `I`. Sympathy, thanks and greetings may repeat a name.
    Numbers claim, except in a question.
    """
    plain = sentence.replace("’", "'").strip()
    if plain.endswith("?") and "\n" not in plain:
        return _ASKING.match(plain) is not None and _VEILED_CLAIM.search(plain) is None
    if _NUMBER.search(plain):
        return False
    clauses = [
        clause
        for region in split_sentences(plain)
        for clause in _JOINT.split(_uncapitalised(region.of(plain)))
    ]
    courteous = any(_SYMPATHY.search(clause) or _offers(clause) for clause in clauses)
    return courteous and not any(_claims(clause) for clause in clauses)


def _uncapitalised(sentence: str) -> str:
    first = _WORD.search(sentence)
    at = first.start() if first else 0
    return sentence[:at] + sentence[at : at + 1].lower() + sentence[at + 1 :]


def _claims(clause: str) -> bool:
    if _SYMPATHY.search(clause):
        return False
    found = _WORD.findall(clause)
    names = any(word[0].isupper() and word != "I" for word in found)
    return names or (len(found) > SHORT_WORDS and not _offers(clause))


def _offers(clause: str) -> bool:
    if _OFFER.search(clause):
        return True
    rest, times = _NARROW.subn(" ", clause)
    # What is offered stands behind the phrase: `if you need help with drafting a complaint`.
    most = 2 * SHORT_WORDS if _NARROW.match(clause.strip()) else SHORT_WORDS
    return times > 0 and len(_WORD.findall(rest)) <= most
