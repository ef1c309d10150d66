"""Calls of tools that a model writes into its text, because the server does not know its form."""

from __future__ import annotations

import json
import re
from typing import Any

_CALL = re.compile(
    r"<(?:\w{1,20}:)?tool_calls?>\s*[\[{<\w]|<(?:\w{1,20}:)?function_calls?>\s*[\[{<]|<function=[\w.-]{1,200}>"
    r"|<invoke name=|\[TOOL_CALLS?\]\s*[\[{\w]|\[TOOL_REQUEST\]\s*[\[{]|<\|python_tag\|>"
    r"|<\|(?:tool_call|tool_calls|tool_call_start|tool_calls_section_begin|tool_call_begin|action_start|start_action)\|?>"
    r"|<[|｜]tool[▁_]calls?[▁_]begin[|｜]>|<start_function_call>|✿FUNCTION✿|functools\[\{",
    re.IGNORECASE,
)
_CODE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"\A```(?:json|tool_call|tool_code)?[ \t]*\n(.*?)\n?```\Z", re.DOTALL | re.IGNORECASE)
_KEYS = frozenset({"name", "arguments", "parameters", "id", "type", "function"})
_BEFORE = re.compile(r"(?:\A|[.!?:…\n>])\s*\Z")


def writes_call(text: str) -> bool:
    """Return whether a text calls a tool: by a mark, or as a JSON object that is nothing but the call.

    A mark counts at the beginning of the text, a line or a sentence, and outside code, where it is quoted.
    """
    plain = text.strip()
    if _is_call(plain):
        return True
    if _CALL.search(plain) is None:
        return False
    shown = _CODE.sub(lambda code: " " * len(code[0]), plain)
    return any(
        _BEFORE.search(shown[max(0, call.start() - 3) : call.start()]) for call in _CALL.finditer(shown)
    ) or (_CALL.match(shown) is not None)


def _is_call(text: str) -> bool:
    fenced = _FENCED.match(text) if text.startswith("```") else None
    inner = fenced[1].strip() if fenced else text
    if not inner.startswith(("{", "[")) or '"name"' not in inner:
        return False
    try:
        found = json.loads(inner)
    except (ValueError, RecursionError):
        return False
    calls = found if isinstance(found, list) else [found]
    return bool(calls) and all(map(_has_call, calls))


def _has_call(value: Any) -> bool:
    if not isinstance(value, dict) or not value.keys() <= _KEYS:
        return False
    if isinstance(value.get("function"), dict):
        value = value["function"]
    return isinstance(value.get("name"), str) and bool(value.keys() & {"arguments", "parameters"})
