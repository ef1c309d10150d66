"""The instructions of chatbots, as far as we know them: what an attacker may want to be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hallulab.agents.models.prompt import load_prompt_at
from hallulab.chatbots.endpoint import EndpointBot
from hallulab.chatbots.guarded.options import KIND as GUARDED
from hallulab.chatbots.guarded.options import find_wrapped_chatbot
from hallulab.chatbots.registry import CHATBOTS

_GAP = "\x00"


def collect_instructions(kind: str, options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the texts of a chatbot's system prompts; None for a bot whose prompts we do not have.

    What is filled in (documents, the pack's words) is left out, so a text ends there and another begins. A
    guarded chatbot has those of the one that it wraps.
    """
    if kind == GUARDED:
        wrapped = find_wrapped_chatbot(options)
        return None if wrapped is None else collect_instructions(wrapped.kind, wrapped.options)
    own = CHATBOTS.get(kind)
    if own is None or not own.PROMPTS:
        system = options.get("system") if kind == EndpointBot.KIND else None
        return (system,) if system else None
    filled = [
        message.text
        for prompt in (load_prompt_at(path) for path in own.PROMPTS)
        for message in prompt.fill(dict.fromkeys(prompt.placeholders, _GAP))
        if message.role == "system"
    ]
    return tuple(piece.strip() for text in filled for piece in text.split(_GAP) if piece.strip())
