"""Prompt strategies against wrong documents, for any of our chatbots (RAG-Trust section 3).

The paper describes four strategies and prints none, so the texts in `prompts/strategy_*.txt` are ours. A
strategy's text follows the bot's own instructions for its draft, so all strategies share the frame and the
documents before it.
"""

from __future__ import annotations

import re
from typing import Literal

Strategy = Literal["baseline", "critical", "hedge", "verify"]
"""`baseline` answers from the documents, `critical` distrusts them, `hedge` may decline, `verify` checks step
by step first and may decline, too."""

STRATEGIES: tuple[Strategy, ...] = ("baseline", "critical", "hedge", "verify")
"""All of them, in the paper's order."""

DECLINED = "I_DECLINE_TO_ANSWER"
"""What a reply consists of that refuses to answer (the paper's marker)."""

PROMPTS = (*(f"chatbots/strategy_{name}" for name in STRATEGIES), "chatbots/cite")
"""The prompt files, which are part of the version of each of our bots."""

_MARKER = re.compile(r"\bI[ _]DECLINE[ _]TO[ _]ANSWER\b", re.IGNORECASE)
_CONCLUSION = re.compile(r"^[ \t*_#>-]*(?:final )?answer[*_ \t]*:[*_ \t]*", re.IGNORECASE | re.MULTILINE)


def is_refusal(reply: str) -> bool:
    """Return whether a reply refuses to answer: it begins with the marker, whatever follows.

    Only the marker counts, whatever case it is in. A reply that answers and names the marker later, as small
    models do, is an answer.
    """
    return _MARKER.match(reply.lstrip(" \t\n\r*_`\"'[(#>-")) is not None


def extract_conclusion(reply: str) -> str:
    """Return what follows the last `Answer:` at a line's beginning; the whole reply if nothing does."""
    found = list(_CONCLUSION.finditer(reply))
    return (reply[found[-1].end() :].strip() if found else "") or reply
