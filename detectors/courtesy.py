"""Sentences that claim nothing: questions, greetings, offers, sympathy. A plain text rule, no model."""

from __future__ import annotations

import re

_COURTESY = re.compile(
    r"\bfeel free\b|\blet me know\b|\b(?:happy|glad|here) to (?:help|assist)\b"
    r"|\bhow (?:can|may) i (?:help|assist)\b"
    r"|\bthank you\b|\A\W*thanks\b(?! to)|\byou(?:'re| are) welcome\b|\bsorry (?:to hear|about|for|that)\b"
    r"|\bhope (?:this|that|it) helps\b|\bgood luck\b|\bi understand (?:how|your)\b"
    r"|\bif you (?:need|have|want|would like) (?:any |more |further |other )*(?:help|assistance|questions?)\b"
    r"|\A\W*(?:here(?:'s| is| are)|below is)\b[^.!]*\b(?:sample|template|draft|example|steps)\b"
    r"|\bplease (?:provide|share|tell me|give me)\b|\A\W*(?:hello|hi|dear|regards|sincerely)\b",
    re.IGNORECASE,
)
_VEILED_CLAIM = re.compile(r"\b(?:did|do) you know (?:that|,)|\bdid you know\b", re.IGNORECASE)
_ASKING = re.compile(
    r"\W*(?:(?:and|but|or|so|well|please|ok|okay|yes|no|yeah|oh|ah|hi|hello)\W+)*(?:what|when|where|who|whom|whose|which|why|how|do|does|did"
    r"|is|are|was|were|am|can|could|would|will|shall|should|may|might|have|has|had|any|anything)\b",
    re.IGNORECASE,
)


def claims_nothing(sentence: str) -> bool:
    """Whether a sentence is a question, or a courtesy without any digit in it.

    A question begins like one: `it opens at 6, shall I book?` claims something, and so does `did you know
    that it opens at 6?`.
    """
    plain = sentence.replace("’", "'").strip()
    if plain.endswith("?"):
        return _ASKING.match(plain) is not None and _VEILED_CLAIM.search(plain) is None
    return _COURTESY.search(plain) is not None and not any(character.isdigit() for character in plain)
