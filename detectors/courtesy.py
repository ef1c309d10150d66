"""Sentences that claim nothing: questions, greetings, offers, sympathy. A plain text rule, no model."""

from __future__ import annotations

import re

_COURTESY = re.compile(
    r"\bfeel free\b|\blet me know\b|\b(?:happy|glad|here) to (?:help|assist)\b"
    r"|\bhow (?:can|may) i (?:help|assist)\b"
    r"|\bthank(?:s| you)\b|\byou(?:'re| are) welcome\b|\bsorry (?:to hear|about|for|that)\b"
    r"|\bhope (?:this|that|it) helps\b|\bgood luck\b|\bi understand (?:how|that|your)\b"
    r"|\bif you (?:need|have|want|would like) (?:any |more |further |other )*(?:help|assistance|questions?)\b"
    r"|\A\W*(?:here(?:'s| is| are)|below is)\b[^.!]*\b(?:sample|template|draft|example|steps)\b"
    r"|\bplease (?:provide|share|tell me|give me)\b|\A\W*(?:hello|hi|dear|regards|sincerely)\b",
    re.IGNORECASE,
)
_VEILED_CLAIM = re.compile(r"\bdid you know\b", re.IGNORECASE)


def claims_nothing(sentence: str) -> bool:
    """Whether a sentence is a question, or a courtesy without any digit in it."""
    plain = sentence.replace("’", "'").strip()
    if _VEILED_CLAIM.search(plain):
        return False
    if plain.endswith("?"):
        return True
    return _COURTESY.search(plain) is not None and not any(character.isdigit() for character in plain)
