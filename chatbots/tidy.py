"""Remove what models put around a reply: role labels, and the user's next line."""

from __future__ import annotations

import re

_LABEL = re.compile(
    r"\A[\s*_#>\"]*(?:(?:edited|corrected|final|revised|rewritten)\s+)?(?:assistant|chatbot|answer|reply|response)"
    r"[*_ \t]*:[*_ \t]*\n?",
    re.IGNORECASE,
)
_NEXT_SPEAKER = re.compile(
    r"^[ \t*_#>]*(?:user|human|assistant)[*_ \t]*:|<\|(?:im_start|im_end|eot_id|endoftext)\|>",
    re.IGNORECASE | re.MULTILINE,
)


def tidy_reply(text: str) -> str:
    """Return the reply without leading labels such as `Assistant:`, up to the next speaker's label.

    Nothing else is changed, because the model is judged by its own words. May be empty.
    """
    text = _remove_labels(text)
    following = _NEXT_SPEAKER.search(text)
    if following:
        text = text[: following.start()]
    return text.strip()


def _remove_labels(text: str) -> str:
    stripped = _LABEL.sub("", text, count=1)
    return stripped if stripped == text else _remove_labels(stripped)
